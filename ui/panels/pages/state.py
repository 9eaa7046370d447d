"""What the panel of pages shows: a server's cache at a step, in pages and in stretches."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.study.serving.pages import (
    Moment,
    Running,
    Server,
    Waste,
    paged_waste,
    served_in_pages,
    served_in_stretches,
    stretched_waste,
    usual_server,
)
from ui.look.units import plural


@dataclass(frozen=True, slots=True)
class PagesState:
    """A server, everything that happens, and the step that is shown.

    Attributes
    ----------
    server : Server
        The cache and the requests.
    sharing : bool
        Whether samples of one prompt share its pages.
    in_pages, in_stretches : tuple of Moment
        After each step, dealt out in pages and in stretches.
    step : int
        Which step is shown; past its end a run stays as it was last.
    """

    server: Server
    sharing: bool
    in_pages: tuple[Moment, ...]
    in_stretches: tuple[Moment, ...]
    step: int = 0

    @property
    def steps(self) -> int:
        """How many steps there are until the slower one is done."""
        return max(len(self.in_pages), len(self.in_stretches))

    @property
    def now(self) -> Moment:
        """The cache in pages."""
        return self.in_pages[min(self.step, len(self.in_pages) - 1)]

    @property
    def beside(self) -> Moment:
        """The cache in stretches."""
        return self.in_stretches[min(self.step, len(self.in_stretches) - 1)]

    @property
    def wastes(self) -> tuple[Waste, Waste]:
        """Where the slots go, in pages and in stretches."""
        return paged_waste(self.server, self.now), stretched_waste(self.server, self.beside)

    @property
    def title(self) -> tuple[str, ...]:
        """What is shown, longest first."""
        end = f"step {self.step} of {self.steps - 1}"
        return (f"A server's cache of {self.server.slots} tokens, {end}", f"Cache, {end}", end)

    @property
    def words(self) -> tuple[str, ...]:
        """What has happened, and what the two ways come to."""
        return (_events(self), _ends(self))


def pages_state(page: int, *, sharing: bool) -> PagesState:
    """Return the usual server with pages of so many tokens, at its first step."""
    server = usual_server(page)
    return PagesState(
        server,
        sharing,
        tuple(served_in_pages(server, sharing=sharing)),
        tuple(served_in_stretches(server)),
    )


def sequence_name(server: Server, each: Running) -> str:
    """Return the number of a request, with a letter for its sample if it has several."""
    several = len(server.requests[each.request].answers) > 1
    return f"{each.request}{'abc'[each.sample] if several else ''}"


def _events(state: PagesState) -> str:
    """Return in words what the step has done in pages."""
    now = state.now
    if state.step >= len(state.in_pages):
        return f"In pages all was answered after {len(state.in_pages)} steps."
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
    said += [f"request {number} gave its pages back and waits" for number in lost]
    return f"This step: {', '.join(said)}." if said else "This step: no page was taken or given."


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
