"""The comparison in words: who requests least, who is unexpectedly slow, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, TENSORS, baseline_of
from simulator.program.tensors import symbol
from simulator.study.compare import AtScale, Comparison, Lockstep, Position, Totals, at_scale
from simulator.study.recompute import trade_of
from simulator.timing.duration import Duration
from ui.look.durations import LEAST, MODEL, duration_text
from ui.look.names import head_words
from ui.look.units import bytes_text, count_text, factor_text, plural

SAME = 1.005
"""Ratios up to here count as equal."""


def title(name: str) -> str:
    """Return an algorithm's name in full."""
    return ALGORITHMS[name].title


def named(name: str) -> str:
    """Return the name inside a sentence."""
    return ALGORITHMS[name].in_a_sentence


def names(name: str) -> tuple[str, str, str]:
    """Return an algorithm's name in full, beside a figure, and shorter."""
    return title(name), label(name), name.replace("-backward", " bwd")


def label(name: str) -> str:
    """Return the name beside a figure."""
    return ALGORITHMS[name].label


def mask_words(tiles: float, mask: float) -> str:
    """Return how much of a factor comes from the mask; empty if nothing does.

    tiles, mask: the factor if every pair were visible, and the factor of skipping hidden tiles.
    """
    if mask <= SAME:
        return ""
    said = f"{factor_text(tiles)} by tiles on chip"
    return f"{said}, and {factor_text(mask)} because hidden tiles are skipped"


def verdicts(comparison: Comparison) -> tuple[str, ...]:
    """Return sentences about the whole runs, the most important first."""
    alike, shown = comparison.alike, comparison.programs[comparison.shown]
    # The later algorithm first: if it requests more than the earlier one, the sentence says so.
    pairs = [(later, earlier) for n, later in enumerate(alike) for earlier in alike[:n]]
    unexpected = [said for pair in pairs if (said := _more_than_expected(comparison, *pair))]
    scale = at_scale(shown)
    long = scale_words(scale, comparison.programs[comparison.alike[0]].workload) if scale else ""
    ranks = [_least(comparison), long, _why_baseline(comparison)]
    if unexpected:
        ranks = [unexpected[0], long, *unexpected[1:], _least(comparison)]
    told = (
        _gradients(comparison),
        _another(comparison),
        *ranks,
        time_words([total.duration for total in comparison.totals]),
    )
    return tuple(each for each in told if each)


def _gradients(comparison: Comparison) -> str:
    """Return the bytes of forward and backward pass together; empty for a forward pass."""
    if not ALGORITHMS[comparison.shown].backward:
        return ""
    trade = trade_of(comparison.programs[comparison.shown].workload)
    few, many = sorted(trade.both, key=lambda each: each.bytes)
    sums = " and ".join(f"{label(each.forward)} {bytes_text(each.bytes)}" for each in (few, many))
    return (
        f"Forward and backward pass together request: {sums}, "
        f"{factor_text(many.bytes / few.bytes)} as much. Backward passes make gradients, so they "
        "are ranked apart."
    )


def _another(comparison: Comparison) -> str:
    """Return a sentence if an algorithm computes another function."""
    others = [name for name in comparison.programs if not ALGORITHMS[name].softmax]
    if not others:
        return ""
    phi = comparison.programs[others[0]].workload.feature_map
    if phi is not None and phi.projects:
        random = "Its weights are those of a softmax on average over its random features alone."
        return f"{title(others[0])} is another function. {random}"
    return (
        f"{title(others[0])} is another function, not an approximation: its O differs from that "
        "of the others."
    )


def scale_words(scale: AtScale, w: Workload) -> str:
    """Return the savings of a long run, for a run that is too short to save bytes.

    w: the baseline's short run.
    """
    base, since = scale.baseline, ""
    tiles = f"{count_text(w.rows)} × {count_text(w.cols)} tiles"
    save = "saves" if w.seqlen_k == 1 else "save"
    if scale.since is not None:
        since = (
            f"{title(scale.last)} requests less than {named(base)} from "
            f"N ≈ {count_text(scale.since)} on; "
        )
    ratios = ", ".join(
        f"{factor_text(scale.times(name))} as much as {title(name)}"
        for name in scale.bytes
        if name != base
    )
    return (
        f"{plural(w.seqlen_k, 'token')} in {tiles} {save} little. "
        f"In {count_text(scale.rows)} × {count_text(scale.cols)} tiles, as kernels ship "
        f"them, {since}at N = {count_text(scale.keys)} {named(base)} requests {ratios}."
    )


def _of(comparison: Comparison, name: str) -> Totals:
    return next(total for total in comparison.totals if total.algorithm == name)


def _least(comparison: Comparison) -> str:
    alike = (total for total in comparison.totals if total.algorithm in comparison.alike)
    first, *rest = sorted(alike, key=lambda total: total.counters.bytes)
    least = f"{title(first.algorithm)} requests least, {bytes_text(first.counters.bytes)}"
    others = ", ".join(
        f"{named(one.algorithm)} {factor_text(one.counters.bytes / first.counters.bytes)}"
        for one in rest
    )
    return f"{least}; {others}."


def time_words(durations: Sequence[Duration]) -> str:
    """Return the sources of the times, and whether launches take longest."""
    models = [each.model for each in durations]
    said = [MODEL] if any(models) else []
    if not all(models):
        said.append(LEAST)
    launches = {launch.name for model in models if model for launch in model.launches}
    if "mask" in launches:
        said.append("They count PyTorch's launch for the mask, which reads and writes S again.")
    if all(model and model.bound_by == "launch" for model in models):
        said.append("Launches take longer than the work of a run this short.")
    return " ".join(said)


