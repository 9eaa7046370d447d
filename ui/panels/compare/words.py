"""The comparison in words: who requests least, who is unexpectedly slow, and why."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QFont

from simulator.base.dtypes import STATISTIC_WIDTH
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS, TENSORS, baseline_of
from simulator.study.compare import AtScale, Comparison, Position, Totals, at_scale
from simulator.study.recompute import trade_of
from ui.look.draw import wrapped
from ui.look.names import head_words
from ui.look.units import (
    LAUNCH,
    bytes_text,
    count_text,
    estimate_text,
    factor_text,
    plural,
    time_text,
)

ROOFLINE = (
    "the longer of requested bytes over bandwidth, as if nothing were found in L2, and FLOPs over "
    "matrix rate"
)
"""What every estimated time is."""
_SAME = 1.005
"""Ratios up to here count as equal."""


def title(name: str) -> str:
    """Return an algorithm's name in full."""
    return ALGORITHMS[name].title


def named(name: str) -> str:
    """Return the name inside a sentence."""
    return ALGORITHMS[name].in_a_sentence


def label(name: str) -> str:
    """Return the name beside a figure."""
    return ALGORITHMS[name].label


def mask_words(tiles: float, mask: float) -> tuple[str, ...]:
    """Return what of a factor is the mask, longest first; nothing if none of it is.

    Parameters
    ----------
    tiles, mask : float
        The factor if every pair were visible, and what skipping hidden tiles makes of it.
    """
    if mask <= _SAME:
        return ()
    said = f"{factor_text(tiles)} by tiles on chip"
    skips = factor_text(mask)
    return (
        f"{said}, and {skips} because hidden tiles are skipped",
        f"{said}, {skips} by skipping hidden tiles",
        f"{factor_text(tiles)} tiles, {skips} mask",
    )


def verdicts(comparison: Comparison) -> tuple[tuple[str, ...], ...]:
    """Return sentences about the whole runs, most important first, each long and short."""
    names = comparison.alike
    # The later algorithm first: if it requests more than the earlier one, the sentence says so.
    pairs = [(later, earlier) for n, later in enumerate(names) for earlier in names[:n]]
    unexpected = [
        sentence
        for slower, other in pairs
        if (sentence := _more_than_expected(comparison, slower, other))
    ]
    why = () if unexpected else _why_baseline(comparison)
    scale = at_scale(comparison.programs[comparison.shown])
    long = scale_sentences(scale, comparison.programs[comparison.shown].workload) if scale else ()
    if unexpected:
        said = (
            unexpected[0],
            long,
            *unexpected[1:],
            _least(comparison),
            launch_words(comparison.totals),
        )
    else:
        said = (_least(comparison), long, why, launch_words(comparison.totals))
    return tuple(texts for texts in (_gradients(comparison), _another(comparison), *said) if texts)


def _gradients(comparison: Comparison) -> tuple[str, ...]:
    """Return what forward and backward pass request together, of a backward pass."""
    if not ALGORITHMS[comparison.shown].backward:
        return ()
    trade = trade_of(comparison.programs[comparison.shown].workload)
    few, many = sorted(trade.both, key=lambda each: each.bytes)
    sums = " and ".join(f"{label(each.forward)} {bytes_text(each.bytes)}" for each in (few, many))
    times = factor_text(many.bytes / few.bytes)
    return (
        f"Forward and backward pass together request: {sums}, {times} as much. Backward passes"
        " make gradients, so they are ranked apart.",
        f"Forward and backward together: {sums}, {times} as much.",
        "Backward passes make gradients: they are ranked apart.",
    )


def _another(comparison: Comparison) -> tuple[str, ...]:
    """Return a sentence if one of them computes another function."""
    others = [name for name in comparison.programs if not ALGORITHMS[name].softmax]
    if not others:
        return ()
    name, phi = title(others[0]), comparison.programs[others[0]].workload.feature_map
    random = "Its weights are those of a softmax on average over its random features alone."
    if phi is not None and phi.projects:
        return f"{name} is another function. {random}", f"{name} is another function."
    return (
        f"{name} is another function, not an approximation: its O differs from that of the others.",
        f"{name} is another function: its O differs.",
    )


