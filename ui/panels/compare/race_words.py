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
from ui.panels.compare.words import ROOFLINE, launch_words, mask_words, named, title

_SAME = 1.005
"""Ratios up to here count as equal."""
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def race_title(race: Race, shown: Comparison) -> tuple[str, ...]:
    """Return what runs, longest first.

    Parameters
    ----------
    shown : Comparison
        That of the run on show, which may be shorter.
    """
    w = race.workload
    *words, _ = scenario_words(w)  # the last says where the input comes from: there is none
    here = shown.programs[shown.shown].workload.seqlen_k
    other = "" if here == w.seqlen_k else f" · the run on show has {count_text(here)} keys"
    at = f"Whole runs on {w.gpu.name}"
    return (
        " · ".join((at, *words)) + other,
        " · ".join((at, *words[:2])) + other,
        " · ".join((at, *words[:2])),
        f"{at} at N = {count_text(w.seqlen_k)}",
        f"N = {count_text(w.seqlen_k)} on {w.gpu.name}",
        f"N = {count_text(w.seqlen_k)}",
    )


def result_words(lane: RaceLane) -> tuple[str, ...]:
    """Return what is said at a lane's finish, longest first."""
    place = f"{lane.place}{_ENDINGS.get(lane.place, 'th')}"
    spent = f"≈ {time_text(lane.seconds)}"
    return f"{place} · {spent}", spent


def bytes_words(lane: RaceLane, standing: Standing) -> tuple[str, ...]:
    """Return what a lane has requested so far, longest first."""
    count, whole = standing.counters.bytes, lane.total.counters.bytes
    part = bytes_of_text(count, whole)
    brief = part.partition(" of ")[0] + " " + part.rpartition(" ")[2]
    return f"{part} requested from HBM", f"{part} requested", part, brief


def progress_words(race: Race, lane: RaceLane, standing: Standing) -> tuple[str, ...]:
    """Return which launch is under way, or how much longer than the first it has taken."""
    if standing.finished:
        first = race.first
        ratio = lane.seconds / first.seconds
        if lane.place == 1 or ratio <= _SAME:
            return ("",)
        times = factor_text(ratio)
        return f"{times} as long as {title(first.algorithm)}", f"{times} as long as the first", ""
    if standing.launch is None or len(lane.launches) == 1:
        return ("",)
    name = lane.launches[standing.launch].name
    return f"launch {standing.launch + 1} of {len(lane.launches)}: {name}", name, ""


def waiting_words(race: Race, standing: Standing) -> tuple[str, ...]:
    """Return how long matrix units wait for memory if L2 has nothing, longest first."""
    if standing.waits is None:
        if race.first.total.time.compute is not None:
            return ("",) * 4  # before the start
        dtype = race.workload.dtype
        return (
            f"no matrix rate for {dtype} in the data sheet", f"no matrix rate for {dtype}",
            "no matrix rate", "",
        )  # fmt: skip
    wait = "waited" if standing.finished else "wait"
    share = f"{100 * standing.waits:.0f}\u202f%"
    if share.startswith("100") and standing.waits < 1:
        share = ">\u202f99\u202f%"
    return (
        f"without L2, matrix units {wait} {share} of the time",
        f"without L2, units {wait} {share}", f"without L2: {wait} {share}", share,
    )  # fmt: skip


WIDEST_WAIT = (
    "without L2, matrix units waited >\u202f100\u202f% of the time",
    "without L2, units waited >\u202f100\u202f%", "without L2: waited >\u202f100\u202f%",
    ">\u202f100\u202f%",
)  # fmt: skip
"""At least as wide as each wording can be, by which one is chosen for all lanes and times."""


def clock_words(race: Race) -> tuple[str, ...]:
    """Return whose time the clock shows, longest first."""
    gpu = race.workload.gpu.name
    return f"of simulated time on {gpu}", "of simulated time"


def pace_words_of(race: Race, watched: float, where: str) -> tuple[str, ...]:
    """Return how much simulated time passes in a second.

    Parameters
    ----------
    where : str
        Whose second: ``here``, ``of the film``.
    """
    spent = time_text(race.seconds / watched)
    return f"1 s {where} is ≈ {spent} on the GPU", f"1 s {where}: ≈ {spent}", ""


def race_clock(race: Race, seconds: float) -> str:
    """Return the time on the clock."""
    return f"≈ {clock_text(seconds, race.seconds)}"


def verdict(race: Race) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the factor, what it compares, and what the two request; the words longest first."""
    first, last = race.first, race.last
    factor = factor_text(race.time_factor)
    if race.time_factor <= _SAME:
        spent = time_text(first.seconds)
        words: tuple[str, ...] = (
            f"as fast: all of them are estimated at ≈ {spent}", f"all take ≈ {spent}",
        )  # fmt: skip
    else:
        quick, slow = time_text(first.seconds), time_text(last.seconds)
        words = (
            f"as fast: {title(first.algorithm)} in ≈ {quick}, {named(last.algorithm)} in ≈ {slow}",
            f"as fast: {title(first.algorithm)}, beside {named(last.algorithm)}",
            f"as fast: {first.algorithm} beside {last.algorithm}",
            f"{first.algorithm} : {last.algorithm}",
        )
    few, many = (bytes_text(lane.total.counters.bytes) for lane in (first, last))
    times = factor_text(race.byte_factor)
    asked: tuple[str, ...] = (
        f"requested from HBM: {few} and {many}, {times} as much",
        f"requested: {few} and {many}, {times} as much",
        f"bytes: {few} and {many}",
        f"bytes: {times}",
    )
    if of_it := mask_words(race.tiles_factor, race.mask_factor):
        asked = (f"{of_it[0]}; {asked[1]}", *of_it)
    return factor, words, asked


def race_description(race: Race) -> str:
    """Return the result for screen readers."""
    factor, compared, asked = verdict(race)
    lanes = (
        f"{title(lane.algorithm)}: {result_words(lane)[0]}, "
        f"{bytes_text(lane.total.counters.bytes)} requested"
        for lane in race.lanes
    )
    return "; ".join((*lanes, f"{factor} {compared[0]}", asked[0]))


def notes(race: Race) -> tuple[tuple[str, ...], ...]:
    """Return what to know about the figures, most important first, each long and short."""
    w = race.workload
    sms = count_text(w.gpu.sms)
    known = race.first.total.time.compute is not None
    said = (
        (
            f"Estimates by the roofline (Williams et al. 2009) from the data sheet: {ROOFLINE}.",
            "Roofline estimates from the data sheet, without L2: requested bytes over bandwidth, "
            "FLOPs over matrix rate.",
            "Roofline estimates from the data sheet, without L2.",
        ),
        (
            f"Squares: the {sms} SMs; hollow and grey: the share of the time in which matrix units "
            "would wait for memory without L2.",
            f"Grey: the share of the {sms} SMs' time that would wait for memory without L2.",
            "Grey: waits for memory if there is no L2.",
        )
        if known
        else (),
        launch_words([lane.total for lane in race.lanes]) or _some_below_launch(race),
    )
    return tuple(texts for texts in said if texts)


def _some_below_launch(race: Race) -> tuple[str, ...]:
    if not any(lane.total.time.below_launch for lane in race.lanes):
        return ()
    return (f"An estimate of less than {LAUNCH} says little: a kernel launch alone takes that.",)
