"""What the jobs panel shows, as plain data, and its words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.study.jobs.attention_only import Head
from simulator.study.jobs.jobs import JOBS
from simulator.study.jobs.report import HeadReport
from ui.look.units import count_text, number_text, plural

NO_KEY = "–"
"""The text of a job that no row can do: its keys are hidden, or there are no tokens."""
_LOSSES = (
    ("again", "loss, next known", "loss, known", "known"),
    ("sentences", "loss, sentences", "loss, sent.", "sent."),
)
_NARROW = {
    "previous": "prev.", "next": "next", "first": "first", "self": "self", "same": "same",
    "induction": "ind.",
}  # fmt: skip
"""The jobs where there is hardly any room."""
ALIKE, EVERY = "all keys alike", "every head on"
"""Rows after the heads: what one without a job would score, and the loss with all heads."""


@dataclass(frozen=True, slots=True)
class JobColumn:
    """One column of the table: its heading, longest first, and what each head has in it."""

    headings: tuple[str, ...]
    texts: tuple[str, ...]
    values: tuple[float, ...] = ()
    """Of a job: 0 to 1, for the colour; empty for what has none."""
    after: tuple[str, str] = ("", "")
    """What it has in the rows after the heads."""
    group: str = ""
    """What stands above its heading, and those of its neighbours."""


@dataclass(frozen=True)
class JobsState:
    """Everything that the pictures show.

    Attributes
    ----------
    report : HeadReport
        The figures.
    current : (int or None, int) or None
        The head that the board shows, as the report names it.
    """

    report: HeadReport
    current: tuple[int | None, int] | None = None

    @property
    def off(self) -> Head | None:
        """The head that is switched off."""
        training = self.report.training
        return None if training is None else training.off

    @property
    def rows_after(self) -> tuple[str, ...]:
        """The names of the rows after the heads."""
        return (ALIKE,) if self.report.training is None else (ALIKE, EVERY)

    def name(self, at: int) -> str:
        """Return a head's name."""
        return head_name(self.report.heads[at])

    @cached_property
    def columns(self) -> tuple[JobColumn, ...]:
        """The table."""
        report, jobs, out = self.report, self.report.jobs, []
        for n, job in enumerate(JOBS):
            values = tuple(float(score) for score in jobs.scores[:, n])
            texts = tuple(_score(score) for score in values)
            even = _score(float(jobs.even[n]))
            names = (job.title, job.short, _NARROW[job.name])
            out.append(JobColumn(names, texts, values, (even, "")))
        if report.shares is not None:
            moved = tuple(_percent(float(share)) for share in report.shares)
            out.append(JobColumn(("Y moves", "Y"), moved, group="without it alone"))
        training = report.training
        if training is not None:
            for kind, *headings in _LOSSES:
                if kind in training.whole.loss:
                    texts = tuple(_loss(each.loss[kind]) for each in training.without)
                    every = ("", _loss(training.whole.loss[kind]))
                    out.append(
                        JobColumn(tuple(headings), texts, after=every, group="without it alone")
                    )
        return tuple(out)

    @property
    def title(self) -> str:
        """The title of the table."""
        training, count = self.report.training, len(self.report.heads)
        if training is None:
            return f"Jobs of {plural(count, 'head')}"
        whole = f"Jobs of all {plural(count, 'head')} of the model"
        return f"{whole} after {plural(training.step, 'step')}" if training.trained else whole

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What one has to know to read the table, most important first."""
        report, training, out = self.report, self.report.training, []
        if report.part:
            out.append(f"{report.part}.")
        if training is not None and training.off is not None:
            out.append(self._without())
        out.append("A score is the weight on such keys, a mean over the rows that have one.")
        unseen = [
            column.headings[0].lower()
            for column in self.columns
            if column.values and all(text == NO_KEY for text in column.texts)
        ]
        if unseen and not report.cross:
            out.append(f"{NO_KEY} under {', '.join(unseen)}: no row sees such a key.")
        if report.cross:
            out.append(
                f"{NO_KEY}: queries are of another text, so none has a key of its own place."
            )
        elif report.tokens:
            out.append("Induction: the key after an earlier occurrence of the row's token.")
        else:
            out.append("Without tokens only places count.")
        if training is None and len(report.heads) > 1:
            out.append("Click a head to see it on the board.")
        if report.shares is not None:
            out.append("Y moves: by how much of its length, if the head gives zeros.")
        if training is not None:
            where = "where a repeated sequence says a word again"
            more = ", and in sentences" if "sentences" in training.whole.loss else ""
            out.append(f"Loss in nats a word: {where}{more}. Click a head to switch it off.")
        return tuple(out)

    def _without(self) -> str:
        training = self.report.training
        assert training is not None
        assert training.off is not None
        before, after = training.whole, training.now
        out = [f"Without {head_name(training.off)}:"]
        scores = before.jobs.of("induction"), after.jobs.of("induction")
        if not np.isnan(scores[0]).all():
            best = int(np.nanargmax(scores[0]))
            both = [_score(float(each[best])) for each in scores]
            if len(set(both)) > 1:
                out.append(f"induction of {self.name(best)} from {' to '.join(both)},")
        if "again" in before.loss:
            ends = " to ".join(_loss(each.loss["again"]) for each in (before, after))
            out.append(f"loss where the next word is known from {ends}.")
        return " ".join(out).rstrip(",")

    @property
    def summary(self) -> str:
        """The table in words, for screen readers."""
        rows = []
        for at in range(len(self.report.heads)):
            cells = ", ".join(
                f"{column.headings[0]} {column.texts[at]}"
                for column in self.columns
                if column.texts[at] != NO_KEY
            )
            rows.append(f"{self.name(at)}: {cells}")
        return ". ".join([self.title, *rows, *self.notes])

    @cached_property
    def pairs(self) -> tuple[str, ...]:
        """The heads that are least and most unlike, in words."""
        distances, count = self.report.distances, len(self.report.heads)
        if count < 2:
            return ("One head: there is none to compare it with.",)
        a, b = np.tril_indices(count, -1)
        order = np.argsort(distances[a, b], kind="stable")
        out = []
        for words, at in (("most alike", order[0]), ("least alike", order[-1])):
            first, second = sorted((int(a[at]), int(b[at])))
            value = number_text(float(distances[first, second]), 2)
            out.append(f"{value}, {words}: {self.name(first)} and {self.name(second)}")
        return (
            *out,
            "Jensen–Shannon divergence of two heads' weights in bits, a mean over rows: 0 for the "
            "same map, 1 if no key is read by both.",
        )

    @property
    def distance_summary(self) -> str:
        """The matrix in words, for screen readers."""
        return ". ".join([f"Distances of {plural(len(self.report.heads), 'head')}", *self.pairs])


def head_name(head: tuple[int | None, int]) -> str:
    """Return a head in words: ``layer 1 head 3``, or ``head 3``."""
    layer, number = head
    return f"head {number}" if layer is None else f"layer {layer} head {number}"


def short_name(head: tuple[int | None, int]) -> str:
    """Return a head in few letters: ``1·3``, or ``3``."""
    layer, number = head
    return count_text(number) if layer is None else f"{layer}·{number}"


def _score(value: float) -> str:
    return NO_KEY if math.isnan(value) else f"{value:.2f}"


def _loss(value: float) -> str:
    return f"{value:.3f}"


def _percent(share: float) -> str:
    return NO_KEY if math.isnan(share) else f"{100 * share:.0f} %"
