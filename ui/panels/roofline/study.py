"""The algorithms under the roofline of a GPU, and the run up to the cursor."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import QSizeF

from simulator.base.choices import Choice, Option
from simulator.problem.hardware import gpus
from simulator.problem.scenario import Algorithm
from simulator.program.algorithms import ALGORITHMS, tile_program
from simulator.program.tile_program import Counters
from simulator.run.trace import Trace
from simulator.study.gpu_report import Measured, gpu_report, measured_run
from simulator.study.roofline import (
    Phase,
    Roof,
    Roofline,
    RooflinePoint,
    roofline_of,
    timed_roofline,
    whole_phase,
)
from simulator.timing.duration import Duration, duration_of
from ui.look.durations import MODEL, duration_text, limit_text
from ui.look.units import (
    bound_text,
    bytes_text,
    count_text,
    estimate_text,
    launch_words,
    rate_text,
    time_text,
)
from ui.panels.study import Chosen, Study
from ui.plots.model import Axis, Curve, Marker, PlotMark, PlotModel
from ui.session.tasks import Report
from ui.session.view import View

_ROOM = 4.0
"""How much further the axes go than the points."""
_SPOT = 0.03
"""Marks that are nearer to each other than this share of their place have one label."""
_MARKERS: dict[Phase, Marker] = {"prefill": "circle", "backward": "square", "decode": "diamond"}
_SIZES: dict[Phase, str] = {
    "prefill": "prefill (the scenario's sizes)",
    "backward": "the scenario's sizes",
    "decode": "decode (one query, the keys as a cache)",
}
"""Words for the sizes of each phase."""
_NO_RATE = (
    "The presets have no matrix rate for float32, so only the bandwidth is a roof. Estimates are "
    "of bytes alone."
)
_ON_ROOF = "Estimates from data sheets{}. A point stands on the roof above its intensity."
_CACHES = {"requested": ", as if nothing were found in L2", "minimum": ", every byte moved once"}
"""The assumption about caches behind each kind of bytes."""


def _flops(rate: float) -> str:
    return rate_text(rate, "FLOP/s")


def _tick(rate: float) -> str:
    return rate_text(rate, "").strip()


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else count_text(value)


@dataclass(frozen=True, slots=True, eq=False)
class UnderRoof:
    """Runs under a roof, and how far one of them has come."""

    runs: Roofline  # all algorithms
    shown: Algorithm  # the algorithm of the run
    measured: tuple[Measured, ...] = ()  # times of this run on a GPU
    spent: Duration | None = None  # the time of the run on show, if it is known by now
    by_model: bool = False  # whether runs are where the model of time says
    compulsory: bool = False  # whether FLOPs are counted for each compulsory byte
    so_far: Counters | None = None  # of the run up to the cursor

    @property
    def roof(self) -> Roof:
        """The GPU's limits."""
        return self.runs.roof


def roofline_plot(state: UnderRoof) -> PlotModel:
    """Return the roofline of a GPU with the runs, and the run so far."""
    if state.by_model:
        return _modelled_plot(state)
    found, roof = state.runs, state.roof
    marks = _named_together([_run_mark(place, state) for place in found.places], state)
    spent = min(p.flops / mark.y for p, mark in zip(found.places, marks, strict=True))
    curves: list[Curve] = []
    own = _modelled(state)
    if own is not None:
        marks.append(_model_mark(own, state))
        curves.append(_way(own, roof))
    if not state.compulsory:
        marks += [_measured_mark(found, one) for one in state.measured]
        if state.so_far is not None and state.so_far.flops:
            marks.insert(0, _part_mark(found.part(state.shown, state.so_far), roof))
    xs = [mark.x for mark in marks]
    low, high = min(xs) / _ROOM, max(xs) * _ROOM
    if roof.ridge is not None:
        low, high = min(low, roof.ridge / _ROOM), max(high, roof.ridge * _ROOM)
    top = max(roof.at(high), *(mark.y for mark in marks))
    kind = "minimum" if state.compulsory else "requested"
    said = _NO_RATE if roof.rate is None else _ON_ROOF.format(_CACHES[kind])
    note = f"{said} {launch_words(spent)}".strip()
    lines = [_lines(place, state) for place in found.places]
    if own is not None:
        note = f"{note} DRAM by model: what the run reaches."
        lines.append(_modelled_lines(own, state))
    elif state.spent is not None and state.spent.why:
        note = f"{note} {state.spent.why}"
    figures = ". ".join(", ".join(each) for each in lines)
    return PlotModel(
        name=f"Roofline of {roof.gpu.name}",
        x=Axis(f"FLOPs for each {kind} byte", _number, log=True),
        y=Axis("FLOP/s within reach", _tick, log=True),
        curves=(_roof_curve(roof, low, high), *curves),
        marks=(*marks, *_roof_words(roof, low, high)),
        note=note,
        x_range=(low, high),
        y_range=(min(roof.at(low), *(mark.y for mark in marks)), top),
        summary=f"{note} {figures}.",
    )