def scale_sentences(scale: AtScale, w: Workload) -> tuple[str, ...]:
    """Return what a run that is too short to save bytes would save if it were long."""
    tiles = f"{count_text(scale.rows)} × {count_text(scale.cols)} tiles"
    base = scale.baseline
    times = {name: factor_text(scale.times(name)) for name in scale.bytes if name != base}
    since = ""
    if scale.since is not None:
        from_n = f"from N ≈ {count_text(scale.since)} on"
        since = f"{title(scale.last)} requests less than {named(base)} {from_n}; "
    where = f"at N = {count_text(scale.keys)} {named(base)} requests"
    ratios = ", ".join(f"{factor} as much as {title(name)}" for name, factor in times.items())
    brief = ", ".join(f"{factor} {name}" for name, factor in times.items())
    few = f"{plural(w.seqlen_k, 'token')} in {count_text(w.rows)} × {count_text(w.cols)} tiles"
    few += " save little."
    return (
        f"{few} In {tiles}, as kernels ship them, {since}{where} {ratios}.",
        f"{few} In {tiles} {where} {ratios}.",
        f"In {tiles} {where} {ratios}.",
        f"In {tiles} at N = {count_text(scale.keys)}: {base} {brief}.",
    )


def _of(comparison: Comparison, name: str) -> Totals:
    return next(total for total in comparison.totals if total.algorithm == name)


def _least(comparison: Comparison) -> tuple[str, ...]:
    alike = (total for total in comparison.totals if total.algorithm in comparison.alike)
    first, *rest = sorted(alike, key=lambda total: total.counters.bytes)
    parts = [
        f"{named(one.algorithm)} {factor_text(one.counters.bytes / first.counters.bytes)}"
        for one in rest
    ]
    least = bytes_text(first.counters.bytes)
    long = f"{title(first.algorithm)} requests least, {least}; {', '.join(parts)}."
    return long, f"{title(first.algorithm)} requests least, {least}."


def launch_words(totals: Sequence[Totals]) -> tuple[str, ...]:
    """Return a sentence if no run is estimated to take longer than a launch."""
    if not all(total.time.below_launch for total in totals):
        return ()
    return (f"All estimated times are less than a kernel launch takes: some {LAUNCH}.",)


def _more_than_expected(comparison: Comparison, name: str, other: str) -> tuple[str, ...]:
    """Return a sentence if `name` requests more than `other`, else nothing."""
    one, two = _of(comparison, name), _of(comparison, other)
    ratio = one.counters.bytes / two.counters.bytes
    if ratio <= _SAME:
        return ()
    slower = one.time.seconds / two.time.seconds
    if one.time.below_launch and two.time.below_launch:
        pace = ""  # neither would take longer than its launch
    elif slower > _SAME:
        pace = f" and, without L2, is estimated {factor_text(slower)} as slow"
    else:
        pace = ", yet is estimated no slower: the matrix products take longer than the bytes"
    times, reason = factor_text(ratio), _reason(comparison, name)
    return (
        f"{title(name)} requests {times} as much as {named(other)} here{pace}: {reason}.",
        f"{title(name)} requests {times} as much as {other} here: {reason}.",
        f"{name} requests {times} {other}'s bytes: {reason}.",
        f"{title(name)} requests {times} as much as {other} here.",
    )


def _reason(comparison: Comparison, name: str) -> str:
    total = _of(comparison, name)
    w = comparison.programs[total.algorithm].workload
    keys = ALGORITHMS[name].keys
    if ALGORITHMS[name].normalises_each_tile:
        size = w.heads * w.seqlen_q * w.value_dim * STATISTIC_WIDTH
        times = _count(total.counters.read["O"] / size)
        return f"d = {w.head_dim} and Bc = {w.cols} make it read O {times}"
    size = w.heads * w.seqlen_k * w.head_dim * w.width
    return f"Br = {w.rows} makes it read K and V {_count(total.counters.read[keys] / size)}"


def _count(times: float) -> str:
    if times == round(times):
        return "once" if times == 1 else f"{count_text(round(times))} times"
    return f"{times:.1f} times on average"


def _why_baseline(comparison: Comparison) -> tuple[str, ...]:
    base = baseline_of(comparison.shown)
    w, most = comparison.programs[base.name].workload, _of(comparison, base.name)
    largest = max(_of(comparison, name).counters.bytes for name in comparison.alike)
    if most.counters.bytes < largest:
        return ()
    asked = most.counters.read, most.counters.write
    of_pairs = dict.fromkeys(
        t for way in asked for t, n in way.items() if n and TENSORS[t].of_pairs
    )
    moved = sum(way.get(t, 0) for way in asked for t in of_pairs)
    *rest, last = of_pairs
    words = f"{', '.join(rest)} and {last}" if rest else last
    share = 100 * moved / most.counters.bytes
    pairs = f"{count_text(w.seqlen_q)} × {count_text(w.seqlen_k)}"
    heads = ", for every head" if w.heads > 1 else ""
    words = f"{share:.0f} % of {base.label}'s bytes are {words}"
    return f"{words}, {pairs} numbers each{heads}.", f"{words}."


