"""Sequences of a server in pages of one cache (Kwon et al. 2023): the Pages dock."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QSizeF

from simulator.base.choices import one_of
from simulator.run.trace import Trace
from simulator.study.pages.by_hand import FIRST, KINDS, CacheMove, may
from simulator.study.pages.choices import CHOICES, HAND, RUN, SERVER, SHARED
from simulator.study.pages.state import PagesState, hand_state, pages_state, run_state
from ui.kit.boxes import Box
from ui.panels.pages.picture import cache
from ui.panels.pages.words import sentences, title
from ui.panels.study import Act, Chosen, Slider, Study, Words
from ui.session.tasks import Report
from ui.session.view import View

_ACTS = (
    Act("admit", "Admit", "A new sequence: it takes pages for its prompt, or waits."),
    Act("grow", "Grow", "One token more for the chosen sequence. Without room it takes a page, "
        "and it copies a page that others read."),
    Act("fork", "Fork",
        "Another sequence with the same pages: one is copied when it is written to."),
    Act("end", "End", "The chosen sequence ends; pages that nobody else reads are free again."),
    Act("undo", "Undo", "Take the last move back."),
    Act("reset", "Reset", "One sequence alone."),
)  # fmt: skip


class Pages(Study[PagesState, PagesState]):
    """A server's cache, step by step; that of the run; or one that is changed by hand."""

    name, title, doing, pictured = "pages", "Pages", "pages of a cache", "Pages of a cache"
    choices, acts, room = CHOICES, _ACTS, QSizeF(460, 330)
    slider = Slider("step", "Step", "The step: each running sequence gets one token more.")

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        acts = frozenset(each.name for each in _ACTS)
        return {SERVER: acts, HAND: frozenset({"prompts", "step"}),
                RUN: acts | {"page", "prompts", "step"}}[_shown(trace, chosen)]  # fmt: skip

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        return _shown(trace, chosen), int(chosen["page"]), chosen["prompts"] == SHARED

    def compute(self, trace: Trace, needs: Any, report: Report) -> PagesState:
        shown, page, sharing = needs
        found = run_state(trace.workload) if shown == RUN else None
        if found is None and shown == HAND:
            return hand_state(page, FIRST, 0)
        return found or pages_state(page, sharing=sharing)

    def state(
        self, found: PagesState, chosen: Chosen, before: PagesState | None, changed: str
    ) -> PagesState:
        if before is None:
            return found
        # Other pages may have kept other sequences, whose moves would be about nobody.
        made = before.made if before.server.page == int(chosen["page"]) else FIRST
        if found.by_hand:
            return hand_state(found.server.page, made, before.chosen)
        return replace(found, made=made)

    def mark(self, state: PagesState) -> tuple[int, int]:
        return state.step, state.steps - 1

    def marked(self, state: PagesState, value: int) -> PagesState:
        return replace(state, step=min(value, state.steps - 1))

    def press(self, state: PagesState, at: Hashable) -> PagesState | None:
        """Choose a sequence; of several that read a place the one after the chosen one."""
        if not (state.by_hand and isinstance(at, tuple)):
            return None
        what, n = at
        if what == "place":
            here = state.readers(n)
            readers = [k for k, each in enumerate(state.now.running) if each in here]
            n = next((k for k in readers if k > state.chosen), next(iter(readers), None))
        return None if n is None else hand_state(state.server.page, state.moves, n)

    def act(self, state: PagesState, name: str) -> PagesState | None:
        moves, made = state.moves, tuple[CacheMove, ...]()
        if name == "reset":
            made = FIRST
        elif name == "undo":
            made = moves[:-1]
        elif state.by_hand:
            kind = one_of(KINDS, name)
            move = CacheMove(kind, 0 if kind == "admit" else state.chosen)
            made = (*moves, move) if may(state.now, move) else ()
        return hand_state(state.server.page, made, state.chosen) if made else None

    def words(self, state: PagesState) -> Words:
        return Words(title(state), "", sentences(state))

    def picture(self, state: PagesState) -> Box:
        return cache(state)


PAGES = Pages()


def _shown(trace: Trace, chosen: Chosen) -> str:
    """Return whose cache is shown: a run without pages has none."""
    return SERVER if chosen["cache"] == RUN and trace.workload.pages is None else chosen["cache"]
