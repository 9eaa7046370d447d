"""Which pages the current tile has, and where they lie, in words."""

from __future__ import annotations

from simulator.run.snapshot import Snapshot

_MOST = 4
"""Most places that are named one by one."""


def pages_at_work(snapshot: Snapshot) -> range:
    """Return the pages of the current tile; none where K and V do not lie in pages."""
    table = snapshot.program.workload.pages
    if table is None or snapshot.launch.combines:
        return range(0)
    return table.pages_with(snapshot.visit.cols)


def places_at_work(snapshot: Snapshot) -> tuple[int, ...]:
    """Return the places of these pages, in the order of the pages."""
    table, pages = snapshot.program.workload.pages, pages_at_work(snapshot)
    return () if table is None else tuple(table.used[pages.start : pages.stop].tolist())


def page_phrase(snapshot: Snapshot) -> str:
    """Return where the pages of the current tile lie; empty without pages."""
    pages, places = pages_at_work(snapshot), places_at_work(snapshot)
    if not pages:
        return ""
    named = ", ".join(map(str, places[:_MOST])) + ", …" * (len(places) > _MOST)
    if len(pages) == 1:
        return f"page {pages.start} lies at place {named}"
    return f"pages {pages.start}–{pages.stop - 1} lie at places {named}"
