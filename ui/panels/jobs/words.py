"""Words on the jobs of heads, on how unlike heads are, and on a head that is off."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simulator.study.jobs.jobs import JOBS
from simulator.study.jobs.report import HeadName, HeadReport, Training
from ui.kit.shapes import Wordings
from ui.look.units import count_text, number_text, plural

NO_KEY = "–"
"""The text of a job that no row can do: its keys are hidden, or there are no tokens."""
_LOSSES = (
    ("again", ("loss, next known", "loss, known", "known")),
    ("sentences", ("loss, sentences", "loss, sent.", "sent.")),
)
_NARROW = {
    "previous": "prev.", "next": "next", "first": "first", "self": "self", "same": "same",
    "induction": "ind.",
}  # fmt: skip
"""Names of the jobs where there is hardly any room."""
_GOES = {"next": 6, "self": 5, "first": 4, "same": 3}
"""The order in which columns are left out if short headings have no room: the largest first."""
_WEIGHT = "mean weight on the", "weight on the", "weight"
_ALONE = "without it alone", "without it", "if off"


@dataclass(frozen=True, slots=True)
class JobColumn:
    """A column of the table: headings, longest first, and the cell of each head."""

    headings: tuple[str, ...]
    texts: tuple[str, ...]
    values: tuple[float, ...] = ()  # of a job: 0 to 1, for the colour
    after: tuple[str, str] = ("", "")  # the score of equal keys, and the loss with every head on
    group: Wordings = _ALONE  # the heading above this column and its neighbours
    goes: int = 0


def columns(report: HeadReport) -> Iterator[JobColumn]:
    """Yield the columns of the table."""
    for n, job in enumerate(JOBS):
        values = tuple(float(score) for score in report.jobs.scores[:, n])
        even = score_text(float(report.jobs.even[n]))
        names = job.title, job.short, _NARROW[job.name]
        yield JobColumn(names, tuple(map(score_text, values)), values, (even, ""), _WEIGHT,
                        _GOES.get(job.name, 0))  # fmt: skip
    if report.shares is not None:
        shares = (NO_KEY if math.isnan(each) else f"{100 * each:.0f} %" for each in report.shares)
        yield JobColumn(("Y moves", "Y"), tuple(shares), goes=2)
    training = report.training
    if training is None:
        return
    for kind, headings in _LOSSES:
        if kind in training.whole.loss:
            texts = tuple(f"{each.loss[kind]:.3f}" for each in training.without)
            after = "", f"{training.whole.loss[kind]:.3f}"
            yield JobColumn(headings, texts, after=after, goes=int(kind == "sentences"))


def title(report: HeadReport) -> str:
    """Return the title of the table."""
    training, count = report.training, plural(len(report.heads), "head")
    if training is None:
        whole = report.layers and not report.part
        return f"Jobs of all {count} of the model" if whole else f"Jobs of {count}"
    after = f" after {plural(training.step, 'step')}" if training.trained else ""
    return f"Jobs of all {count} of the model{after}"


def notes(report: HeadReport) -> Iterator[str]:
    """Yield notes that a reader of the table needs, the most important first."""
    training = report.training
    if report.part:
        yield f"{report.part}."
    if training is None and report.layers and (best := "; ".join(_best(report))):
        yield f"The largest scores: {best}."
    if training is not None and training.off is not None:
        yield _without(report, training)
    yield "A score is the weight on keys of that kind, a mean over the rows that see any."
    unseen = [
        each.headings[0].lower()
        for each in columns(report)
        if each.values and set(each.texts) == {NO_KEY}
    ]
    if report.cross:
        yield f"{NO_KEY}: queries are of another text, so none has a key of its own place."
    elif unseen:
        yield f"{NO_KEY} under {', '.join(unseen)}: no row sees keys of that kind."
    if not report.cross:
        yield (
            "Induction: the key after an earlier occurrence of the row's token."
            if report.tokens
            else "Without tokens only places count."
        )
    if training is None and len(report.heads) > 1:
        more = "; one of another layer brings that layer" if report.layers else ""
        yield f"Click a head to see it on the board{more}."
    if report.shares is not None:
        yield "Y moves: by how much of its length, if the head gives zeros."
    if training is not None:
        more = ", and in sentences" if "sentences" in training.whole.loss else ""
        yield (
            f"Loss in nats a word: where a repeated sequence says a word again{more}. Click a head "
            "to switch it off."
        )


def _best(report: HeadReport) -> Iterator[str]:
    """Yield the head with the largest score in each job that tells something about training."""
    for job in JOBS:
        scores = report.jobs.of(job.name)
        if job.name in ("previous", "first", "induction") and not np.isnan(scores).all():
            best = int(np.nanargmax(scores))
            yield f"{job.title} {score_text(float(scores[best]))}, {head_name(report.heads[best])}"


def _without(report: HeadReport, training: Training) -> str:
    """Return the changes that the head that is off makes."""
    assert training.off is not None
    before, after, out = training.whole, training.now, list[str]()
    scores = before.jobs.of("induction"), after.jobs.of("induction")
    if not np.isnan(scores[0]).all():
        best = int(np.nanargmax(scores[0]))
        both = [score_text(float(each[best])) for each in scores]
        if len(set(both)) > 1:
            out.append(f"induction of {head_name(report.heads[best])} from {' to '.join(both)}")
    if "again" in before.loss:
        ends = " to ".join(f"{each.loss['again']:.3f}" for each in (before, after))
        out.append(f"loss where the next word is known from {ends}.")
    return f"Without {head_name(training.off)}: {', '.join(out)}"


def rows(report: HeadReport) -> Iterator[str]:
    """Yield the rows of the table, for screen readers."""
    table = list(columns(report))
    for at, head in enumerate(report.heads):
        cells = (f"{c.headings[0]} {c.texts[at]}" for c in table if c.texts[at] != NO_KEY)
        yield f"{head_name(head)}: {', '.join(cells)}"


def pairs(report: HeadReport) -> tuple[str, ...]:
    """Return the heads that are least and most unlike."""
    count = len(report.heads)
    if count < 2:
        return ("One head: there is none to compare it with.",)
    a, b = np.tril_indices(count, -1)
    order = np.argsort(report.distances[a, b], kind="stable")
    out = []
    for words, at in (("most alike", order[0]), ("least alike", order[-1])):
        first, second = sorted((int(a[at]), int(b[at])))
        value = number_text(float(report.distances[first, second]), 2)
        names = " and ".join(head_name(report.heads[n]) for n in (first, second))
        out.append(f"{value}, {words}: {names}")
    return (
        *out,
        "Jensen–Shannon divergence of two heads' weights in bits, a mean over rows: 0 for the "
        "same map, 1 if no key is read by both.",
    )


def head_name(head: HeadName) -> str:
    """Return a head in words: ``layer 1 head 3``, or ``head 3``."""
    layer, number = head
    return f"head {number}" if layer is None else f"layer {layer} head {number}"


def short_name(head: HeadName) -> str:
    """Return a head in few letters: ``1·3``, or ``3``."""
    layer, number = head
    return count_text(number) if layer is None else f"{layer}·{number}"


def score_text(value: float) -> str:
    """Return a score."""
    return NO_KEY if math.isnan(value) else f"{value:.2f}"
