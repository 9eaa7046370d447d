"""Sequences of a server share one cache: in pages, or each in a stretch that is reserved for it.

A step gives every running sequence one token more. A sequence that is done gives its pages back; a
waiting one is taken in as soon as there is room for its prompt (continuous batching). Samples of
one prompt share its pages: each page counts how many sequences have it, and a sequence that would
write into a shared page gets a copy of it first (copy on write). If no page is free, the sequence
that came last gives its own back and waits again.

Beside it the same requests are served from stretches: a sequence gets as many slots side by side as
its request allows it at most, and shares nothing.

References
----------
Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with
PagedAttention", sections 3.1, 4.2, 4.4 and 4.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from simulator.problem.paging import pages_of


@dataclass(frozen=True, slots=True)
class Request:
    """A prompt, and the answers that somebody asks for."""

    arrives: int  # the step from which it waits
    prompt: int  # tokens of the prompt
    most: int  # tokens that a sample may have with the prompt, for which a stretch is reserved
    answers: tuple[int, ...]  # how many tokens each of its samples gets


@dataclass(frozen=True, slots=True)
class Server:
    """A cache and the requests to it."""

    page: int  # tokens of a page
    slots: int  # tokens that the cache has room for; a whole number of pages
    requests: tuple[Request, ...]  # in the order in which they arrive

    @property
    def places(self) -> int:
        """How many pages there is room for."""
        return self.slots // self.page


@dataclass(frozen=True, slots=True)
class Running:
    """A sequence that is being answered."""

    request: int  # request, sample: number of the request, and of its sample
    sample: int
    tokens: int  # tokens, last: tokens that it has, and that it will have
    last: int
    # the places of its pages; in a stretch its only number is the first slot
    pages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CacheStep:
    """The cache after a step."""

    step: int  # number of the step
    running: tuple[Running, ...]  # in the order in which they came
    # waiting, done: sequences that have arrived and have no room, and that are answered
    waiting: int
    done: int
    # taken, given, copied: places that this step has taken, given back, and written a copy to
    taken: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    copied: tuple[int, ...] = ()
    preempted: tuple[int, ...] = ()  # requests that had to give their pages back
    wanted: int = 0  # slots that the first sequence that waits would have reserved; 0 if none waits

    @property
    def counts(self) -> Counter[int]:
        """How many sequences have each page that is not free."""
        return Counter(place for each in self.running for place in each.pages)

    @property
    def tokens(self) -> int:
        """Tokens of all sequences; tokens of shared pages count once for each sequence."""
        return sum(each.tokens for each in self.running)


@dataclass(frozen=True, slots=True)
class Waste:
    """The uses of a cache's slots; they add up to all slots."""

    used: int  # slots with a token
    inside: int  # slots that a sequence has, without a token
    # free slots that the sequence that waits first cannot take: holes that are too small
    outside: int
    free: int  # the others
    saved: int = 0  # tokens that would take a slot of their own, if pages were not shared


def filled(server: Server, moment: CacheStep) -> dict[int, int]:
    """Return how many tokens stand in each page that is not free."""
    out: dict[int, int] = {}
    for each in moment.running:
        for n, place in enumerate(each.pages):
            own = min(each.tokens - n * server.page, server.page)
            out[place] = max(own, out.get(place, own))
    return out


def paged_waste(server: Server, moment: CacheStep) -> Waste:
    """Return the uses of the slots if they are dealt out in pages."""
    tokens = filled(server, moment)
    used, held = sum(tokens.values()), len(tokens) * server.page
    return Waste(used, held - used, 0, server.slots - held, moment.tokens - used)


def stretched_waste(server: Server, moment: CacheStep) -> Waste:
    """Return the uses of the slots if each sequence has a stretch of its own."""
    held = sum(server.requests[each.request].most for each in moment.running)
    used = moment.tokens
    outside = sum(n for n in holes(server, moment).values() if n < moment.wanted)
    return Waste(used, held - used, outside, server.slots - held - outside)


def holes(server: Server, moment: CacheStep) -> dict[int, int]:
    """Return the free stretches between the reserved ones: first slot and length."""
    taken = sorted((each.pages[0], server.requests[each.request].most) for each in moment.running)
    begins = [0, *(start + size for start, size in taken)]
    ends = [*(start for start, _ in taken), server.slots]
    return {a: b - a for a, b in zip(begins, ends, strict=True) if b > a}


SLOTS = 128
"""Slots of the server on show."""
_REQUESTS, _SHORTEST, _LONGEST = 12, 3, 16
_MOST = (24, 32, 40)
"""Most tokens of requests, in turn."""


