"""The state of pages as shown: a server's cache at a step, in pages and in stretches."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.problem.workload import Workload
from simulator.study.pages.by_hand import FIRST, CacheMove, by_hand
from simulator.study.pages.pages import (
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
from simulator.study.pages.run_cache import run_cache


@dataclass(frozen=True, slots=True)
class PagesState:
    """A server, the cache after each step, and the step that is shown."""

    server: Server  # the cache and the requests
    sharing: bool  # whether samples of one prompt share its pages
    # in_pages, in_stretches: after each step, dealt out in pages and in stretches
    in_pages: tuple[CacheStep, ...]
    in_stretches: tuple[CacheStep, ...]
    step: int = 0  # the step that is shown; past its end a run stays at its last step
    of_run: bool = False  # whether the cache of the run is shown, which does not change
    # the moves by hand, if the cache that is changed by hand is shown
    moves: tuple[CacheMove, ...] = ()
    chosen: int = -1  # which of its sequences the next move is about
    made: tuple[CacheMove, ...] = FIRST  # the moves by hand, also while another cache is shown

    @property
    def by_hand(self) -> bool:
        """Whether the cache that is changed by hand is shown."""
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

    def readers(self, place: int) -> list[Running]:
        """Return the sequences that read a place."""
        return [each for each in self.now.running if place in each.pages]

    @property
    def wastes(self) -> tuple[Waste, Waste]:
        """The uses of the slots, in pages and in stretches."""
        return paged_waste(self.server, self.now), stretched_waste(self.server, self.beside)


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
    """Return the cache of a run; None for a run without pages."""
    found = run_cache(workload)
    if found is None:
        return None
    server, in_pages, in_stretches = found
    return PagesState(server, False, (in_pages,), (in_stretches,), of_run=True)


def hand_state(page: int, moves: tuple[CacheMove, ...], chosen: int) -> PagesState:
    """Return the cache after some moves by hand, at least one; a sequence that runs is chosen."""
    server, one, other = by_hand(page, moves)
    chosen = max(min(chosen, len(one.running) - 1), 0)
    return PagesState(server, True, (one,), (other,), moves=moves, chosen=chosen, made=moves)
