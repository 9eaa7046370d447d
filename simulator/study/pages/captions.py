"""Numbers of pages that captions may ask for."""

from __future__ import annotations

from functools import cache

from simulator.base.errors import InputError, refuse
from simulator.problem.paging import PageTable
from simulator.study.captions import Numbers, chosen, known, named, whole
from simulator.study.pages.pages import (
    CacheStep,
    Server,
    paged_waste,
    served_in_pages,
    served_in_stretches,
    stretched_waste,
    usual_server,
)
from simulator.study.pages.run_cache import run_cache

_WAYS = ("shared", "apart", "stretches")
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
    return int(table.used[whole("page", page, 0, table.pages - 1)])


@known
def served_steps(_: Numbers, way: str) -> int:
    """Steps until the server of Pages has answered all: `shared`, `apart` or `stretches`."""
    return len(_steps(way))


@known
def served_at_once(_: Numbers, way: str) -> int:
    """Most sequences that run there at once."""
    return max(len(step.running) for step in _steps(way))


@known
def served_copies(_: Numbers) -> int:
    """Pages that are copied there before somebody writes into them, in the whole run."""
    return sum(len(step.copied) for step in _steps("shared"))


@known
def served_slots(_: Numbers, way: str, part: str, step: int) -> int:
    """Slots of that cache after a step: `used`, `inside`, `outside`, `free`, or `saved`."""
    steps = _steps(way)
    return _slots(usual_server(), way, part, steps[whole("step", step, 0, len(steps) - 1)])


@known
def cache_slots(n: Numbers, way: str, part: str) -> int:
    """Slots of the run's cache, in `pages` or `stretches`: `used`, `inside` and so on."""
    found = run_cache(n.workload)
    if found is None:
        raise _not_paged(n)
    server, in_pages, in_stretches = found
    step = named("way", way, {"pages": in_pages, "stretches": in_stretches})
    return _slots(server, way, part, step)


def _slots(server: Server, way: str, part: str, step: CacheStep) -> int:
    waste = stretched_waste if way == "stretches" else paged_waste
    count: int = getattr(waste(server, step), chosen("part", part, _PARTS))
    return count


def _table(n: Numbers) -> PageTable:
    if n.workload.pages is None:
        raise _not_paged(n)
    return n.workload.pages


def _not_paged(n: Numbers) -> InputError:
    return refuse("", "algorithm", n.workload.algorithm, "one whose K and V lie in pages")


@cache
def _steps(way: str) -> tuple[CacheStep, ...]:
    if chosen("way", way, _WAYS) == "stretches":
        return tuple(served_in_stretches(usual_server()))
    return tuple(served_in_pages(usual_server(), sharing=way == "shared"))
