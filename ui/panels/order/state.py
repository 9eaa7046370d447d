"""What the order panel shows, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from simulator.problem.intervals import Bools
from simulator.problem.masks import Mask
from simulator.problem.workload import Inputs, Workload
from simulator.study.order.reach import (
    MOST_TOKENS,
    LayerStack,
    cone,
    global_layers,
    stack,
)
from simulator.study.order.shuffle import (
    Places,
    Shuffled,
    order_of,
    shuffle_why_not,
    shuffled,
)
from ui.look.units import count_text, number_text, plural

USUAL_WINDOW = 4
"""The window of local layers where the run's mask has nothing that is local."""


def token_name(w: Workload, token: int) -> str:
    """Return a token in words: ``“it”``, or ``token 8``."""
    word = w.key_token(token)
    return f"“{word}”" if word else f"token {count_text(token)}"


@dataclass(frozen=True, eq=False)
class ShuffleState:
    """A head whose tokens were shuffled."""

    workload: Workload  # the run, heads one by one
    head: int  # which head
    places: Places  # what depends on places
    row: int  # the token that is explained
    found: Shuffled | None  # O before and after; None: `why` not
    why: str = ""  # why its tokens cannot be shuffled

    @property
    def kind(self) -> str:
        """What depends on places, in words."""
        if self.places != "run":
            return {"none": "no mask, no positions", "causal": "a causal mask",
                    "rope": "rotary positions"}[self.places]  # fmt: skip
        w = self.workload
        parts = [*(["its mask"] if w.mask.hides else []), *(["a bias"] if w.biased else []),
                 *(["positions"] if w.position else [])]  # fmt: skip
        return f"this run, with {' and '.join(parts)}" if parts else "this run, no mask"

    @property
    def title(self) -> tuple[str, ...]:
        """The title, longest first."""
        head = f"head {self.workload.picked[self.head]}"
        return (f"Rows of O of {head} before and after a shuffle, with {self.kind}".replace(
                    "with this run,", "in this run,"),
                f"O of {head} before and after a shuffle", "O before and after")  # fmt: skip

    @property
    def words(self) -> tuple[str, ...]:
        """Sentences below the picture."""
        found = self.found
        if found is None:
            return (f"Tokens cannot be shuffled: {self.why}.",)
        apart = found.apart
        most = int(apart.argmax())
        if found.follows:
            off = f"is more than {number_text(float(apart[most]), 3)} of a row's length from"
            moved = off if apart[most] else "has moved at all from"
            return (
                f"Every row follows its token: no row {moved} where it was, rounding allows "
                f"{number_text(found.bound, 3)}.",
                "Attention sums over a set: without a mask or positions it knows no order.",
            )
        changed = int((apart > found.bound).sum())
        return (
            f"{count_text(changed)} of {plural(len(apart), 'row')} "
            f"{'is' if changed == 1 else 'are'} others now, most of all that of "
            f"{token_name(self.workload, most)}: {100 * apart[most]:.0f} % of a row's length away.",
            "What a token reads depends on where it stands: this is all that tells a model the "
            "order of words.",
        )


def shuffle_state(
    w: Workload, inputs: Inputs, head: int, row: int, places: Places, seed: int
) -> ShuffleState:
    """Return a head before and after its tokens were shuffled; it takes two runs of the head."""
    why = shuffle_why_not(w)
    found = None if why else shuffled(w, inputs, head, order_of(w.seqlen_k, seed), places)
    return ShuffleState(w, head, places, row, found, why)


@dataclass(frozen=True, eq=False)
class ReachState:
    """A token at the top of some layers, and those of which it can hear."""

    workload: Workload  # the run, heads one by one
    layers: LayerStack  # what rows see in each layer
    local_name: str  # the local layers' mask in words
    token: int  # the token at the top
    lit: float = 1e9  # how many layers have lit up, from the top

    @property
    def cone(self) -> Bools:
        """Tokens that a token can hear of, (layers + 1, tokens), the last level at the top."""
        return cone(self.layers.tables, self.token)

    @property
    def tokens(self) -> int:
        """How many tokens are shown."""
        return len(self.layers.local)

    @property
    def title(self) -> tuple[str, ...]:
        """The title, longest first."""
        name, layers = token_name(self.workload, self.token), len(self.layers.is_global)
        return (f"Of which tokens {name} can hear through {plural(layers, 'layer')}",
                f"The reach of {name}", "Reach")  # fmt: skip

    @property
    def words(self) -> tuple[str, ...]:
        """Sentences below the picture."""
        stacked, n = self.layers, len(self.layers.is_global)
        reached = self.cone[0]
        name = token_name(self.workload, self.token)
        alone = int(cone((stacked.local,) * n, self.token)[0].sum())
        count, globals_ = int(reached.sum()), sum(stacked.is_global)
        first = f"{name} hears of {count_text(count)} of {plural(self.tokens, 'token')}"
        far = int(np.abs(np.flatnonzero(reached) - self.token).max())
        first += f", as far as {plural(far, 'token')} away"
        if globals_:
            first += f"; with local layers alone of {count_text(alone)}"
        kept = "A token keeps what it has and adds, in each layer, what its row sees: "
        said = f"{self.local_name} in local layers"
        if globals_:
            said += ", every token before it in global ones"
        out = [f"{first[0].upper()}{first[1:]}.", f"{kept}{said}."]
        if self.workload.seqlen_k > self.tokens:
            whole = count_text(self.workload.seqlen_k)
            out.append(f"Shown are the first {count_text(self.tokens)} of {whole} tokens.")
        return tuple(out)


def is_local(w: Workload) -> bool:
    """Return whether the run's mask hides more than what comes later."""
    n = w.seqlen_k
    return w.queries == n and w.mask.hides and w.mask != Mask(n, n, causal=w.mask.causal)


def reach_state(w: Workload, token: int, window: int, layers: int, count: int) -> ReachState:
    """Return the reach of a token.

    Parameters
    ----------
    token : int
        At the top; of a long run one of those that are shown.
    window : int
        Of the local layers; 0 for the run's own mask if that is local, else `USUAL_WINDOW`.
    """
    n = w.seqlen_k
    own = not window and is_local(w)
    causal = w.mask.causal if own else True
    local = w.mask if own else Mask(n, n, causal=True, window=window or USUAL_WINDOW)
    name = "what this run's mask shows" if own else f"a window of {count_text(local.window)}"
    everything = Mask(n, n, causal=causal)
    found = stack(local, everything, global_layers(layers, min(count, layers)))
    token = min(max(token, 0), min(n, MOST_TOKENS) - 1)
    return ReachState(w, found, name, token)


def lit_to(state: ReachState, lit: float) -> ReachState:
    """Return the same with so many layers lit."""
    return replace(state, lit=lit)