def _modelled(state: UnderRoof) -> RooflinePoint | None:
    """Return the place of the run on show with its time by model; None if it is not known."""
    spent = state.spent
    if spent is None or spent.model is None or state.compulsory:
        return None
    if spent.model.gpu is not state.roof.gpu:  # the time is of the GPU chosen before
        return None
    return replace(state.runs.place(state.shown, whole_phase(state.shown)), duration=spent)


def _model_mark(place: RooflinePoint, state: UnderRoof) -> PlotMark:
    assert place.duration is not None
    assert place.reached is not None
    assert place.dram_intensity is not None
    words = f"DRAM by model {duration_text(place.duration)}"
    return PlotMark(
        place.dram_intensity, place.reached, words, "by model", place.algorithm,
        _MARKERS[place.phase], 6.0, _modelled_lines(place, state),
    )  # fmt: skip


def _way(place: RooflinePoint, roof: Roof) -> Curve:
    """Return the line between the two points of a run: for requested bytes and DRAM bytes."""
    assert place.reached is not None
    assert place.dram_intensity is not None
    xs, ys = (place.intensity, place.dram_intensity), (roof.at(place.intensity), place.reached)
    if xs[0] > xs[1]:
        xs, ys = xs[::-1], ys[::-1]
    return Curve("", "", place.algorithm, xs, ys, "dot", None, 1.2)


def _modelled_plot(state: UnderRoof) -> PlotModel:
    """Return the rates of runs by model: per byte of DRAM, and hollow per requested byte."""
    found, roof = state.runs, state.roof
    timed = [place for place in found.places if place.reached is not None]
    marks, ways = [], []
    for place in timed:
        assert place.duration is not None
        assert place.reached is not None
        assert place.dram_intensity is not None
        own = place.algorithm == state.shown and place.phase != "decode"
        name, size, y = _name((place,)), 6.0 if own else 4.5, place.reached
        words, role = f"{name} {duration_text(place.duration)}", place.algorithm
        lines = _modelled_lines(place, state)
        xs = place.intensity, place.dram_intensity
        marks += [
            PlotMark(xs[1], y, words, name, role, _MARKERS[place.phase], size, lines),
            PlotMark(xs[0], y, "", "", role, "ring", size, lines),
        ]
        ways.append(Curve("", "", role, xs, (y, y), "dot", None, 1.2))
    xs_of_all = [mark.x for mark in marks] or [1.0]
    low, high = min(xs_of_all) / _ROOM, max(xs_of_all) * _ROOM
    if roof.ridge is not None:
        low, high = min(low, roof.ridge / _ROOM), max(high, roof.ridge * _ROOM)
    ys = [mark.y for mark in marks] or [roof.at(low)]
    left_out = [place for place in found.places if place.reached is None]
    missing = f" Not modelled: {_name(left_out)}." if left_out else ""
    # The main words come first: in a low panel the line is cut at its end.
    note = f"Filled: bytes of DRAM. Hollow: requested bytes, which L2 may have.{missing} {MODEL}"
    figures = ". ".join(", ".join(_modelled_lines(place, state)) for place in timed)
    return PlotModel(
        name=f"Roofline of {roof.gpu.name}",
        x=Axis("FLOPs for each byte", _number, log=True),
        y=Axis("FLOP/s by model", _tick, log=True),
        curves=(_roof_curve(roof, low, high), *ways),
        marks=(*marks, *_roof_words(roof, low, high)),
        note=note,
        x_range=(low, high),
        y_range=(min(roof.at(low), *ys), max(roof.at(high), *ys)),
        summary=f"{note} {figures}.",
    )


