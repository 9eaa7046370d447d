"""A cache in pages that is changed by hand: one move after the other, from an empty cache.

The state follows from the moves alone, so undoing one means leaving it out. A move does what
the server of `pages` does: if a sequence needs a page and none is free, the sequence that came last
gives its pages back and waits; a waiting sequence is taken in as soon as there is room.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal, get_args

from simulator.problem.paging import pages_of
from simulator.study.pages.pages import CacheStep, Pool, Request, Running, Server, room_for_one

Kind = Literal["admit", "grow", "fork", "end"]
"""A new sequence; a token more; another sequence with the same pages; pages given back."""
KINDS: tuple[Kind, ...] = get_args(Kind)
SLOTS = 64
"""Slots of the cache: few, so that it is soon full. All page sizes divide the number."""
MOST = 32
"""Tokens that a sequence may have, for which a stretch would be reserved."""
PROMPTS = (9, 6, 14, 4)
"""Tokens of the prompts of new sequences, in turn."""
SAMPLES = 26
"""Most sequences of one prompt: each is named by a letter."""


@dataclass(frozen=True, slots=True)
class CacheMove:
    """A move, and the number of the running sequence; a new one has no number."""

    kind: Kind  # the kind of move
    which: int = 0  # place of the sequence in `CacheStep.running`


FIRST = (CacheMove("admit"),)
"""With these moves the cache is shown at first."""


def may(now: CacheStep, move: CacheMove) -> bool:
    """Return whether a move can be made: a sequence is there, and has not all that it may have."""
    if move.kind == "admit":
        return True
    if not 0 <= move.which < len(now.running):
        return False
    each = now.running[move.which]
    if move.kind == "grow":
        return each.tokens < MOST
    return move.kind == "end" or samples_of(now)[each.request] < SAMPLES


def samples_of(now: CacheStep) -> Counter[int]:
    """Return how many letters each request has used."""
    out: Counter[int] = Counter()
    for each in now.running:
        out[each.request] = max(out[each.request], each.sample + 1)
    return out


def by_hand(page: int, moves: tuple[CacheMove, ...]) -> tuple[Server, CacheStep, CacheStep]:
    """Return the cache after some moves.

    Parameters
    ----------
    page : int
        Tokens of a page; it divides `SLOTS`.
    moves : tuple of CacheMove
        The moves; each can be made when it comes (`may`).

    Returns
    -------
    server : Server
        The cache, with a request for each sequence that was admitted.
    in_pages : CacheStep
        The cache after the last move, with the pages that this move has taken and given.
    in_stretches : CacheStep
        The same sequences one after the other in stretches of `MOST` slots, as far as these fit.
    """
    pool = Pool(SLOTS // page)
    running: list[Running] = []
    waiting: list[Running] = []
    samples: list[int] = []
    preempted: list[int] = []
    done = 0
    for move in moves:
        pool.taken, pool.given, pool.copied, preempted = [], [], [], []
        if move.kind == "admit":
            waiting.append(Running(len(samples), 0, PROMPTS[len(samples) % len(PROMPTS)], MOST, ()))
            samples.append(1)
        elif move.kind == "fork":
            each = running[move.which]
            sample, samples[each.request] = samples[each.request], samples[each.request] + 1
            running.append(replace(each, sample=sample, pages=pool.share(each.pages)))
        elif move.kind == "end":
            pool.give(running.pop(move.which).pages)
            done += 1
        else:
            lost = _grow(page, pool, running, running[move.which])
            preempted = [each.request for each in lost]
            waiting[:0] = reversed(lost)
        if not preempted:  # or a sequence that just gave pages back would take them again
            _take_in(page, pool, running, waiting)
    server = Server(
        page, SLOTS,
        tuple(
            Request(0, PROMPTS[n % len(PROMPTS)], MOST, (0,) * count)
            for n, count in enumerate(samples)
        ),
    )  # fmt: skip
    fit = SLOTS // MOST
    moment = CacheStep(
        len(moves), tuple(running), len(waiting), done, tuple(pool.taken), tuple(pool.given),
        tuple(pool.copied), tuple(preempted),
    )  # fmt: skip
    stretches = tuple(replace(each, pages=(n * MOST,)) for n, each in enumerate(running[:fit]))
    beside = CacheStep(len(moves), stretches, max(len(running) - fit, 0) + len(waiting), done)
    return server, moment, beside


def _grow(page: int, pool: Pool, running: list[Running], each: Running) -> list[Running]:
    """Give a sequence a token more; return the sequences that lost their pages, the last first."""
    lost: list[Running] = []
    while (pages := room_for_one(page, pool, each)) is None:
        last = running.pop()
        pool.give(last.pages)
        lost.append(replace(last, pages=()))
        if last is each:
            return lost
    running[running.index(each)] = replace(each, tokens=each.tokens + 1, pages=pages)
    return lost


def _take_in(page: int, pool: Pool, running: list[Running], waiting: list[Running]) -> None:
    """Give pages to waiting sequences, in their order, as long as there are enough."""
    while waiting and pages_of(waiting[0].tokens, page) <= pool.free:
        first = waiting.pop(0)
        pages = tuple(pool.take() for _ in range(pages_of(first.tokens, page)))
        running.append(replace(first, pages=pages))
