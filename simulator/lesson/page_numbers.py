"""Numbers of pages that a lesson's text may ask for; they join `FUNCTIONS`."""

from __future__ import annotations

from functools import lru_cache

from simulator.base.errors import refuse
from simulator.lesson.numbers import Numbers, known
from simulator.problem.paging import PageTable
from simulator.study.pages.pages import (
    CacheStep,
    Server,
    Waste,
    paged_waste,
    served_in_pages,
    served_in_stretches,
    stretched_waste,
    usual_server,
)
from simulator.study.pages.run_cache import run_cache

_WAYS = ("shared", "apart", "stretches")
_RUN_WAYS = ("pages", "stretches")
_PAGED = "one whose K and V lie in pages"
_PARTS = ("used", "inside", "outside", "free", "saved")


@known
def page_size(n: Numbers) -> int:
    """Tokens of a page of the run."""
    return _table(n).size


@known
def pages(n: Numbers) -> int:
    """Pages of the run's cache."""
    return _table(n).pages


@known
def page_place(n: Numbers, page: int) -> int:
    """At which place a page of the run lies."""
    table = _table(n)
    if not 0 <= page < table.pages:
        raise refuse("", "page", page, f"0 to {table.pages - 1}")
    return int(table.used[page])


@known
def served_steps(n: Numbers, way: str) -> int:
    """Steps until the server of Pages has answered all: "shared", "apart" or "stretches"."""
    return len(_moments(_way(way)))


@known
def served_at_once(n: Numbers, way: str) -> int:
    """Most sequences that run there at once."""
    return max(len(moment.running) for moment in _moments(_way(way)))


@known
def served_copies(n: Numbers) -> int:
    """Pages that are copied there before somebody writes into them, in the whole run."""
    return sum(len(moment.copied) for moment in _moments("shared"))


@known
def served_slots(n: Numbers, way: str, part: str, step: int) -> int:
    """Slots of that cache after a step: "used", "inside", "outside", "free", or "saved"."""
    _part(part)
    moments = _moments(_way(way))
    if not 0 <= step < len(moments):
        raise refuse("", "step", step, f"0 to {len(moments) - 1}")
    count: int = getattr(_waste(way, moments[step]), part)
    return count


@known
def cache_slots(n: Numbers, way: str, part: str) -> int:
    """Slots of the run's cache, in "pages" or "stretches": "used", "inside" and so on."""
    _part(part)
    if way not in _RUN_WAYS:
        raise refuse("", "way", way, f"one of {', '.join(_RUN_WAYS)}")
    found = run_cache(n.workload)
    if found is None:
        raise refuse("", "algorithm", n.workload.algorithm, _PAGED)
    server, in_pages, in_stretches = found
    waste = paged_waste(server, in_pages)
    if way == "stretches":
        waste = stretched_waste(server, in_stretches)
    return int(getattr(waste, part))


def _part(part: str) -> None:
    if part not in _PARTS:
        raise refuse("", "part", part, f"one of {', '.join(_PARTS)}")


def _table(n: Numbers) -> PageTable:
    table = n.workload.pages
    if table is None:
        raise refuse("", "algorithm", n.workload.algorithm, _PAGED)
    return table


def _way(way: str) -> str:
    if way not in _WAYS:
        raise refuse("", "way", way, f"one of {', '.join(_WAYS)}")
    return way


@lru_cache(maxsize=1)
def _server() -> Server:
    return usual_server()


@lru_cache(maxsize=len(_WAYS))
def _moments(way: str) -> tuple[CacheStep, ...]:
    if way == "stretches":
        return tuple(served_in_stretches(_server()))
    return tuple(served_in_pages(_server(), sharing=way == "shared"))


def _waste(way: str, moment: CacheStep) -> Waste:
    of = stretched_waste if way == "stretches" else paged_waste
    return of(_server(), moment)