def _modelled_lines(place: RooflinePoint, state: UnderRoof) -> tuple[str, ...]:
    assert place.duration is not None
    assert place.duration.dram_bytes is not None
    assert place.reached is not None
    assert place.dram_intensity is not None
    return (
        f"{ALGORITHMS[place.algorithm].title}, {_SIZES[place.phase]}",
        f"{count_text(place.flops)} FLOPs",
        f"{bytes_text(place.requested)} requested: {_number(place.intensity)} FLOP/B",
        f"DRAM {bytes_text(place.duration.dram_bytes)}: {_number(place.dram_intensity)} FLOP/B",
        f"{duration_text(place.duration)} on {state.roof.gpu.name}: {_flops(place.reached)}",
        f"limited by {limit_text(place.duration)}",
    )


def _roof_curve(roof: Roof, low: float, high: float) -> Curve:
    """Return the roof without a name: a column for it would take a third of a small panel."""
    xs = [low, high] if roof.ridge is None else [low, roof.ridge, high]
    return Curve("", "", "muted", tuple(xs), tuple(map(roof.at, xs)), marker=None, width=2.4)


def _roof_words(roof: Roof, low: float, high: float) -> list[PlotMark]:
    """Return the ridge point, and the words on the slope and on the level part."""
    band, end, out = rate_text(roof.bandwidth, "B/s"), roof.ridge or high, list[PlotMark]()
    slope = (low * end) ** 0.5
    if roof.ridge is not None:
        assert roof.rate is not None
        words, most = f"ridge: {_number(roof.ridge)} FLOP/B", _flops(roof.rate)
        details = (
            f"{roof.gpu.name}: ridge point",
            f"{most} / {band} = {_number(roof.ridge)} FLOP/B",
            "left of it bytes are the limit, right of it sums",
        )
        middle = (roof.ridge * high) ** 0.5
        out = [
            PlotMark(roof.ridge, roof.rate, words, "ridge", "muted", "cross", 4.0, details),
            PlotMark(middle, roof.rate, most, most, "muted", None),
        ]
    return [*out, PlotMark(slope, roof.at(slope), f"HBM {band}", band, "muted", None)]


def _intensity(place: RooflinePoint, state: UnderRoof) -> float:
    x = place.best_intensity if state.compulsory else place.intensity
    assert x is not None
    return x


def _run_mark(place: RooflinePoint, state: UnderRoof) -> PlotMark:
    x, name = _intensity(place, state), _name((place,))
    own = place.algorithm == state.shown and place.phase != "decode"
    return PlotMark(
        x,
        state.roof.at(x),
        f"{name} ≥ {time_text(_seconds(place, state))}",
        name,
        place.algorithm,
        _MARKERS[place.phase],
        6.0 if own else 4.5,
        _lines(place, state),
    )


def _named_together(marks: Sequence[PlotMark], state: UnderRoof) -> list[PlotMark]:
    """Return marks with one label for all in one place, because there is no space for more."""
    out, places = list(marks), state.runs.places
    for n, first in enumerate(marks):
        alike = [
            k
            for k, other in enumerate(marks)
            if abs(other.x - first.x) <= _SPOT * first.x
            and (places[k].phase == "decode") == (places[n].phase == "decode")
        ]
        if len(alike) == 1:
            continue
        if n > alike[0]:
            out[n] = replace(first, label="", short="")
            continue
        names = _name([places[k] for k in alike])
        spent = sorted(_seconds(places[k], state) for k in alike)
        said = " to ".join(dict.fromkeys((time_text(spent[0]), time_text(spent[-1]))))
        out[n] = replace(first, label=f"{names} ≥ {said}", short=names, role="muted")
    return out


def _name(places: Sequence[RooflinePoint]) -> str:
    """Return the names of runs with their phases; a backward pass has its phase in its name."""
    out = []
    for phase in dict.fromkeys(place.phase for place in places):
        names = ", ".join(place.algorithm for place in places if place.phase == phase)
        out.append(names if phase == "backward" else f"{names} {phase}")
    return ", ".join(out)


def _seconds(place: RooflinePoint, state: UnderRoof) -> float:
    """Return the time of a run at the highest rate that the roofline allows."""
    return place.flops / state.roof.at(_intensity(place, state))


