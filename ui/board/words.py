"""Words of the board: the line above it, its caption, and the cell under the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose, isfinite, isinf, sqrt

from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of, baseline_of
from simulator.run.cell_values import (
    cell_name,
    cell_value,
    in_current_tile,
    is_wrong,
)
from simulator.run.final_weights import done_rows, done_weights
from simulator.run.gradients import is_gradient
from simulator.run.rescales import skips
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.trace import is_detailed
from simulator.study.compare import comparison_of
from ui.board.middle import Phrase, middle_at
from ui.look.page_words import page_phrase
from ui.look.units import bytes_text, factor_text, number_text

DOT = "  ·  "
PICTURE_LINES = "in the picture: the keys of the tile, and dashed its rows"


def header_choices(snapshot: Snapshot, *, plain: bool = False) -> list[str]:
    """Return the line above the board: whole, without its note, places alone, indices alone.

    plain: whether the line does not say where numbers lie.
    """
    middle, visit = middle_at(snapshot), snapshot.visit
    head, *places = middle.header(snapshot)
    note = middle.noted(snapshot).said(plain=plain)
    if snapshot.op.before_tiles:
        places, note = ["before the tiles: places"], ""
    choices = (head, *places, note), (head, *places), places, [f"({visit.i}, {visit.j})"]
    return [DOT.join(filter(None, words)) for words in choices]


def sharing_choices(snapshot: Snapshot) -> list[str]:
    """Return the heads that use the K and V on show, longest first; empty if no heads share."""
    w = snapshot.program.workload
    if w.kv_heads == len(w.picked):
        return []
    shared = w.kv_head_of[snapshot.visit.head]
    users = [picked for n, picked in enumerate(w.picked) if w.kv_head_of[n // w.group] == shared]
    if len(users) > 2 and users == list(range(users[0], users[-1] + 1)):
        named = f"{users[0]}–{users[-1]}"
    else:
        named = ", ".join(str(head) for head in users)
    heads = "head" if len(users) == 1 else "heads"
    if algorithm_of(w).keys == algorithm_of(w).values:  # of one tensor: a line divides it
        dims = f"{w.value_dim} + {w.head_dim - w.value_dim}"
        whole = f"{dims} numbers of a token; above the line its value: {heads} {named}"
        return [whole, f"{dims} numbers: {heads} {named}", f"{heads} {named}"]
    whole = f"KV head {shared} of {w.kv_heads}: query {heads} {named}"
    return [whole, f"KV {shared}: {heads} {named}"]


def caption_phrases(
    snapshot: Snapshot, tile_pixels: float, averaged: str = "", *, plain: bool = False
) -> list[str]:
    """Return phrases that explain the picture, the most important first.

    averaged: inputs with several rows in one line of the picture.
    plain: whether the phrases do not say where numbers lie.
    """
    w, middle = snapshot.program.workload, middle_at(snapshot)
    if snapshot.completes and snapshot.so_far is not None:
        return _said(final_phrases(snapshot), plain=plain)
    if snapshot.op.before_tiles:
        return hand_phrases(snapshot)
    phrases = [formula(w), middle.caption(snapshot).said(plain=plain)]
    if w.sinks is not None:
        phrases.append(sink_phrase(w.sinks[snapshot.visit.head].tolist()))
    if w.gated:
        phrases.append("O is multiplied by its gate before it is stored")
    if skipped := skip_phrase(snapshot):
        phrases.insert(0, skipped)
    if lies := page_phrase(snapshot):
        phrases.insert(1, f"numbers on {snapshot.program.algorithm.keys}ᵀ: where its pages lie")
        phrases.insert(1, lies)
    latent = snapshot.program.algorithm.keys
    if latent == snapshot.program.algorithm.values:
        phrases.insert(1, f"{latent}ᵀ has the keys, and above the line their values")
    phrases += _said(middle.notes(snapshot), plain=plain)
    if not is_detailed(w) and tile_pixels < 3:
        phrases.append(f"a point is a tile, {w.grid.Tr} × {w.grid.Tc} of them")
    if not is_detailed(w) and w.mask.hides:
        phrases.append("fainter tiles are partly hidden")
    if averaged:
        phrases.append(f"{averaged}: means of neighbouring rows")
    return phrases


def _said(phrases: Sequence[Phrase], *, plain: bool) -> list[str]:
    return [words for phrase in phrases if (words := phrase.said(plain=plain))]


def final_phrases(snapshot: Snapshot) -> list[Phrase]:
    """Return phrases for the tiles' turn into final weights, and for their cost."""
    run, asked = snapshot.program, bytes_text(snapshot.counters.bytes)
    cost, note = Phrase("", f"{asked} asked of HBM"), Phrase("", "S never left the chip")
    if snapshot.cursor.visit + 1 < len(run):
        return [Phrase("final weights P / ℓ of the rows that are done"), cost, note]
    most = comparison_of(run).totals[0].counters.bytes  # of the baseline
    times = factor_text(most / snapshot.counters.bytes)
    other = f"{baseline_of(run.workload.algorithm).label} {bytes_text(most)}"
    return [Phrase("final weights P / ℓ"), cost, Phrase("", f"{other}, {times} as much"), note]


