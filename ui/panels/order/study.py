"""Shuffled tokens, and how far they hear of each other: what the order of tokens does."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QSizeF

from simulator.run.trace import Trace
from simulator.study.order.choices import CHOICES, SHUFFLE
from simulator.study.order.state import (
    OrderFound,
    OrderState,
    ReachState,
    ShuffleState,
    layer_masks,
    reach_state,
    shuffle_state,
)
from ui.kit.boxes import Box
from ui.panels.order.pictures import reach, shuffle
from ui.panels.order.words import words
from ui.panels.study import Chosen, Slider, Study, Words
from ui.session.tasks import Report
from ui.session.view import View


class Order(Study[OrderFound, OrderState]):
    """Rows of O before and after a shuffle, or the tokens that one hears of through layers.

    What a token hears of lights up layer by layer.
    """

    name, title, doing = "order", "Token order", "shuffled tokens"
    pictured = "Shuffled tokens, or the reach of a token"
    choices, room, seconds = CHOICES, QSizeF(430, 240), 1.0
    slider = Slider(
        "global_layers", "Global layers", "How many of the layers are global, evenly spread.",
        "global_layers",
    )  # fmt: skip

    def hidden(self, trace: Trace, chosen: Chosen) -> frozenset[str]:
        shuffles = chosen["view"] == SHUFFLE
        return frozenset({"window", "layers", "global_layers"} if shuffles else {"places", "seed"})

    def needs(self, trace: Trace, view: View, chosen: Chosen) -> Hashable:
        if chosen["view"] != SHUFFLE:
            return (int(chosen["window"]),)
        head, _ = trace.workload.single(view.snapshot.visit.head, view.report.row)
        return head, chosen["places"], int(chosen["seed"])

    def compute(self, trace: Trace, needs: Any, report: Report) -> OrderFound:
        w, inputs = trace.single_heads
        return shuffle_state(w, inputs, *needs) if len(needs) > 1 else layer_masks(w, *needs)

    def state(
        self, found: OrderFound, chosen: Chosen, before: OrderState | None, changed: str
    ) -> OrderState:
        head, row = (0, 0) if before is None else (before.head, before.row)
        if isinstance(found, ShuffleState):
            return found.at(head, row)
        count = before.count if isinstance(before, ReachState) else 0
        return reach_state(found, head, row, int(chosen["layers"]), count)

    def follow(self, state: OrderState, view: View) -> OrderState:
        w = view.snapshot.program.workload
        return state.at(*w.single(view.snapshot.visit.head, view.report.row))

    def press(self, state: OrderState, at: Hashable) -> OrderState | None:
        if not isinstance(state, ReachState) or not isinstance(at, int):
            return None
        w = state.masks.workload
        row = at - w.mask.first_position
        return state.at(state.head, row) if 0 <= row < w.seqlen_q else None

    def explains(self, before: OrderState, after: OrderState) -> tuple[int, int] | None:
        same = (before.head, before.row) == (after.head, after.row)
        return None if same else (after.head, after.row)

    def mark(self, state: OrderState) -> tuple[int, int]:
        return (state.count, state.depth) if isinstance(state, ReachState) else (0, 0)

    def marked(self, state: OrderState, value: int) -> OrderState:
        if isinstance(state, ShuffleState) or value == state.count:
            return state
        return reach_state(state.masks, state.head, state.row, state.depth, value)

    def moves(self, before: OrderState, after: OrderState) -> bool:
        if not isinstance(before, ReachState) or not isinstance(after, ReachState):
            return False
        asked = {(each.token, each.masks.window, each.layers.is_global) for each in (before, after)}
        return before.masks.workload is after.masks.workload and len(asked) > 1

    def on_the_way(self, state: OrderState, share: float) -> OrderState:
        return replace(state, share=share) if isinstance(state, ReachState) else state

    def words(self, state: OrderState) -> Words:
        return words(state)

    def picture(self, state: OrderState) -> Box | None:
        if isinstance(state, ReachState):
            return reach(state)
        return None if state.found is None else shuffle(state, state.found)


ORDER = Order()
