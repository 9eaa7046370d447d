"""What the board says: the line above it, its caption, and what is under the pointer."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose, isinf, sqrt

from simulator.problem.tiling import TileKind
from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of, baseline_of
from simulator.run.cell_values import (
    cell_name,
    cell_value,
    in_current_tile,
    is_wrong,
    was_visited,
)
from simulator.run.gradients import is_gradient
from simulator.run.linear_state import why_not_formed
from simulator.run.rescales import skips
from simulator.run.snapshot import Cell, Snapshot
from simulator.study.compare import comparison_of
from ui.board.state import is_detailed
from ui.look.names import head_words
from ui.look.page_words import page_phrase
from ui.look.units import bytes_text, factor_text, number_text

DOT = "  ·  "
PICTURE_LINES = "in the picture: the keys of the tile, and dashed its rows"


def header_choices(snapshot: Snapshot) -> list[str]:
    """Return the line above the board, from the longest to the shortest way to say it."""
    w, visit = snapshot.program.workload, snapshot.visit
    head = head_words(w, visit.head)
    if w.kv_heads < len(w.picked):
        head += f" (KV head {w.kv_head_of[visit.head]})"
    row, short_row = f"row block i = {visit.i} of {w.grid.Tr}", f"i = {visit.i} of {w.grid.Tr}"
    if snapshot.op.before_tiles:
        return [f"{head}{DOT}before the tiles: places", "before the tiles: places", "places"]
    note = "S and P are written to HBM" if snapshot.stores_scores else "S never leaves the chip"
    if snapshot.program.algorithm.passes_pairs and not snapshot.stores_scores:
        note = "P, dP and dS go through HBM"
    if not snapshot.program.algorithm.softmax:
        return _choices_with_state(snapshot, head)
    if snapshot.in_softmax_launch:
        col = short_col = "all keys"
    elif snapshot.launch.combines:
        col, short_col, note = f"all {w.splits} splits", "all splits", "no key is read any more"
    elif not snapshot.launch.forms:
        col = short_col = snapshot.launch.name
        note = "no key is read"
    elif snapshot.launch.whole_rows:
        col = short_col = "all keys"
    else:
        col = f"column block j = {visit.j} of {w.grid.Tc}"
        short_col = f"j = {visit.j} of {w.grid.Tc}"
    if snapshot.launch.splits > 1:
        col, note = f"split {visit.split} of {w.splits}{DOT}{col}", ""
        short_col = f"split {visit.split}{DOT}{short_col}"
    choices = (
        [head, row, col, note],
        [head, row, col],
        [head, short_row, short_col],
        [short_row, short_col],
        [f"({visit.i}, {visit.j})"],
    )
    return [DOT.join(filter(None, parts)) for parts in choices]


def _choices_with_state(snapshot: Snapshot, head: str) -> list[str]:
    """Return the line above the board where a state takes the place of the scores."""
    w, visit = snapshot.program.workload, snapshot.visit
    note = "S is never formed: the state stays on chip"
    if snapshot.launch.of_keys:
        head = f"KV head {w.kv_head_of[visit.head]}"
        place, note = f"keys of column block j = {visit.j} of {w.grid.Tc}", "no query is read yet"
    elif not snapshot.program.algorithm.forms:
        place = f"token {visit.i} of {w.grid.Tr}"
    elif snapshot.launch.carries:
        place = f"chunk i = {visit.i} of {w.grid.Tr}"
    else:
        place, note = f"row block i = {visit.i} of {w.grid.Tr}", "no key is read any more"
    choices = ([head, place, note], [head, place], [place], [f"({visit.i}, {visit.j})"])
    return [DOT.join(parts) for parts in choices]


def sharing_choices(snapshot: Snapshot) -> list[str]:
    """Return who uses the K and V on show, longest first; nothing where no heads share."""
    w = snapshot.program.workload
    if w.kv_heads == len(w.picked):
        return []
    shared = w.kv_head_of[snapshot.visit.head]
    users = [picked for n, picked in enumerate(w.picked) if w.kv_head_of[n // w.group] == shared]
    if len(users) > 2 and users == list(range(users[0], users[-1] + 1)):
        named = f"{users[0]}–{users[-1]}"
    else:
        named = ", ".join(str(head) for head in users)
    heads, kv = "head" if len(users) == 1 else "heads", f"KV head {shared}"
    if algorithm_of(w).keys == algorithm_of(w).values:  # of one tensor: a line divides it
        dims = f"{w.value_dim} + {w.head_dim - w.value_dim}"
        return [
            f"{dims} numbers of a token; above the line its value: {heads} {named}",
            f"{dims} numbers: {heads} {named}",
            f"{heads} {named}",
        ]
    return [
        f"{kv} of {w.kv_heads}: query {heads} {named}",
        f"{kv}: query {heads} {named}",
        f"KV {shared}: {heads} {named}",
        f"{heads} {named}",
    ]


def caption_phrases(snapshot: Snapshot, tile_pixels: float, averaged: str = "") -> list[str]:
    """Return what explains the picture, what matters most first.

    Parameters
    ----------
    averaged : str
        Inputs of which several rows share a line of the picture.
    """
    w = snapshot.program.workload
    grid = w.grid
    if snapshot.completes and snapshot.so_far is not None:
        return final_phrases(snapshot)
    if snapshot.op.before_tiles:
        return hand_phrases(snapshot)
    phrases = [formula(w), _tile_phrase(snapshot)]
    if w.sinks is not None:
        phrases.append(sink_phrase(w.sinks[snapshot.visit.head].tolist()))
    if skipped := skip_phrase(snapshot):
        phrases.insert(0, skipped)
    if lies := page_phrase(snapshot):
        phrases.insert(1, f"numbers on {snapshot.program.algorithm.keys}ᵀ: where its pages lie")
        phrases.insert(1, lies)
    latent = snapshot.program.algorithm.keys
    if latent == snapshot.program.algorithm.values:
        phrases.insert(1, f"{latent}ᵀ has the keys, and above the line their values")
    if not snapshot.program.algorithm.softmax:
        phrases.append("another function than a softmax, not an approximation of it")
        if w.feature_map and w.feature_map.projects:
            phrases[-1] = "random features: on average the weights of a softmax"
    elif snapshot.stores_scores:
        phrases.append(
            (
                "finished tiles of S lie in HBM",
                "rows above hold P, rows below S, all in HBM",
                "P lies in HBM",
            )[snapshot.visit.launch]
        )  # fmt: skip
        if w.mask.hides:
            phrases.append("hidden pairs are worked on all the same")
    else:
        if snapshot.partials is not None:
            phrases.append("below the keys of a split: LSE and O that it leaves in HBM")
        if _has_dropped(snapshot) and snapshot.so_far is not None:
            which = "all tiles" if snapshot.normalised else "tiles before"
            phrases.append(f"{which}: P / ℓ, with m and ℓ of their rows as they are now")
        elif snapshot.program.algorithm.passes_pairs:
            phrases.append("other tiles: P, as it lies in HBM")
        elif _has_dropped(snapshot):
            past = "dim" if is_detailed(w) else "shaded"
            counted = snapshot.head is not None and snapshot.head.weights is not None
            tail = f": exp(S − {_top(snapshot)}) of now" if counted else ""
            phrases.append(f"{past} tiles were used and dropped{tail}")
        skips = snapshot.program.algorithm.skips
        if skips and int(grid.visited_columns.sums[-1]) < grid.Tr * grid.Tc:
            phrases.append("hatched tiles are skipped")
    if not is_detailed(w) and tile_pixels < 3:
        phrases.append(f"a point is a tile, {grid.Tr} × {grid.Tc} of them")
    if not is_detailed(w) and w.mask.hides:
        phrases.append("fainter tiles are partly hidden")
    if averaged:
        phrases.append(f"{averaged}: means of neighbouring rows")
    return phrases


def final_phrases(snapshot: Snapshot) -> list[str]:
    """Return what is said where the tiles turn into final weights, and what they have cost."""
    run, asked = snapshot.program, bytes_text(snapshot.counters.bytes)
    note = "S never left the chip"
    if snapshot.cursor.visit + 1 < len(run):
        return ["final weights P / ℓ of the rows that are done", f"{asked} asked of HBM", note]
    most = comparison_of(run).totals[0].counters.bytes  # of the one that all are compared with
    times = factor_text(most / snapshot.counters.bytes)
    other = f"{baseline_of(run.workload.algorithm).label} {bytes_text(most)}"
    return ["final weights P / ℓ", f"{asked} asked of HBM", f"{other}, {times} as much", note]


def hand_phrases(snapshot: Snapshot) -> list[str]:
    """Return what is said while positions turn Q and K, before the tiles."""
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


def _top(snapshot: Snapshot) -> str:
    """Return what exponentials of used tiles are relative to; joined splits have no common m."""
    return "largest S" if snapshot.launch.combines else "m"


def _has_dropped(snapshot: Snapshot) -> bool:
    """Return whether a tile of this head was worked on before the current one."""
    before = snapshot.cursor.visit - 1
    return before >= 0 and snapshot.program.visit(before).head == snapshot.visit.head


def formula(w: Workload) -> str:
    """Return how scores come about, with the scale where it is not the usual one."""
    if own := algorithm_of(w).formula:
        assert w.feature_map is not None
        return f"{own}, φ: {w.feature_map.words}" if "φ" in own else own
    if w.feature_map:
        return f"weights φ(q)·φ(k), φ: {w.feature_map.words}"
    capped = f", soft-capped at {w.scoring.softcap:g}" if w.scoring.softcap else ""
    biased = f", {bias_words(w)}" if w.biased else ""
    if w.faults.late_scale:
        return f"S = QKᵀ, not scaled before the softmax{capped}{biased}"
    if w.temperature != 1:
        return f"S = QKᵀ · {w.scale:.3g} / T, T = {w.temperature:g}{capped}{biased}"
    scaled = "QKᵀ/√d" if _usual_scale(w) else f"QKᵀ · {w.scale:.3g}"
    return f"S = {scaled}{capped}{biased}"


def sink_phrase(logits: Sequence[float]) -> str:
    """Return what joins the softmax of every row without being a score, of a head or more."""
    own = {number_text(logit) for logit in logits}
    said = f"logit {own.pop()}" if len(own) == 1 else "its head's logit"
    return f"each ℓ has a sink: {said}"


def change_words(w: Workload) -> str:
    """Return what is done to a scaled product before the mask."""
    done = ["soft-capped"] * bool(w.scoring.softcap) + ["less its bias"] * bool(w.slopes)
    done += ["with its bias"] * (w.biases is not None)
    return " and ".join(done)


def bias_words(w: Workload) -> str:
    """Return what scores lose or gain with distance."""
    lost = ["less slope · |i′ − j|"] * bool(w.slopes)
    return " ".join([*lost, *["plus b(j − i′)"] * (w.biases is not None)])


def _usual_scale(w: Workload) -> bool:
    return isclose(w.scale, 1 / sqrt(w.head_dim), rel_tol=1e-6)


def _tile_phrase(snapshot: Snapshot) -> str:
    visit = snapshot.visit
    where = f"tile ({visit.i}, {visit.j})"
    if not snapshot.program.algorithm.softmax:
        return _state_phrase(snapshot)
    if snapshot.in_softmax_launch:
        where = f"row block {visit.i}"
        if snapshot.stored("P"):
            return f"P of {where} written to HBM"
        return f"{'S' if snapshot.weights is None else 'P'} of {where} on chip"
    if snapshot.program.algorithm.backward:
        if snapshot.launch.whole_rows or not snapshot.launch.forms:
            where = f"row block {visit.i}"
        own = [op for op in snapshot.past if not op.before_tiles]
        says = next((op.says for op in reversed(own) if op.says), "")
        begins = snapshot.launch.name
        if snapshot.launch.forms:
            again = snapshot.visit_computes_again
            begins = "S and P are computed again" if again else f"loads for {begins}"
        return f"{where}: {says or begins}"
    if snapshot.launch.combines:
        if snapshot.made("O"):
            return f"O of row block {visit.i} is the sum of all splits by their weights w"
        return f"splits of row block {visit.i} are joined"
    if snapshot.stores_scores and visit.launch == 2:
        if snapshot.made("O"):
            return f"P of {where} added to O"
        return f"P of {where} {'still in' if snapshot.weights is None else 'read from'} HBM"
    if snapshot.scores is None:
        return f"{where} not computed yet"
    if snapshot.stores_scores:
        return f"S of {where} {'written to HBM' if snapshot.stored('S') else 'in registers'}"
    # Weights of a row sum to 1 only after the division by its sum, which O alone goes through.
    weights = f"P = exp(S − m) of {where}"
    if snapshot.made("O"):
        return f"{weights} added to O, then dropped"
    return f"{f'S of {where}' if snapshot.weights is None else weights} in registers"


def _state_phrase(snapshot: Snapshot) -> str:
    visit = snapshot.visit
    if snapshot.launch.of_keys:
        done = snapshot.made("state")
        return f"keys of column block {visit.j} {'added' if done else 'not added yet'}"
    if not snapshot.program.algorithm.forms:
        return _token_phrase(snapshot)
    if snapshot.normalised:
        return f"O of row block {visit.i} is divided by ℓ"
    if snapshot.made("state"):
        return f"keys of chunk {visit.i} added to the state"
    if snapshot.made("O"):
        return "O: the state and the keys of the chunk" if snapshot.launch.carries else "O: read"
    if snapshot.has_output:
        return "O: read from the state of the keys before"
    return f"row block {visit.i} not computed yet"


def _token_phrase(snapshot: Snapshot) -> str:
    token = f"token {snapshot.visit.i}"
    if snapshot.has_output:
        return f"O of {token} read from the state"
    return f"{token} {'added to the state' if snapshot.made('state') else 'not added yet'}"


def describe(snapshot: Snapshot, hit: Cell) -> str:
    """Return what one cell holds, as the pointer reads it.

    Parameters
    ----------
    snapshot : Snapshot
        All numbers come from it; what it does not hold is said in words.
    """
    w = snapshot.program.workload
    if hit.split is not None:
        found = cell_value(snapshot, hit)
        held = f" = {number_text(found.value)}" if found.value is not None else ""
        return f"{found.name}{held}{DOT if held else ': '}{found.state}"
    if hit.spec.of_pairs:
        return _score_text(snapshot, hit.row, hit.col)
    if hit.tensor in snapshot.inputs:
        value = float(snapshot.inputs[hit.tensor][hit.row, hit.col])
        text = f"{hit.tensor}[{hit.row}, {hit.col}] = {number_text(value)}"
        token = w.query_token(hit.row) if "row" in hit.at else w.key_token(hit.row)
        return text + (f"{DOT}“{token}”" if token else "")
    return _result_text(snapshot, hit)


def _score_text(snapshot: Snapshot, row: int, key: int) -> str:
    w, visit = snapshot.program.workload, snapshot.visit
    name, mask = f"S[{row}, {key}]", w.mask.of_head(visit.head)
    query, token = w.query_token(row), w.key_token(key)
    tokens = f"{DOT}“{query}” → “{token}”" if query and token else ""
    i, j = row // w.rows, key // w.cols
    unformed = why_not_formed(snapshot, Cell("S", row, key))
    if unformed:
        hides = not mask.visible(range(row, row + 1), range(key, key + 1))[0, 0]
        return f"{name}: {'hidden by the mask' if hides else unformed}{tokens}"
    if in_current_tile(snapshot, Cell("S", row, key)):
        return _current_score_text(snapshot, row, key) + tokens
    if not snapshot.stores_scores and w.grid.kind(i, j) is TileKind.SKIPPED:
        return f"{name}: tile ({i}, {j}) is skipped: never loaded{tokens}"
    if not was_visited(snapshot, i, j):
        return f"{name}: not computed yet{tokens}"
    visible = mask.visible(range(row, row + 1), range(key, key + 1))[0, 0]
    hidden = not visible and not w.faults.late_mask
    fate = "in HBM" if snapshot.stores_scores else "used and dropped"
    if hidden:
        return f"{name}: hidden by the mask{tokens}"
    if snapshot.head is None:
        return f"{name}: tile ({i}, {j}), {fate}{tokens}"
    made = change_words(w) if w.changes_scores else _product(w, row, key)
    text = f"{name} = {made} = {number_text(float(snapshot.head.s[row, key]))}"
    if not snapshot.stores_scores or visit.launch == 2 or (visit.launch == 1 and i < visit.i):
        text += f"{DOT}P = {number_text(float(snapshot.head.p[row, key]))}"
    if snapshot.head.weights is not None:
        top = _top(snapshot)
        text += f"{DOT}exp(S − {top}) now {number_text(float(snapshot.head.weights[row, key]))}"
    if snapshot.so_far is not None:
        text += f"{DOT}P / ℓ so far = {number_text(float(snapshot.so_far[row, key]))}"
    for spec in algorithm_of(w).pairs:
        value = cell_value(snapshot, Cell(spec.name, row, key)).value
        if value is not None:  # a later launch may make it
            text += f"{DOT}{spec.name} = {number_text(value)}"
    return f"{text}{DOT}{fate}{tokens}"


def _current_score_text(snapshot: Snapshot, row: int, key: int) -> str:
    w, visit = snapshot.program.workload, snapshot.visit
    r, c = row - visit.rows.start, key - visit.cols.start
    name = f"S[{row}, {key}]"
    scores, weights = snapshot.scores, snapshot.weights
    seen = bool(snapshot.tile.seen[r, c])
    if scores is None and weights is None:
        in_hbm = snapshot.stores_scores and visit.launch == 2
        return f"{name}: in HBM, not read yet" if in_hbm else f"{name}: not computed yet"
    if not seen and (scores is None or isinf(scores[r, c])):
        return f"{name}: hidden by the mask"
    scaled = snapshot.tile.s[r : r + 1, c : c + 1]
    text = f"{name} = {_product(w, row, key)} = {number_text(float(scaled[0, 0]))}"
    if w.changes_scores:
        one = w.changed(visit.head, range(row, row + 1), range(key, key + 1), scaled)
        text += f"{DOT}{change_words(w)} = {number_text(float(one[0, 0]))}"
    if weights is not None:
        text += f"{DOT}P = {number_text(float(weights[r, c]))}"
    for spec in algorithm_of(w).pairs:
        made = snapshot.state.get(spec.name)
        text += f"{DOT}{spec.name} = {number_text(float(made[r, c]))}" if made is not None else ""
    return text if seen else f"{text}{DOT}the mask will hide it"


def _product(w: Workload, row: int, key: int) -> str:
    product = f"q{row} · k{key}"
    if w.feature_map:
        return f"φ(q{row}) · φ(k{key})"
    if w.faults.late_scale:
        return product
    if w.temperature != 1:
        return f"{product} · {w.scale:.3g} / {w.temperature:g}"
    return f"{product} / √{w.head_dim}" if _usual_scale(w) else f"{product} · {w.scale:.3g}"


def _result_text(snapshot: Snapshot, hit: Cell) -> str:
    """Return what m, l or O hold in a row, or what a backward pass has made."""
    w, visit, name = snapshot.program.workload, snapshot.visit, cell_name(hit)
    token = w.query_token(hit.row) if "row" in hit.at else w.key_token(hit.row)
    tail = f"{DOT}“{token}”" if token else ""
    found = cell_value(snapshot, hit)
    value = found.value
    if is_gradient(snapshot, hit):
        held = f" = {number_text(value)}" if value is not None else ""
        return f"{found.name}{held}{DOT if held else ': '}{found.state}{tail}"
    if snapshot.head is None and hit.row not in visit.rows:
        return f"{name}: numbers are shown for the current row block{tail}"
    if value is None:
        return f"{name}: not computed yet{tail}"
    running = algorithm_of(w).normalises_last and hit.row in visit.rows and not snapshot.normalised
    meaning = {
        "m": f"largest score of row {hit.row} so far",
        "l": "sum of exp(S − m) so far" if algorithm_of(w).softmax else "sum of weights so far",
        "O": "not divided by ℓ yet" if running else "",
    }[hit.tensor]
    if is_wrong(snapshot, hit):
        meaning = f"{meaning}, wrong" if meaning and "value" in hit.at else "wrong"
    return f"{name} = {number_text(value)}" + (f"{DOT}{meaning}" if meaning else "") + tail
