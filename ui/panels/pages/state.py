"""What the panel of pages shows: a server's cache at a step, in pages and in stretches."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_lowercase

from simulator.problem.workload import Workload
from simulator.study.serving.by_hand import MOST, CacheMove, by_hand
from simulator.study.serving.pages import (
    CacheStep,
    Running,
    Server,
    Waste,
    paged_waste,
    served_in_pages,
    served_in_stretches,
    stretched_waste,
    usual_server,
)
from simulator.study.serving.run_cache import run_cache
from ui.look.units import plural


@dataclass(frozen=True, slots=True)
class PagesState:
    """A server, everything that happens, and the step that is shown."""

    server: Server  # the cache and the requests
    sharing: bool  # whether samples of one prompt share its pages
    # in_pages, in_stretches: after each step, dealt out in pages and in stretches
    in_pages: tuple[CacheStep, ...]
    in_stretches: tuple[CacheStep, ...]
    step: int = 0  # which step is shown; past its end a run stays as it was last
    of_run: bool = False  # whether it is the cache of the run that is shown, which does not change
    # what has been done by hand, if it is the cache that is changed by hand
    moves: tuple[CacheMove, ...] = ()
    chosen: int = -1  # which of its sequences the next move is about

    @property
    def by_hand(self) -> bool:
        """Whether it is the cache that is changed by hand."""
        return bool(self.moves)

    @property
    def steps(self) -> int:
        """How many steps there are until the slower one is done."""
        return max(len(self.in_pages), len(self.in_stretches))

    @property
    def now(self) -> CacheStep:
        """The cache in pages."""
        return self.in_pages[min(self.step, len(self.in_pages) - 1)]

    @property
    def beside(self) -> CacheStep:
        """The cache in stretches."""
        return self.in_stretches[min(self.step, len(self.in_stretches) - 1)]

    @property
    def wastes(self) -> tuple[Waste, Waste]:
        """Where the slots go, in pages and in stretches."""
        return paged_waste(self.server, self.now), stretched_waste(self.server, self.beside)

    @property
    def title(self) -> tuple[str, ...]:
        """The picture's title, longest first."""
        if self.of_run:
            sequences = plural(len(self.now.running), "sequence")
            return (f"The cache of this run: {sequences}", sequences)
        if self.by_hand:
            taken = len(self.now.counts)
            pages = f"{taken} of {plural(self.server.places, 'page')} taken"
            return (
                f"By hand: {plural(len(self.now.running), 'sequence')}, {pages}", pages
            )  # fmt: skip
        end = f"step {self.step} of {self.steps - 1}"
        return (f"A server's cache of {self.server.slots} tokens, {end}", f"Cache, {end}", end)

    @property
    def words(self) -> tuple[str, ...]:
        """What has happened, and what the two ways come to."""
        if self.by_hand:
            return (_last_move(self), _shared(self))
        return (_of_run(self),) if self.of_run else (_events(self), _ends(self))

    @property
    def waits(self) -> tuple[str, ...]:
        """Who has no room yet, and who is answered, longest first."""
        if self.of_run:
            return ()
        now = self.now
        return (f"{plural(now.waiting, 'sequence')} waiting, {now.done} answered",
                f"{now.waiting} waiting, {now.done} done")  # fmt: skip

    @property
    def stretches(self) -> tuple[str, ...]:
        """What the stretches are, longest first."""
        if self.of_run:
            return ("the same sequences in stretches as long as the longest", "in stretches")
        if self.by_hand:
            count = len(self.beside.running)
            fit = f"{count} fit{'s' * (count == 1)}, {self.beside.waiting} would wait"
            return (f"the same sequences in stretches of {MOST} slots: {fit}",
                    f"in stretches: {fit}", "in stretches")  # fmt: skip
        running = (
            f"{plural(len(self.beside.running), 'sequence')} running, {self.beside.waiting} waiting"
        )
        return (f"the same requests in stretches, reserved for the longest answer: {running}",
                f"in stretches: {running}", "in stretches")  # fmt: skip


