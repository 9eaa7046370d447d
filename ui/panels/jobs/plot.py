"""Curves over training: the best head's score of each layer in a job, and the loss."""

from __future__ import annotations

from simulator.study.jobs.attention_only import TrainingFigures
from simulator.study.jobs.jobs import JOBS
from simulator.study.jobs.report import HeadReport, Training
from simulator.study.jobs.trained import KINDS, TrainedVariant, TrainedVariants
from ui.look.units import count_text, number_text, plural
from ui.panels.jobs.words import head_name
from ui.plots.model import Axis, Curve, Dash, Level, Marker, PlotModel

_SHOWN: tuple[tuple[str, str, Dash, Marker], ...] = (
    ("previous", "Q", "dash", "square"),
    ("induction", "P", "solid", "circle"),
)
"""The jobs whose curves are drawn: induction needs a head with the job ``previous``."""
_LOSSES: tuple[tuple[str, str, str, Dash, Marker], ...] = (
    ("again", "next known", "O", "solid", "circle"),
    ("sentences", "sentences", "K", "dash", "square"),
)


_VARIANTS: dict[str, tuple[str, str, str, Dash, Marker]] = {
    "usual": ("4 heads", "4 heads", "O", "solid", "circle"),
    "no root": ("4 heads, no √d", "4, no √d", "S", "dash", "square"),
    "one head": ("1 head", "1 head", "K", "solid", "triangle"),
    "one head, no root": ("1 head, no √d", "1, no √d", "l", "dash", "diamond"),
    "MQA": ("4 heads, 1 KV head", "1 KV head", "Q", "dashdot", "ring"),
}
"""Names of variants, and how their curves look."""
_KIND_WORDS = {"again": "next known", "sentences": "sentences"}


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
            x=Axis("steps of training", count_text, whole=True),
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


def variant_plots(found: TrainedVariants) -> tuple[PlotModel, PlotModel]:
    """Return the losses of variants over training: for known next words, and for sentences."""
    said = {
        kind: "; ".join(
            f"{_VARIANTS[each.name][0]} {number_text(float(each.mean(kind)[-1]), 3)}"
            for each in found.variants
        )
        for kind in KINDS
    }
    runs = f"Means of {plural(len(found.seeds), 'run')} each."
    notes = {
        "again": f"Loss where the next word is known, at the end: {said['again']}.",
        "sentences": f"In new sentences: {said['sentences']}. {runs}",
    }
    models = []
    for kind in KINDS:
        curves = tuple(_variant_curve(found, each, kind) for each in found.variants)
        top = max(max(curve.ys) for curve in curves)
        models.append(
            PlotModel(
                name=f"loss of variants, {_KIND_WORDS[kind]}",
                x=Axis("steps of training", count_text, whole=True),
                y=Axis(f"loss, {_KIND_WORDS[kind]}", lambda value: f"{value:.1f}"),
                curves=curves,
                note=notes[kind],
                y_range=(0.0, top),
                summary=" ".join(notes.values()),
            )
        )
    return models[0], models[1]


def _variant_curve(found: TrainedVariants, one: TrainedVariant, kind: str) -> Curve:
    name, short, role, dash, marker = _VARIANTS[one.name]
    values = tuple(map(float, one.mean(kind)))
    details = tuple(
        (
            name,
            f"after {plural(step, 'step')}: {number_text(value, 3)} nats a word",
            f"seeds {' and '.join(number_text(float(each), 3) for each in own)}",
        )
        for step, value, own in zip(found.steps, values, one.of(kind).T, strict=True)
    )
    return Curve(
        name, short, role, tuple(map(float, found.steps)), values, dash, marker, details=details
    )


def _steps(training: Training) -> tuple[float, ...]:
    return tuple(float(each.step) for each in training.course)


def _ends(values: tuple[float, ...], digits: int) -> str:
    """Return the first and the last value of a curve."""
    return " to ".join(dict.fromkeys(number_text(n, digits) for n in (values[0], values[-1])))


def _after(found: TrainingFigures) -> str:
    return f"after {plural(found.step, 'step')}"


def _picks(training: Training) -> tuple[object, ...]:
    return tuple(each.step for each in training.course)


def _here(training: Training) -> tuple[Level, ...]:
    return (Level(float(training.step), "this run", "here", "current", across=False),)
