"""The race in words: what runs, how far each is, who has won by how much."""

from __future__ import annotations

from simulator.study.compare import Comparison
from simulator.study.race import HIDDEN, Race, RaceLane, Standing
from ui.look.durations import duration_text
from ui.look.run_words import scenario_words
from ui.look.units import bytes_of_text, bytes_text, clock_text, count_text, factor_text, time_text
from ui.panels.compare.words import SAME, label, mask_words, named, time_words, title

_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def race_title(race: Race, shown: Comparison) -> tuple[str, str]:
    """Return what runs, and in short; the run on show may be shorter."""
    w = race.workload
    *words, _ = scenario_words(w)  # the last says where the input comes from: there is none
    here = shown.programs[shown.shown].workload.seqlen_k
    other = [] if here == w.seqlen_k else [f"the run on show has {count_text(here)} keys"]
    at = f"Whole runs on {w.gpu.name}"
    if race.copies > 1:
        other.insert(0, f"{count_text(race.copies)} such runs at once")
    return " · ".join((at, *words, *other)), f"{at} at N = {count_text(w.seqlen_k)}"


def result_words(lane: RaceLane) -> tuple[str, str]:
    """Return what is said at a lane's finish, and in short."""
    spent = duration_text(lane.duration)
    return f"{lane.place}{_ENDINGS.get(lane.place, 'th')} · {spent}", spent


def requested_words(lane: RaceLane, standing: Standing) -> tuple[str, str, str]:
    """Return what a lane has requested so far, and in short."""
    copies = lane.duration.copies
    part = bytes_of_text(copies * standing.counters.bytes, copies * lane.total.counters.bytes)
    moved = lane.duration.dram_bytes
    if standing.finished and moved is not None:
        whole = part.partition(" of ")[2]
        return f"{whole} requested · DRAM by model {bytes_text(moved)}", f"{whole} requested", whole
    return f"{part} requested", part, part.partition(" of ")[2]


def progress_words(race: Race, lane: RaceLane, standing: Standing) -> tuple[str, ...]:
    """Return which launch is under way, or how much longer than the first it has taken."""
    if standing.finished:
        ratio = lane.seconds / race.first.seconds
        if lane.place == 1 or ratio <= SAME:
            return ("",)
        times = f"{factor_text(ratio)} as long"
        return f"{times} as {title(race.first.algorithm)}", times, ""
    if standing.launch is None or len(lane.launches) == 1:
        return ("",)
    name = lane.launches[standing.launch].name
    return f"launch {standing.launch + 1} of {len(lane.launches)}: {name}", name, ""


def idle_words(race: Race, lane: RaceLane, standing: Standing) -> tuple[str, str]:
    """Return how long matrix units have nothing to multiply, and in short."""
    if standing.idle is None:
        return "", ""  # before the start, or there is no model
    share = f"{100 * standing.idle:.0f}\u202f%"
    if share.startswith("100") and standing.idle < 1:
        share = ">\u202f99\u202f%"
    limit = lane.bound_by if standing.launch is None else lane.launches[standing.launch].bound_by
    return f"limited by {limit}: matrix units idle {share}", f"{limit}: {share} idle"


def pace_words_of(race: Race, watched: float, where: str) -> str:
    """Return how much simulated time passes in a second here, or of a film."""
    return f"1 s {where} is {_sign(race)} {time_text(race.seconds / watched)} on the GPU"


def race_clock(race: Race, seconds: float) -> str:
    """Return the time on the clock."""
    return f"{_sign(race)} {clock_text(seconds, race.seconds)}"


def _sign(race: Race) -> str:
    return duration_text(race.first.duration)[0]


def verdict(race: Race) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the factor, what it compares, and what bytes the two move, the mask's part first."""
    first, last = race.first, race.last
    quick, slow = duration_text(first.duration), duration_text(last.duration)
    words: tuple[str, ...] = (
        f"as fast: {title(first.algorithm)} in {quick}, {named(last.algorithm)} in {slow}",
        f"as fast as {named(last.algorithm)}",
        f"as fast as {label(last.algorithm)}",
        "as fast",
    )
    if race.time_factor <= SAME:
        words = (f"as fast: all take {quick}",)
    few, many = (bytes_text(race.copies * lane.total.counters.bytes) for lane in (first, last))
    asked = f"requested: {few} and {many}, {factor_text(race.byte_factor)} as much"
    of_it = mask_words(race.tiles_factor, race.mask_factor)
    said = (*((f"{of_it}; {asked}", of_it) if of_it else (asked,)), f"{few} and {many}", "")
    return factor_text(race.time_factor), words, said


def race_results(race: Race) -> tuple[str, ...]:
    """Return the result for screen readers."""
    lanes = (
        f"{title(lane.algorithm)}: {result_words(lane)[0]}, "
        f"{bytes_text(race.copies * lane.total.counters.bytes)} requested"
        for lane in race.lanes
    )
    factor, compared, asked = verdict(race)
    return "; ".join(lanes), f"{factor} {compared[0]}; {asked[0]}"


def race_notes(race: Race) -> tuple[str, ...]:
    """Return what to know about the figures, the most important first."""
    notes = [time_words([lane.duration for lane in race.lanes])]
    if race.first.idle is not None:
        notes.append(
            f"Squares: the {count_text(race.workload.gpu.sms)} SMs; hollow and grey: the share of "
            "the time in which matrix units have nothing to multiply."
        )
    if race.copies > 1:
        notes.append(
            f"One run does not fill the GPU: {count_text(race.copies)} go side by side, toward "
            f"the {count_text(HIDDEN)} dimensions of published measurements."
        )
    if race.left_out:
        names = ", ".join(label(name) for name in race.left_out)
        notes.append(f"Not in the race, because their time is not modelled: {names}.")
    return tuple(notes)