def pages_state(page: int, *, sharing: bool) -> PagesState:
    """Return the usual server with pages of so many tokens, at its first step."""
    server = usual_server(page)
    return PagesState(
        server,
        sharing,
        tuple(served_in_pages(server, sharing=sharing)),
        tuple(served_in_stretches(server)),
    )


def run_state(workload: Workload) -> PagesState | None:
    """Return the cache of a run; None of a run without pages."""
    found = run_cache(workload)
    if found is None:
        return None
    server, in_pages, in_stretches = found
    return PagesState(server, False, (in_pages,), (in_stretches,), of_run=True)


def hand_state(page: int, moves: tuple[CacheMove, ...], chosen: int) -> PagesState:
    """Return the cache after some moves by hand, at least one; a sequence that runs is chosen."""
    server, in_pages, in_stretches = by_hand(page, moves)
    chosen = min(chosen, len(in_pages.running) - 1)
    return PagesState(server, True, (in_pages,), (in_stretches,), moves=moves, chosen=chosen)


def _of_run(state: PagesState) -> str:
    """Return in words what pages and stretches hold without a token."""
    pages, stretches = state.wastes
    longest = max(each.tokens for each in state.now.running)
    return (
        f"There is room for stretches of {longest} slots, one for each sequence. In pages "
        f"{plural(pages.inside, 'slot')} of {pages.used + pages.inside} "
        f"{'is' if pages.inside == 1 else 'are'} held without a token; "
        f"in stretches {stretches.inside} of {stretches.used + stretches.inside}."
    )


def sequence_name(server: Server, each: Running) -> str:
    """Return the number of a request, with a letter for its sample if it has several."""
    several = len(server.requests[each.request].answers) > 1
    return f"{each.request}{ascii_lowercase[each.sample] if several else ''}"


def _events(state: PagesState) -> str:
    """Return in words what the step has done in pages."""
    if state.step >= len(state.in_pages):
        return f"In pages all was answered after {len(state.in_pages)} steps."
    said = _changes(state.now)
    return f"This step: {', '.join(said)}." if said else "This step: no page was taken or given."


def _changes(now: CacheStep) -> list[str]:
    """Return in words what happened to pages."""
    said = [
        f"{plural(len(places), 'page')} {what}"
        for places, what in (
            ([place for place in now.taken if place not in now.copied], "taken"),
            (now.copied, "copied, because others read it"),
            (now.given, "given back"),
        )
        if places
    ]
    lost = dict.fromkeys(now.preempted)  # two samples of a request are one
    return said + [f"request {number} gave its pages back and waits" for number in lost]


_DONE = {
    "admit": "A sequence was admitted", "grow": "A sequence has one token more",
    "fork": "A sequence was forked: both read the same pages",
    "end": "A sequence ended",
}  # fmt: skip


def _last_move(state: PagesState) -> str:
    """Return in words what the last move has done, and what a server does if no page is free."""
    now, kind = state.now, state.moves[-1].kind
    if now.preempted:
        begins = "No page was free, so the sequence that came last gives its own back"
    elif kind == "admit" and now.waiting:
        begins = "There are too few free pages, so the new sequence waits"
    else:
        begins = _DONE[kind]
    said = _changes(now)
    return f"{begins}: {', '.join(said)}." if said else f"{begins}. No page was taken or given."


def _shared(state: PagesState) -> str:
    """Return in words what sharing saves, and what pages hold without a token."""
    waste = state.wastes[0]
    shared = sum(count > 1 for count in state.now.counts.values())
    return (
        f"{plural(shared, 'page')} read by several sequences, which saves "
        f"{plural(waste.saved, 'slot')}; {plural(waste.inside, 'slot')} held without a token. "
        "Click a sequence to choose it."
    )


def _ends(state: PagesState) -> str:
    """Return when each of the two is done, and how many ran at once."""
    one, other = (
        max(len(moment.running) for moment in moments)
        for moments in (state.in_pages, state.in_stretches)
    )
    return (
        f"In pages up to {one} sequences run at once and all is answered after "
        f"{len(state.in_pages)} steps; in stretches up to {other}, after {len(state.in_stretches)}."
    )
