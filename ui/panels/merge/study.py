"""Partials of a row merged in any order (Dao et al. 2023), and sums of a gradient added up so."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import Qt

from simulator.run.trace import Trace
from simulator.study.merge.block_sums import BlockSums, block_sums
from simulator.study.merge.by_hand import RowMerge, row_merge
from simulator.study.merge.choices import CHOICES, PARTIALS, SUMS
from simulator.study.merge.gradient_sums import adds_to_rows
from ui.kit.boxes import Box
from ui.panels.merge.pictures import numbers, tree
from ui.panels.merge.words import bits_of, trees, words_of_partials, words_of_sums
from ui.panels.study import Chosen, Study, Words
from ui.session.tasks import Report
from ui.session.view import View

Found = tuple[RowMerge, BlockSums | None]


@dataclass(frozen=True, eq=False)
class MergeState:
    """Partials of a row, and of a backward pass the sums of its row block."""

    partials: RowMerge
    sums: BlockSums | None = None
    subject: str = SUMS  # what is shown, if there are both

    @property
    def shown(self) -> RowMerge | BlockSums:
        """What is shown."""
        return self.partials if self.sums is None or self.subject == PARTIALS else self.sums

    def chosen(self, name: str, value: str) -> MergeState:
        """Return the state after a choice."""
        if name == "subject":
            return replace(self, subject=value)
        if name == "order":
            return replace(self, partials=self.partials.ordered(value))
        if name == "lse":
            return replace(self, partials=self.partials.with_lse(value))
        return replace(self, sums=self.sums and self.sums.ordered(value))


class MergeStudy(Study[Found, MergeState]):
    """Partials of the selected row, and of a run whose tiles add to sums in HBM these sums."""

    name, title, doing = "merge", "Merge", "partials of a row"
    pictured = "Partials of a row, or sums of gradients"
    choices, smallest, share = CHOICES, 0.92, 0.5

    def lesson(self, said: Chosen) -> Chosen:
        return {
            **super().lesson(said),
            "subject": PARTIALS if {"order", "lse"} & said.keys() else SUMS,
        }

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        if not adds_to_rows(trace):
            return frozenset({"subject", "sums"})
        return frozenset({"order", "lse"} if chosen["subject"] == SUMS else {"sums"})

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        return view.snapshot.visit.head, view.report.row

    def compute(self, trace: Trace, needs: Any, report: Report) -> Found:
        head, row = needs
        block = row // trace.workload.rows
        sums = block_sums(trace, head, block) if adds_to_rows(trace) else None
        return row_merge(trace, head, row), sums

    def state(
        self, found: Found, chosen: Chosen, before: MergeState | None, changed: str
    ) -> MergeState:
        if before is not None and changed:
            return before.chosen(changed, chosen[changed])
        state = MergeState(*found, chosen["subject"])
        for name in ("order", "lse", "sums"):
            state = state.chosen(name, chosen[name])
        return state

    def key(self, state: MergeState, key: Qt.Key, *, ctrl: bool) -> MergeState | None:
        merge = state.shown
        if not isinstance(merge, RowMerge) or merge.parts is None:
            return None
        turn = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(key)
        if turn is not None:
            merge = merge.shift(turn) if ctrl else merge.select(turn)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            merge = merge.merge(merge.selected + 1, merge.selected)
        elif key is Qt.Key.Key_Backspace:
            merge = merge.take_back()
        else:
            return None
        return replace(state, partials=merge)

    def press(self, state: MergeState, at: Hashable) -> MergeState | None:
        match at:
            case int():
                return replace(state, partials=replace(state.partials, selected=at))
            case ("sum", int(row), int(column)) if state.sums is not None:
                return replace(state, sums=replace(state.sums, chosen=(row, column)))
        return None

    def drag(self, state: MergeState, one: Hashable, onto: Hashable) -> MergeState | None:
        if isinstance(one, int) and isinstance(onto, int):
            return replace(state, partials=state.partials.merge(one, onto))
        return None

    def takes(self, before: MergeState, after: MergeState) -> Chosen:
        return {"order": ""} if before.partials.forest != after.partials.forest else {}

    def words(self, state: MergeState) -> Words:
        shown = state.shown
        return words_of_partials(shown) if isinstance(shown, RowMerge) else words_of_sums(shown)

    def described(self, state: MergeState) -> tuple[str, ...]:
        (title, *said), shown = super().described(state), state.shown
        if isinstance(shown, RowMerge):
            return title, trees(shown), *said
        return title, bits_of(shown) if shown.sums is not None else "", *said

    def picture(self, state: MergeState) -> Box | None:
        shown = state.shown
        if isinstance(shown, RowMerge):
            return None if shown.parts is None else tree(shown)
        return None if shown.sums is None else numbers(shown)


MERGE = MergeStudy()
