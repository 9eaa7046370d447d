"""What is said of the order of tokens: rows that follow theirs, and of whom a token hears."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulator.problem.workload import Workload
from simulator.study.order.choices import CHOICES
from simulator.study.order.state import OrderState, ReachState, ShuffleState
from ui.look.units import count_text, number_text, plural
from ui.panels.study import Words

_PLACES = {each.value: each.text for each in CHOICES[1].options}


def words(state: OrderState) -> Words:
    """Return what stands around the picture."""
    if isinstance(state, ShuffleState):
        return Words(_shuffle_title(state), sentences=tuple(_shuffle_sentences(state)))
    return Words(_reach_title(state), sentences=tuple(_reach_sentences(state)))


def names_of(w: Workload, tokens: int) -> list[str]:
    """Return the first tokens, or their numbers where they have no names."""
    return [w.key_token(each) or count_text(each) for each in range(tokens)]


def _name(w: Workload, token: int) -> str:
    """Return a token in words: ``“it”``, or ``token 8``."""
    word = w.key_token(token)
    return f"“{word}”" if word else f"token {count_text(token)}"


def _shuffle_title(state: ShuffleState) -> tuple[str, ...]:
    w, kind = state.workload, f"with {_PLACES[state.places]}"
    if state.places == "run":
        parts = [*(["its mask"] if w.mask.hides else []), *(["a bias"] if w.biased else []),
                 *(["positions"] if w.position else [])]  # fmt: skip
        kind = f"in this run, {'with ' * bool(parts)}{' and '.join(parts) or 'no mask'}"
    head = f"O of head {w.picked[state.head]} before and after a shuffle"
    return f"Rows of {head}, {kind}", head, "O before and after"


def _shuffle_sentences(state: ShuffleState) -> Iterator[str]:
    found = state.found
    if found is None:
        yield f"Tokens cannot be shuffled: {state.why}."
        return
    apart = found.apart
    most = int(apart.argmax())
    if found.follows:
        off = f"is more than {number_text(float(apart[most]), 3)} of a row's length from"
        yield (
            f"Every row follows its token: no row {off if apart[most] else 'has moved at all from'}"
            f" where it was, rounding allows {number_text(found.bound, 3)}."
        )
        yield "Attention sums over a set: without a mask or positions it knows no order."
        return
    changed = int((apart > found.bound).sum())
    yield (
        f"{count_text(changed)} of {plural(len(apart), 'row')} {'is' if changed == 1 else 'are'} "
        f"others now, most of all that of {_name(state.workload, most)}: {100 * apart[most]:.0f} % "
        "of a row's length away."
    )
    yield (
        "What a token reads depends on where it stands: this is all that tells a model the order "
        "of words."
    )


def _reach_title(state: ReachState) -> tuple[str, ...]:
    name, layers = _name(state.masks.workload, state.token), plural(state.depth, "layer")
    some = f"{state.count or 'none'} of them global"
    through = f"through {layers}, {some}"
    return f"Of which tokens {name} can hear {through}", f"The reach of {name} {through}"


def _reach_sentences(state: ReachState) -> Iterator[str]:
    w, window, reached = state.masks.workload, state.masks.window, state.cone[0]
    name, far = _name(w, state.token), int(np.abs(np.flatnonzero(reached) - state.token).max())
    alone = f"; with local layers alone of {count_text(state.alone)}" if state.count else ""
    yield (
        f"{name[0].upper()}{name[1:]} hears of {count_text(reached.sum())} of "
        f"{plural(state.tokens, 'token')}, as far as {plural(far, 'token')} away{alone}."
    )
    local = f"a window of {count_text(window)}" if window else "what this run's mask shows"
    every = ", every token before it in global ones" if state.count else ""
    yield (
        "A token keeps what it has and adds, in each layer, what its row sees: "
        f"{local} in local layers{every}."
    )
    if w.seqlen_k > state.tokens:
        yield f"Shown are the first {count_text(state.tokens)} of {count_text(w.seqlen_k)} tokens."