def _lines(place: RooflinePoint, state: UnderRoof) -> tuple[str, ...]:
    assert place.compulsory is not None
    assert place.best_intensity is not None
    fast = ", bytes alone" if state.roof.rate is None else f", {bound_text(place.time)}"
    if state.compulsory:
        fast = ", were every byte moved once"
    return (
        f"{ALGORITHMS[place.algorithm].title}, {_SIZES[place.phase]}",
        f"{count_text(place.flops)} FLOPs",
        f"{bytes_text(place.requested)} requested: {_number(place.intensity)} FLOP/B",
        f"{bytes_text(place.compulsory)} minimum: {_number(place.best_intensity)} FLOP/B",
        f"{estimate_text(_seconds(place, state), state.roof.gpu.name)}{fast}",
        f"{_flops(state.roof.at(_intensity(place, state)))} within reach",
    )


def _part_mark(part: RooflinePoint, roof: Roof) -> PlotMark:
    details = (
        f"{ALGORITHMS[part.algorithm].title}, the run so far",
        f"{count_text(part.flops)} FLOPs",
        f"{bytes_text(part.requested)} requested: {_number(part.intensity)} FLOP/B",
        estimate_text(part.time.seconds, roof.gpu.name),
    )
    return PlotMark(
        part.intensity, roof.at(part.intensity), f"so far ≥ {time_text(part.time.seconds)}",
        "so far", "current", "star", 6.0, details,
    )  # fmt: skip


def _measured_mark(found: Roofline, one: Measured) -> PlotMark:
    place = found.place(one.algorithm, whole_phase(one.algorithm))
    details = (
        f"{ALGORITHMS[place.algorithm].title}, timed on {one.gpu}",
        f"{time_text(one.seconds)}: {_flops(one.rate)}",
        f"{_number(place.intensity)} FLOPs for each requested byte",
    )
    return PlotMark(
        place.intensity, one.rate, f"{one.algorithm} on {one.gpu}: {time_text(one.seconds)}",
        f"{one.algorithm} timed", one.algorithm, "ring", 5.0, details,
    )  # fmt: skip


_GPU_TIP = (
    "The GPU whose bandwidth and matrix rate are the roofs (Williams et al. 2009); the tiles stay "
    "those of the scenario."
)
CHOICES = (
    Choice("GPU", tuple(Option(name, name, name, _GPU_TIP) for name in gpus()), listed=True),
    Choice("bytes", (
        Option("requested", "Requested bytes", "Requested",
               "FLOPs for each byte that tile loads and stores request: no caches. Of the run on "
               "show also what it reaches for each byte of DRAM, by model."),
        Option("model", "DRAM by model", "Model",
               "What a run reaches by a model with L2 (docs/time-model.md): FLOPs for each byte of "
               "DRAM, and hollow for each requested byte."),
        Option("compulsory", "Minimum bytes", "Minimum",
               "FLOPs for each byte that has to move once: caches that miss nothing else."),
    )),
)  # fmt: skip


class RooflineStudy(Study[UnderRoof, UnderRoof]):
    """Prefill, backward passes and decode, and the run up to the cursor, on any GPU."""

    name, title, doing, choices = "roofline", "Roofline", "the roofline", CHOICES
    room = QSizeF(320, 230)

    def said(self, trace: Trace) -> Chosen:
        return {"GPU": trace.workload.gpu.name}

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        return chosen["GPU"], chosen["bytes"] == "model"

    def compute(self, trace: Trace, needs: Any, report: Report) -> UnderRoof:
        *_, last = self.results(trace, needs, report)
        return last

    def results(self, trace: Trace, needs: Any, report: Report) -> Iterator[UnderRoof]:
        w, program, (name, by_model) = trace.workload, trace.program, needs
        gpu = gpus()[name]
        if by_model:
            yield UnderRoof(timed_roofline(program, gpu), w.algorithm, by_model=True)
            return
        measured = measured_run(w, program.totals.flops, gpu_report())
        found = UnderRoof(roofline_of(program), w.algorithm, (measured,) if measured else ())
        yield found
        spent = duration_of(program if gpu is w.gpu else tile_program(replace(w, gpu=gpu)))
        yield replace(found, spent=spent)

    def state(
        self, found: UnderRoof, chosen: Chosen, before: UnderRoof | None, changed: str
    ) -> UnderRoof:
        return replace(
            found,
            runs=found.runs if found.by_model else found.runs.on(gpus()[chosen["GPU"]]),
            compulsory=chosen["bytes"] == "compulsory",
            so_far=None if before is None else before.so_far,
        )

    def follow(self, state: UnderRoof, view: View) -> UnderRoof:
        return replace(state, so_far=view.snapshot.counters)

    def plot(self, state: UnderRoof) -> PlotModel:
        return roofline_plot(state)


ROOFLINE = RooflineStudy()
