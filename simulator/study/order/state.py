"""The state of the order of tokens as shown: a shuffle, or the reach of layers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulator.problem.intervals import Bools
from simulator.problem.masks import Mask
from simulator.problem.workload import Inputs, Workload
from simulator.study.order.choices import USUAL_WINDOW
from simulator.study.order.reach import MOST_TOKENS, LayerStack, cone, global_layers, stack
from simulator.study.order.shuffle import Places, Shuffled, order_of, shuffle_why_not, shuffled


@dataclass(frozen=True, eq=False)
class ShuffleState:
    """A head whose tokens were shuffled."""

    workload: Workload  # the run, heads one by one
    head: int  # which head
    places: Places  # what depends on places
    found: Shuffled | None  # O before and after; None: `why` not
    why: str = ""  # why its tokens cannot be shuffled
    row: int = 0  # the token that is explained

    def at(self, head: int, row: int) -> ShuffleState:
        """Return the state with another row explained; for another head all is computed anew."""
        return self if row == self.row else replace(self, row=row)


def shuffle_state(
    w: Workload, inputs: Inputs, head: int, places: Places, seed: int
) -> ShuffleState:
    """Return a head before and after its tokens were shuffled; it takes two runs of the head."""
    why = shuffle_why_not(w)
    found = None if why else shuffled(w, inputs, head, order_of(w.seqlen_k, seed), places)
    return ShuffleState(w, head, places, found, why)


@dataclass(frozen=True, eq=False)
class LayerMasks:
    """The keys that rows see in local and in global layers, (tokens, tokens)."""

    workload: Workload  # the run, heads one by one
    window: int  # of local layers; 0: they have the run's own mask
    local: Bools
    everything: Bools


def layer_masks(w: Workload, window: int) -> LayerMasks:
    """Return the masks of local layers with a window, and of global layers.

    A window of 0 stands for the run's own mask if this hides more than later keys, else for the
    usual window.
    """
    n, causal = w.seqlen_k, w.mask.causal
    own = not window and w.queries == n and w.mask.hides and w.mask != Mask(n, n, causal=causal)
    window = 0 if own else window or USUAL_WINDOW
    local = w.mask if own else Mask(n, n, causal=True, window=window)
    found = stack(local, Mask(n, n, causal=causal or not own), ())
    return LayerMasks(w, window, found.local, found.everything)


@dataclass(frozen=True, eq=False)
class ReachState:
    """A token at the top of some layers, and the tokens of which it can hear."""

    masks: LayerMasks
    head: int  # head, row: the row that is explained
    row: int
    token: int  # at the top: the row's token, or in a long run one of the shown tokens
    layers: LayerStack
    cone: Bools  # the tokens of which it hears, (layers + 1, tokens), the last level at the top
    alone: int  # number of tokens that it hears of with local layers alone
    share: float = 1.0  # of the layers that have lit up, from the top

    @property
    def depth(self) -> int:
        """How many layers there are."""
        return len(self.layers.is_global)

    @property
    def count(self) -> int:
        """How many layers are global."""
        return sum(self.layers.is_global)

    @property
    def tokens(self) -> int:
        """How many tokens are shown."""
        return len(self.masks.local)

    @property
    def lit(self) -> float:
        """How many layers have lit up, from the top."""
        return self.share * self.depth

    def at(self, head: int, row: int) -> ReachState:
        """Return the reach of another row."""
        if (head, row) == (self.head, self.row):
            return self
        other = reach_state(self.masks, head, row, self.depth, self.count)
        return replace(other, share=self.share)


def reach_state(masks: LayerMasks, head: int, row: int, depth: int, count: int) -> ReachState:
    """Return the reach of a row's token through `depth` layers, `count` of them global."""
    w, spread = masks.workload, global_layers(depth, min(count, depth))
    layers = LayerStack(masks.local, masks.everything, spread)
    token = min(max(row + w.mask.first_position, 0), min(w.seqlen_k, MOST_TOKENS) - 1)
    alone = int(cone((masks.local,) * depth, token)[0].sum())
    return ReachState(masks, head, row, token, layers, cone(layers.tables, token), alone)


OrderFound = ShuffleState | LayerMasks
OrderState = ShuffleState | ReachState