def hand_phrases(snapshot: Snapshot) -> list[str]:
    """Return phrases about positions that turn Q and K, before the tiles."""
    turning = snapshot.turned_now
    phrases = [snapshot.op.says]
    if turning is None:
        return phrases
    rotary, shown = turning.rotary, turning.tensor.lower()
    half = rotary.width // 2
    pair = "2n, 2n + 1" if rotary.interleaved else f"n, n + {half}"
    phrases.append(f"a hand: numbers {pair} of a row of {turning.tensor}")
    phrases.append(f"pair n turns by place · {rotary.theta:g}^(−2n/{rotary.width})")
    if rotary.width < snapshot.program.workload.head_dim:
        phrases.append(f"numbers of {shown} from {rotary.width} on are not turned")
    if rotary.offset:
        phrases.append(f"places begin at {rotary.offset}")
    return [*phrases, "V is not turned", "no byte and no FLOP of the tiles is counted for it"]


def skip_phrase(snapshot: Snapshot) -> str:
    """Return how many rows and warps of the current tile skip their rescale; "" if none could."""
    found = skips(snapshot)
    if found is None:
        return ""
    moved, skipped = int(found.moved.sum()), int(found.skipped.sum())
    rows = f"{skipped} row{'s' * (skipped != 1)} skip{'s' * (skipped == 1)} a rescale"
    rows += f", {moved} rescale{'s' * (moved == 1)}"
    warps = len(found.warps)
    said = f"{rows}: {int(found.warps.sum())} of {warps} warp{'s' * (warps != 1)}"
    above = snapshot.weights is not None and bool((snapshot.weights > 1).any())
    return f"{said}; a dot: P above 1" if above else said


def formula(w: Workload) -> str:
    """Return the formula of the scores, with a number for the scale if it is not 1/√d."""
    if own := algorithm_of(w).formula_of(w):
        return own
    changed = "".join(f", {change.formula}" for change in w.score_changes)
    if _is_scaled_late(w):
        return f"S = QKᵀ, not scaled before the softmax{changed}"
    if w.temperature != 1:
        return f"S = QKᵀ · {w.scale:.3g} / T, T = {w.temperature:g}{changed}"
    scaled = "QKᵀ/√d" if _usual_scale(w) else f"QKᵀ · {w.scale:.3g}"
    return f"S = {scaled}{changed}"


def sink_phrase(logits: Sequence[float]) -> str:
    """Return words for sink logits of one or more heads, which join the softmax of every row."""
    own = {number_text(logit) for logit in logits}
    said = f"logit {own.pop()}" if len(own) == 1 else "its head's logit"
    return f"each ℓ has a sink: {said}"


def _changes(w: Workload) -> str:
    """Return the changes of a scaled product before the mask, in words."""
    return " and ".join(change.done for change in w.score_changes)


def _is_scaled_late(w: Workload) -> bool:
    return w.scoring_before_softmax != w.scoring


def _usual_scale(w: Workload) -> bool:
    return isclose(w.scale, 1 / sqrt(w.head_dim), rel_tol=1e-6)


def describe(snapshot: Snapshot, hit: Cell) -> str:
    """Return the words that the pointer reads at a cell: its number, or why there is none.

    All numbers come from the snapshot.
    """
    w = snapshot.program.workload
    if hit.spec.of_pairs:
        query, key = w.query_token(hit.row), w.key_token(hit.col)
        tail = f"{DOT}“{query}” → “{key}”" if query and key else ""
        return _pair_text(snapshot, Cell("S", hit.row, hit.col)) + tail
    token = w.query_token(hit.row) if "row" in hit.at else w.key_token(hit.row)
    found = cell_value(snapshot, hit)
    words = [f"{found.name} = {number_text(found.value)}"] if found.value is not None else []
    meaning = found.state
    if words and hit.tensor in snapshot.inputs:
        meaning = ""
    elif words and hit.split is None and not is_gradient(snapshot, hit):
        meaning = _meaning(snapshot, hit)
    if not words:
        words, meaning = [f"{found.name}: {meaning}"], ""
    words += [meaning] * bool(meaning) + [f"“{token}”"] * bool(token and hit.split is None)
    return DOT.join(words)


