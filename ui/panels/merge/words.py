"""What is said of partials merged in any order, and of sums added up in any order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulator.study.merge.block_sums import TRIED, BlockSums
from simulator.study.merge.by_hand import RowMerge
from simulator.study.merge.choices import BASE_2, DRAWN, EMPTY, FIRST, MIXED
from simulator.study.merge.merging import ORDERS, Node, Parts, leaves
from ui.look.units import bytes_text, count_text, number_text, plural, ulp_text
from ui.panels.study import Words


def words_of_partials(state: RowMerge) -> Words:
    """Return how many partials a row has, where they come from, and how each order rounds."""
    parts = state.parts
    if parts is None:
        return Words(f"{state.row}: nothing to merge", sentences=(state.why,))
    count = f"{state.row}: {plural(len(parts.partials), 'partial')}"
    if parts.lse == MIXED:
        off = percent(parts.off(tuple(range(len(parts.partials)))))
        worst = f"LSE in base 2, merged as in base e, puts O {off} off"
        same = "Every order makes the same wrong O: comparing orders does not show it."
        said = [*_bases(state), same, _dealt(parts)]
        return Words((f"{count}: {worst}", worst), sentences=tuple(said))
    title = f"{count} of (m, ℓ, O), merged in any order to the same O up to rounding"
    size = plural(parts.exact.shape[1], "number")
    said = [*_bases(state), _dealt(parts)]
    for name, error, differ in state.rounding:
        other = f"; {differ} of {size} of O differ from the list's" if differ else ""
        said.append(f"{name}: {ulp_text(error)} from float64{other}")
    if not state.done:
        said.append(
            "Drag one onto another to merge them; arrows choose, Enter merges with the next."
        )
    return Words((title, f"{count}, merged in any order", count), sentences=tuple(said))


def _bases(state: RowMerge) -> Iterator[str]:
    """Return what other LSE than m + ln l make of O."""
    parts, two = state.parts, state.two
    assert parts is not None
    if parts.lse == EMPTY:
        *rest, _ = whole = list(range(len(parts.partials)))
        both = [
            [parts.result(order(nodes)).o for nodes in (whole, rest)] for order in ORDERS.values()
        ]
        moved = max(int(np.sum(one != other)) for one, other in both)
        bits = f"{moved} numbers of O have other bits" if moved else "O has the same bits"
        yield f"With a partial of no keys, whose O is 0 and LSE −∞, {bits} in every order."
        if two is not None and two.empty_stays_empty:
            yield "Two of no keys merge to O = 0 and LSE = −∞, not to NaN."
    elif parts.lse == BASE_2:
        yield "LSE in base 2, merged with powers of 2, makes the same O."
    elif parts.lse == MIXED and two is not None:
        keys, (right, wrong) = two.keys, two.shares
        of = f"A prefix of {plural(keys[0], 'key')} and a suffix of {count_text(keys[1])}"
        yield (
            f"{of}: the suffix weighs {percent(wrong)} in place of {percent(right)}, "
            f"O is {percent(two.off)} off."
        )


def percent(share: float) -> str:
    """Return a share in percent."""
    return f"{number_text(100 * share, 2)}\u00a0%"


def _dealt(parts: Parts) -> str:
    """Return where partials come from: they are not always the splits of the board."""
    if not parts.dealt_anew:
        return "Each partial is what a split of the run leaves."
    each = f"{plural(len(parts.keys[0]), 'key')} to a partial."
    if not parts.own_splits:
        return f"For this panel keys are dealt out, {each}"
    own = plural(parts.own_splits, "split")
    return f"The run has {own}: for this panel keys are dealt out anew, {each}"


def keys_of(state: RowMerge, node: Node) -> tuple[str, ...]:
    """Return the keys of a node, or how many partials it has; longest first."""
    assert state.parts is not None
    own = leaves(node)
    if len(own) > 1:
        return f"{len(own)} merged", f"{len(own)}"
    keys = state.parts.keys[own[0]]
    if not keys:
        return "no keys", "none", ""
    some = f"{keys.start}–{keys.stop - 1}"
    return f"keys {some}", some, f"{keys.start}", ""


def trees(state: RowMerge) -> str:
    """Return what has been merged, for screen readers."""
    return "; ".join(
        f"{keys_of(state, node)[0]} ({', '.join(map(str, leaves(node)))})" for node in state.forest
    )


def words_of_sums(state: BlockSums) -> Words:
    """Return which sums are shown, how many bits an order changes, and what an order costs."""
    if state.sums is None:
        return Words(f"{state.where}: nothing to add up", sentences=(state.why,))
    order = f"{state.order}, draw {state.seed + 1}" if state.order == DRAWN else state.order
    count = len(state.sums.columns)
    blocks = "one column block adds" if count == 1 else f"{count} column blocks add"
    titles = tuple(f"{state.where}: {how}{state.tensor}, {order}" for how in (f"{blocks} to ", ""))
    return Words(titles, sentences=(_moved(state), *_costs(state)))


def _moved(state: BlockSums) -> str:
    """Return how many sums have other bits than in order."""
    assert state.sums is not None
    here = state.apart
    moved, size = int(np.count_nonzero(here)), plural(here.size, "number")
    if len(state.sums.columns) == 1:
        return "A single term has no order: the same bits every time."
    if state.order == FIRST:
        return f"The order of column blocks: the same {size} of these rows every time."
    if not moved:
        return f"All {size} of these rows have the same bits as in order."
    one, other = (x.astype(np.float64) for x in state.both)
    off = number_text(float(np.abs(one - other).max()), 2)
    steps = plural(int(here.max()), "float32 number")
    return f"{moved} of {size} have other bits than in order: by {off} at most, {steps} apart."


def _costs(state: BlockSums) -> Iterator[str]:
    one, shares = (bytes_text(size) for size in state.room)
    if state.whole is not None:
        numbers = f"{plural(state.whole.numbers, 'number')} of {state.tensor}"
        yield f"Of all {numbers}, {state.whole.moved} move in {TRIED} random orders."
    if state.turns is not None:
        how = f"In order{', as in this run,' if state.in_turn else ' (deterministic)'}"
        longer = f"this launch takes {100 * state.turns.longer:.0f}\u00a0% longer (a model)"
        counters = bytes_text(state.turns.counter_bytes)
        yield f"{how} column blocks wait for turns: {longer}, counters take {counters}."
    yield f"Or each tile stores a share of its own: {shares} in the place of {one}."


def bits_of(state: BlockSums) -> str:
    """Return which number has its bits shown, and how many of them differ."""
    row, column = state.at
    count, size = len(state.differing), len(state.bits[0])
    differ = f"{count} of {size} bits differ{'s' * (count == 1)}" if count else "the same bits"
    return f"{state.tensor}[{state.rows[row]}, {column}]: {differ}"