def legend_words(comparison: Comparison) -> tuple[str, ...]:
    """Return what the colours of boards and bars mean, longest first.

    Which tiles lie in HBM is a matter of the algorithm; how strong their colour is, of the mask.
    """
    stored = [label(name) for name in comparison.programs if ALGORITHMS[name].passes_pairs]
    filled = f"filled: in HBM ({', '.join(stored)}) or used and dropped"
    if not stored:
        filled = "filled: used and dropped"
    marks = (filled, "fainter: partly or wholly hidden", "hatched: skipped")
    boards = "  ·  ".join(("outlined: the tile at hand", *marks))
    return (
        f"Tiles: {boards}.  Bars: framed: the whole run  ·  filled: read  ·  hatched: written  ·  "
        "red line: the GPU's limit",
        boards,
        "  ·  ".join(marks),
        "  ·  ".join(marks[1:]),
    )


def pace_words(
    comparison: Comparison, positions: Sequence[Position], *, by_time: bool
) -> tuple[str, ...]:
    """Return by what they are kept at the same place, longest first."""
    shown = next(p for p in positions if p.algorithm == comparison.shown)
    if by_time:
        gpu = comparison.programs[shown.algorithm].workload.gpu.name
        spent = f"≈ {time_text(shown.time.seconds)} on {gpu}"
        said = estimate_text(shown.time.seconds, gpu)
        return (
            f"Same simulated time: whole visits that fit into {said}; {ROOFLINE}",
            f"Same simulated time: whole visits that fit into {said}",
            f"Same simulated time: whole visits that fit into {spent}",
            f"Same simulated time, {spent}",
            "Same simulated time",
        )
    over = any(p.finished for p in positions) and not all(p.finished for p in positions)
    done = f"{count_text(shown.visits)} {'visit' if shown.visits == 1 else 'visits'} done"
    if _under_way(shown):
        done += ", one more under way in the run on show"
    ended = ", or all there are" if over else ""
    return (
        f"Same number of tiles: {done}{ended}. Naive's three launches visit the tiles for S, "
        "the row blocks for the softmax and the tiles again for O: each visit counts as one",
        f"Same number of tiles: {done}{ended}; every visit of naive's three launches counts",
        f"Same number of tiles: {done}{ended}",
        "Same number of tiles",
    )


def _under_way(position: Position) -> bool:
    """Return whether its place is inside a visit, not between two."""
    return position.visit is not None and position.visit.index == position.visits


def place_words(comparison: Comparison, position: Position) -> tuple[str, ...]:
    """Return the place of one of them, longest first."""
    program = comparison.programs[position.algorithm]
    count = f"{count_text(position.visits)} of {count_text(len(program))}"
    if position.finished:
        return f"finished: {count} visits", f"finished: {count}", "finished"
    words = []
    said = f"{count} visits"
    if _under_way(position):  # its bytes so far count
        said = count = f"visit {count_text(position.visits + 1)} of {count_text(len(program))}"
    if position.visit is not None:
        if len(program.launches) > 1:
            words.append(program.launches[position.visit.launch].name)
        if program.workload.heads > 1:
            words.append(head_words(program.workload, position.visit.head))
    long = " · ".join((said, *words))
    return long, " · ".join((count, *words)), count


def sentences(comparison: Comparison, font: QFont, width: float, room: int) -> list[str]:
    """Return sentences about the whole runs in at most `room` lines of `width` pixels.

    The most important sentence comes first, if it fits.
    """
    return fitting_sentences(verdicts(comparison), font, width, room)


def fitting_sentences(
    said: Sequence[tuple[str, ...]], font: QFont, width: float, room: int
) -> list[str]:
    """Return sentences, each given long and short, in at most `room` lines of `width` pixels."""
    out: list[str] = []
    for texts in said:
        for text in texts:
            lines = wrapped(text, font, width)
            if len(lines) <= room - len(out):
                out += lines
                break
    return out