def _more_than_expected(comparison: Comparison, name: str, other: str) -> str:
    """Return a sentence if `name` requests more than `other`, else nothing."""
    one, two = _of(comparison, name), _of(comparison, other)
    ratio = one.counters.bytes / two.counters.bytes
    if ratio <= SAME:
        return ""
    slower = one.duration.seconds / two.duration.seconds
    models = [total.duration.model for total in (one, two)]
    if not all(models) or {model.bound_by for model in models if model} == {"launch"}:
        pace = ""
    elif slower > SAME:
        pace = f" and takes {factor_text(slower)} as long by model"
    else:
        pace = ", yet takes no longer by model"
    w, read = comparison.programs[one.algorithm].workload, one.counters.read
    asks, asked = (Counter(n.counters.read) + Counter(n.counters.write) for n in (one, two))
    most = max(asks, key=lambda tensor: asks[tensor] - asked[tensor])
    if ALGORITHMS[name].normalises_each_tile:
        often = _often(read["O"] / (w.heads * w.seqlen_q * w.value_dim * STATISTIC_WIDTH))
        reason = f"d = {w.head_dim} and Bc = {w.cols} make it read O {often}"
    elif most in ("K", "V"):
        often = _often(read["K"] / (w.heads * w.seqlen_k * w.head_dim * w.width))
        reason = f"Br = {w.rows} makes it read K and V {often}"
    else:
        reason = f"{symbol(most)} takes {bytes_text(asks[most])}"
    return (
        f"{title(name)} requests {factor_text(ratio)} as much as {named(other)} here{pace}: "
        f"{reason}."
    )


def _often(times: float) -> str:
    if times == round(times):
        return "once" if times == 1 else f"{count_text(times)} times"
    return f"{times:.1f} times on average"


def _why_baseline(comparison: Comparison) -> str:
    base = baseline_of(comparison.shown)
    w, most = comparison.programs[base.name].workload, _of(comparison, base.name)
    largest = max(_of(comparison, name).counters.bytes for name in comparison.alike)
    if most.counters.bytes < largest:
        return ""
    asked = most.counters.read, most.counters.write
    of_pairs = dict.fromkeys(
        t for way in asked for t, n in way.items() if n and TENSORS[t].of_pairs
    )
    moved = sum(way.get(t, 0) for way in asked for t in of_pairs)
    *rest, last = of_pairs
    words = f"{', '.join(rest)} and {last}" if rest else last
    return (
        f"{100 * moved / most.counters.bytes:.0f} % of {base.label}'s bytes are {words}, "
        f"{count_text(w.seqlen_q)} × {count_text(w.seqlen_k)} numbers each"
        f"{', for every head' if w.heads > 1 else ''}."
    )


def legend_words(comparison: Comparison) -> str:
    """Return the meaning of the colours of boards and bars.

    The algorithm decides which tiles lie in HBM, the mask how strong their colour is.
    """
    stored = [label(name) for name in comparison.programs if ALGORITHMS[name].passes_pairs]
    filled = f"in HBM ({', '.join(stored)}) or used and dropped" if stored else "used and dropped"
    return (
        f"Tiles: outlined: the tile at hand · filled: {filled} · fainter: partly or wholly hidden"
        " · hatched: skipped. Bars: requested bytes, time, shared memory of the visit;"
        " framed: the whole run · filled: read · hatched: written · red line: the GPU's limit"
    )


def pace_words(comparison: Comparison, places: Lockstep, *, by_time: bool) -> tuple[str, str]:
    """Return whether the runs keep step by time or by tiles, and an explanation."""
    if by_time:
        gpu = comparison.programs[comparison.shown].workload.gpu.name
        said = f"{duration_text(places.spent, places.seconds)} on {gpu}"
        share = "The visits of a launch share its time equally."
        if places.spent.model is None:
            share = "Not all times are modelled: all go as fast as the data sheet lets them."
        return f"Same simulated time: whole visits that fit into {said}", share
    positions = places.by_tile
    shown = next(p for p in positions if p.algorithm == comparison.shown)
    over = any(p.finished for p in positions) and not all(p.finished for p in positions)
    done = f"{plural(shown.visits, 'visit')} done"
    if _under_way(shown):
        done += ", one more under way in the run on show"
    return (
        f"Same number of tiles: {done}{', or all there are' if over else ''}",
        "Naive's three launches visit the tiles for S, the row blocks for the softmax and the "
        "tiles again for O: each visit counts as one.",
    )


def _under_way(position: Position) -> bool:
    """Return whether a run is inside a visit, not between two."""
    return position.visit is not None and position.visit.index == position.visits


def place_words(comparison: Comparison, position: Position) -> tuple[str, ...]:
    """Return the place of one run, and short forms."""
    program = comparison.programs[position.algorithm]
    count = f"{count_text(position.visits)} of {count_text(len(program))}"
    visits = f"{count_text(position.visits)} of {plural(len(program), 'visit')}"
    if position.finished:
        return f"finished: {visits}", "finished", ""
    words = [visits]
    if _under_way(position):  # bytes of a begun visit count
        count = f"{count_text(position.visits + 1)} of {count_text(len(program))}"
        words = [f"visit {count}"]
    if position.visit is not None:
        if len(program.launches) > 1:
            words.append(program.launches[position.visit.launch].name)
        if program.workload.heads > 1:
            words.append(head_words(program.workload, position.visit.head))
    return " · ".join(words), words[0], count, ""