def usual_server(page: int = 4, seed: int = 0) -> Server:
    """Return a small server, and requests of any lengths, some with two samples of one prompt."""
    rng, requests = np.random.default_rng(seed), []
    for n in range(_REQUESTS):
        prompt, most = int(rng.integers(_SHORTEST, _LONGEST)), _MOST[n % len(_MOST)]
        samples = 1 + (n % 3 == 1)
        answers = rng.integers(_SHORTEST, most - prompt + 1, size=samples).tolist()
        requests.append(Request(n * 3 // 2, prompt, most, tuple(answers)))
    return Server(page, SLOTS, tuple(requests))


class Pool:
    """The places of a cache: which are free, and what a step has done to them."""

    def __init__(self, places: int) -> None:
        self.counts = [0] * places
        self.taken: list[int] = []
        self.given: list[int] = []
        self.copied: list[int] = []

    @property
    def free(self) -> int:
        return self.counts.count(0)

    def take(self) -> int:
        """Return the first free place, which is taken now."""
        place = self.counts.index(0)
        self.counts[place] = 1
        self.taken.append(place)
        return place

    def give(self, pages: tuple[int, ...]) -> None:
        """Let a sequence leave its pages: pages that no sequence has any more are free."""
        for place in pages:
            self.counts[place] -= 1
            if not self.counts[place]:
                self.given.append(place)

    def share(self, pages: tuple[int, ...]) -> tuple[int, ...]:
        """Return the same pages for one sequence more."""
        for place in pages:
            self.counts[place] += 1
        return pages


def served_in_pages(server: Server, *, sharing: bool = True) -> Iterator[CacheStep]:
    """Yield the cache after each step until all is answered, if it is dealt out in pages.

    server: the cache and the requests; each alone has room in it.
    sharing: whether samples of one prompt share its pages.
    """
    pool = Pool(server.places)
    waiting = _asked(server)
    running: list[Running] = []
    done = step = 0
    while waiting or running:
        pool.taken, pool.given, pool.copied = [], [], []
        preempted: list[int] = []
        for each in [each for each in running if each.tokens == each.last]:
            pool.give(each.pages)
            running.remove(each)
            done += 1
        while waiting and server.requests[waiting[0].request].arrives <= step:
            begun = _begun(server, pool, running, waiting[0], sharing=sharing)
            if begun is None:
                break
            running.append(begun)
            waiting.pop(0)
        for each in list(running):
            if each not in running:
                continue  # it has given its pages back
            while (pages := room_for_one(server.page, pool, each)) is None:
                last = running.pop()
                pool.give(last.pages)
                preempted.append(last.request)
                waiting.insert(0, replace(last, pages=()))
                if last is each:
                    break
            else:
                grown = replace(each, tokens=each.tokens + 1, pages=pages)
                running[running.index(each)] = grown
        arrived = sum(server.requests[each.request].arrives <= step for each in waiting)
        yield CacheStep(
            step, tuple(running), arrived, done, tuple(pool.taken), tuple(pool.given),
            tuple(pool.copied), tuple(preempted), _wanted(server, waiting, arrived),
        )  # fmt: skip
        step += 1


def _wanted(server: Server, waiting: list[Running], arrived: int) -> int:
    """Return the slots of a stretch for the first waiting sequence; 0 if none has arrived."""
    return server.requests[waiting[0].request].most if arrived else 0


def _asked(server: Server) -> list[Running]:
    """Return all samples of all requests, with their prompts and without room."""
    return [
        Running(n, sample, request.prompt, request.prompt + answer, ())
        for n, request in enumerate(server.requests)
        for sample, answer in enumerate(request.answers)
    ]


def _begun(
    server: Server, pool: Pool, running: list[Running], asked: Running, *, sharing: bool
) -> Running | None:
    """Return a sequence with pages for its tokens; None if there are not enough."""
    prompt = server.requests[asked.request].prompt
    common: tuple[int, ...] = ()
    other = next((each for each in running if each.request == asked.request), None)
    if sharing and other is not None:
        # Pages of the prompt alone, the last of them only as long as no answer stands in it.
        whole = asked.tokens == other.tokens == prompt
        common = other.pages if whole else other.pages[: prompt // server.page]
    needed = pages_of(asked.tokens, server.page) - len(common)
    if pool.free < needed:
        return None
    own = (pool.take() for _ in range(needed))
    return replace(asked, pages=(*pool.share(common), *own))


def room_for_one(page: int, pool: Pool, each: Running) -> tuple[int, ...] | None:
    """Return the pages of a sequence with room for one token more; None if no page is free."""
    if each.tokens % page == 0:
        return (*each.pages, pool.take()) if pool.free else None
    *others, last = each.pages
    if pool.counts[last] == 1:
        return each.pages
    if not pool.free:
        return None
    own = pool.take()  # others have the page as it is: this one writes into a copy
    pool.copied.append(own)
    pool.counts[last] -= 1
    return (*others, own)


def served_in_stretches(server: Server) -> Iterator[CacheStep]:
    """Yield the cache after each step until all is answered, if each sequence has a stretch."""
    waiting, done, step = _asked(server), 0, 0
    moment = CacheStep(0, (), 0, 0)
    while waiting or moment.running:
        running = [each for each in moment.running if each.tokens < each.last]
        done += len(moment.running) - len(running)
        moment = replace(moment, running=tuple(running))
        while waiting and server.requests[waiting[0].request].arrives <= step:
            needed = server.requests[waiting[0].request].most
            room = [at for at, size in holes(server, moment).items() if size >= needed]
            if not room:
                break
            begun = replace(waiting.pop(0), pages=(room[0],))
            moment = replace(moment, running=(*moment.running, begun))
        grown = tuple(replace(each, tokens=each.tokens + 1) for each in moment.running)
        arrived = sum(server.requests[each.request].arrives <= step for each in waiting)
        moment = CacheStep(
            step, grown, arrived, done, wanted=_wanted(server, waiting, arrived)
        )  # fmt: skip
        yield moment
        step += 1
