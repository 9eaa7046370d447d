"""Curves over training: what the best head of each layer scores in a job, and the loss."""

from __future__ import annotations

from simulator.study.jobs.attention_only import TrainingFigures
from simulator.study.jobs.jobs import JOBS
from simulator.study.jobs.report import HeadReport, Training
from ui.look.units import count_text, number_text, plural
from ui.panels.jobs.words import head_name
from ui.plots.model import Axis, Curve, Dash, Level, Marker, PlotModel

_SHOWN: tuple[tuple[str, str, Dash, Marker], ...] = (
    ("previous", "Q", "dash", "square"),
    ("induction", "P", "solid", "circle"),
)
"""The jobs whose curves are drawn: induction needs the head of the one before."""
_LOSSES: tuple[tuple[str, str, str, Dash, Marker], ...] = (
    ("again", "next known", "O", "solid", "circle"),
    ("sentences", "sentences", "K", "dash", "square"),
)


def course_plots(report: HeadReport, training: Training) -> tuple[PlotModel, PlotModel]:
    """Return the scores of the best head of each job, and the losses, over training.

    Both have the same axis of steps, so that one sees what happens together.
    """
    scores, best = _score_curves(report, training)
    losses, said = _loss_curves(training)
    named = f"Without {head_name(training.off)}, best heads" if training.off else ""
    cited = "" if named else " (Olsson et al. 2022)"
    notes = (
        f"{named or 'Best heads'}: {', '.join(best)}{cited}.",
        f"Loss in nats a word: {', '.join(said)}. A click opens the layer at that moment.",
    )
    tops = 1.0, max((value for curve in losses for value in curve.ys), default=1.0)
    names = ("score", "loss, nats")
    first, second = (
        PlotModel(
            name=f"{name} over training",
            x=Axis("steps of training", lambda value: count_text(round(value)), whole=True),
            y=Axis(name, lambda value: f"{value:.1f}"),
            curves=curves,
            beside=others,
            levels=_here(training),
            note=note,
            y_range=(0.0, top),
            summary=" ".join(notes),
        )
        for name, curves, others, note, top in zip(
            names, (scores, losses), (losses, scores), notes, tops, strict=True
        )
    )
    return first, second


def _score_curves(report: HeadReport, training: Training) -> tuple[tuple[Curve, ...], list[str]]:
    curves, said = [], []
    titles = {job.name: job.title for job in JOBS}
    for name, role, dash, marker in _SHOWN:
        best = [int(each.jobs.of(name).argmax()) for each in training.course]
        values = tuple(
            float(each.jobs.of(name)[at]) for each, at in zip(training.course, best, strict=True)
        )
        details = tuple(
            (_after(each), f"{titles[name]}: {number_text(value, 3)}", head_name(report.heads[at]))
            for each, at, value in zip(training.course, best, values, strict=True)
        )
        curves.append(
            Curve(titles[name], name, role, _steps(training), values, dash, marker,
                  details=details, picks=_picks(training))
        )  # fmt: skip
        said.append(f"{titles[name]} {_ends(values, 2)}")
    return tuple(curves), said


def _loss_curves(training: Training) -> tuple[tuple[Curve, ...], list[str]]:
    curves, said = [], []
    for kind, name, role, dash, marker in _LOSSES:
        if kind not in training.whole.loss:
            continue
        values = tuple(each.loss[kind] for each in training.course)
        details = tuple(
            (_after(each), f"loss, {name}: {number_text(value, 3)}")
            for each, value in zip(training.course, values, strict=True)
        )
        curves.append(
            Curve(name, name, role, _steps(training), values, dash, marker, details=details,
                  picks=_picks(training))
        )  # fmt: skip
        said.append(f"{name} {_ends(values, 3)}")
    return tuple(curves), said


def _steps(training: Training) -> tuple[float, ...]:
    return tuple(float(each.step) for each in training.course)


def _ends(values: tuple[float, ...], digits: int) -> str:
    """Return from what to what a curve goes."""
    return " to ".join(dict.fromkeys(number_text(n, digits) for n in (values[0], values[-1])))


def _after(found: TrainingFigures) -> str:
    return f"after {plural(found.step, 'step')}"


def _picks(training: Training) -> tuple[object, ...]:
    return tuple(each.step for each in training.course)


def _here(training: Training) -> tuple[Level, ...]:
    return (Level(float(training.step), "this run", "here", "current", across=False),)