def _meaning(snapshot: Snapshot, hit: Cell) -> str:
    """Return the meaning of m, l or O of a row, where its name does not say it."""
    middle, visit = middle_at(snapshot), snapshot.visit
    running = snapshot.program.algorithm.normalises_last and hit.row in visit.rows
    meaning = {
        "m": f"largest score of row {hit.row} so far",
        "l": f"sum of {middle.weights} so far",
        "O": "not divided by ℓ yet" if running and not snapshot.normalised else "",
    }[hit.tensor]
    if is_wrong(snapshot, hit):
        return f"{meaning}, wrong" if meaning and "value" in hit.at else "wrong"
    return meaning


def _pair_text(snapshot: Snapshot, cell: Cell) -> str:
    """Return a pair's score, the numbers made from it, and the state of its tile."""
    found, name = cell_value(snapshot, cell), cell_name(cell)
    if found.value is None:
        return f"{name}: {found.state}"
    here = in_current_tile(snapshot, cell)
    numbers = _numbers_here(snapshot, cell) if here else _numbers_before(snapshot, cell)
    if not numbers:
        return f"{name}: hidden by the mask"
    return DOT.join([f"{name} = {numbers[0]}", *numbers[1:]])


def _numbers_here(snapshot: Snapshot, cell: Cell) -> list[str]:
    """Return the numbers of a pair in the current tile; none where the mask has hidden it."""
    w, visit = snapshot.program.workload, snapshot.visit
    r, c = cell.row - visit.rows.start, cell.col - visit.cols.start
    scores, weights = snapshot.scores, snapshot.weights
    seen = bool(snapshot.tile.seen[r, c])
    if not seen and (scores is None or isinf(scores[r, c])):
        return []
    scaled = snapshot.tile.s[r : r + 1, c : c + 1]
    out = [f"{_product(snapshot, cell.row, cell.col)} = {number_text(float(scaled[0, 0]))}"]
    if w.changes_scores:
        rows, keys = range(cell.row, cell.row + 1), range(cell.col, cell.col + 1)
        one = w.changed(visit.head, rows, keys, scaled)
        out.append(f"{_changes(w)} = {number_text(float(one[0, 0]))}")
    if weights is not None:
        out.append(f"P = {number_text(float(weights[r, c]))}")
    for spec in algorithm_of(w).pairs:
        made = snapshot.state.get(spec.name)
        out += [f"{spec.name} = {number_text(float(made[r, c]))}"] if made is not None else []
    return out if seen else [*out, "the mask will hide it"]


def _numbers_before(snapshot: Snapshot, cell: Cell) -> list[str]:
    """Return the numbers of a pair in an earlier tile; none where the mask hides it."""
    w, head, at = snapshot.program.workload, snapshot.head, (cell.row, cell.col)
    found = cell_value(snapshot, cell)
    rows, keys = range(cell.row, cell.row + 1), range(cell.col, cell.col + 1)
    visible = w.mask.of_head(snapshot.visit.head).visible(rows, keys)[0, 0]
    if head is None or not (visible or isfinite(head.s[at])):  # a fault may let it count
        return []
    made = _changes(w) if w.changes_scores else _product(snapshot, *at)
    out = [f"{made} = {number_text(float(head.s[at]))}"]
    if found.tensor == "P":
        out.append(f"P = {number_text(float(head.p[at]))}")
    if head.weights is not None:
        top = middle_at(snapshot).relative_to
        out.append(f"exp(S − {top}) now {number_text(float(head.weights[at]))}")
    if snapshot.so_far is None and cell.row in done_rows(snapshot):
        divided = done_weights(snapshot)
        out += [] if divided is None else [f"P / ℓ = {number_text(float(divided[at]))}"]
    if snapshot.so_far is not None:
        out.append(f"P / ℓ so far = {number_text(float(snapshot.so_far[at]))}")
    for spec in algorithm_of(w).pairs:
        value = cell_value(snapshot, Cell(spec.name, *at)).value
        if value is not None:  # a later launch may make it
            out.append(f"{spec.name} = {number_text(value)}")
    return [*out, found.state]


def _product(snapshot: Snapshot, row: int, key: int) -> str:
    w, middle = snapshot.program.workload, middle_at(snapshot)
    product = middle.product.format(row, key)
    if middle.state or _is_scaled_late(w):
        return product
    if w.temperature != 1:
        return f"{product} · {w.scale:.3g} / {w.temperature:g}"
    return f"{product} / √{w.head_dim}" if _usual_scale(w) else f"{product} · {w.scale:.3g}"
