"""Words for the pages of the current tile and their places."""

from __future__ import annotations

from simulator.run.snapshot import Snapshot

_MOST = 4
"""Most places that are named one by one."""


def page_phrase(snapshot: Snapshot) -> str:
    """Return where the pages of the current tile lie; empty without pages."""
    pages, places = snapshot.tile_pages, snapshot.tile_places
    if not pages:
        return ""
    named = ", ".join(map(str, places[:_MOST])) + ", …" * (len(places) > _MOST)
    if len(pages) == 1:
        return f"page {pages.start} lies at place {named}"
    return f"pages {pages.start}–{pages.stop - 1} lie at places {named}"
