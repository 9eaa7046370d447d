"""The race in words: what runs, how far each is, who has won by how much."""

from __future__ import annotations

from simulator.study.compare import Comparison
from simulator.study.race import Race, RaceLane, Standing
from ui.look.run_words import scenario_words
from ui.look.units import (
    LAUNCH,
    bytes_of_text,
    bytes_text,
    clock_text,
    count_text,
    factor_text,
    time_text,
)
from ui.panels.compare.words import ROOFLINE, SAME, label, launch_words, mask_words, named, title

_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def race_title(race: Race, shown: Comparison) -> tuple[str, str]:
    """Return what runs, and in short; the run on show may be shorter."""
    w = race.workload
    *words, _ = scenario_words(w)  # the last says where the input comes from: there is none
    here = shown.programs[shown.shown].workload.seqlen_k
    other = [] if here == w.seqlen_k else [f"the run on show has {count_text(here)} keys"]
    at = f"Whole runs on {w.gpu.name}"
    return " · ".join((at, *words, *other)), f"{at} at N = {count_text(w.seqlen_k)}"


def result_words(lane: RaceLane) -> tuple[str, str]:
    """Return what is said at a lane's finish, and in short."""
    spent = f"≈ {time_text(lane.seconds)}"
    return f"{lane.place}{_ENDINGS.get(lane.place, 'th')} · {spent}", spent


def requested_words(lane: RaceLane, standing: Standing) -> tuple[str, str, str]:
    """Return what a lane has requested so far, and in short."""
    part = bytes_of_text(standing.counters.bytes, lane.total.counters.bytes)
    return f"{part} requested from HBM", part, part.partition(" of ")[2]


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


def waiting_words(race: Race, standing: Standing) -> tuple[str, str]:
    """Return how long matrix units wait for memory if L2 has nothing, and in short."""
    if standing.waits is None:
        if race.first.total.time.compute is not None:
            return "", ""  # before the start
        return f"no matrix rate for {race.workload.dtype} in the data sheet", "no matrix rate"
    wait = "waited" if standing.finished else "wait"
    share = f"{100 * standing.waits:.0f}\u202f%"
    if share.startswith("100") and standing.waits < 1:
        share = ">\u202f99\u202f%"
    return f"without L2, matrix units {wait} {share} of the time", f"without L2: {wait} {share}"


def pace_words_of(race: Race, watched: float, where: str) -> str:
    """Return how much simulated time passes in a second here, or of a film."""
    return f"1 s {where} is ≈ {time_text(race.seconds / watched)} on the GPU"


def race_clock(race: Race, seconds: float) -> str:
    """Return the time on the clock."""
    return f"≈ {clock_text(seconds, race.seconds)}"


def verdict(race: Race) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the factor, what it compares, and what the two request, the mask's part first."""
    first, last = race.first, race.last
    quick, slow = time_text(first.seconds), time_text(last.seconds)
    words: tuple[str, ...] = (
        f"as fast: {title(first.algorithm)} in ≈ {quick}, {named(last.algorithm)} in ≈ {slow}",
        f"as fast as {named(last.algorithm)}",
        f"as fast as {label(last.algorithm)}",
        "as fast",
    )
    if race.time_factor <= SAME:
        words = (f"as fast: all take ≈ {quick}",)
    few, many = (bytes_text(lane.total.counters.bytes) for lane in (first, last))
    asked = f"requested from HBM: {few} and {many}, {factor_text(race.byte_factor)} as much"
    of_it = mask_words(race.tiles_factor, race.mask_factor)
    brief = f"{few} and {many}"
    said = (*((f"{of_it}; {asked}", of_it) if of_it else (asked,)), brief, "")
    return factor_text(race.time_factor), words, said


def race_results(race: Race) -> tuple[str, ...]:
    """Return the result for screen readers."""
    lanes = (
        f"{title(lane.algorithm)}: {result_words(lane)[0]}, "
        f"{bytes_text(lane.total.counters.bytes)} requested"
        for lane in race.lanes
    )
    factor, compared, asked = verdict(race)
    return "; ".join(lanes), f"{factor} {compared[0]}; {asked[0]}"


def race_notes(race: Race) -> tuple[str, ...]:
    """Return what to know about the figures, the most important first."""
    short = launch_words([lane.total for lane in race.lanes])
    if not short and any(lane.total.time.below_launch for lane in race.lanes):
        short = f"An estimate of less than {LAUNCH} says little: a kernel launch alone takes that."
    units = (
        f"Squares: the {count_text(race.workload.gpu.sms)} SMs; hollow and grey: the share of the "
        "time in which matrix units would wait for memory without L2."
    )
    known = race.first.total.time.compute is not None
    return (
        f"Estimates by the roofline (Williams et al. 2009) from the data sheet: {ROOFLINE}.",
        *([units] if known else []),
        *([short] if short else []),
    )
