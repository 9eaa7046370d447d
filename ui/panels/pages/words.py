"""The words on a cache in pages, beside stretches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_lowercase
from typing import Literal

from simulator.study.pages.by_hand import MOST
from simulator.study.pages.pages import CacheStep, Running, Server, Waste
from simulator.study.pages.state import PagesState
from ui.look.units import plural

Numbers = Literal["beside", "below", "alone", "none"]
"""Where the number of a place stands in its box: beside the sequence, below it, alone, nowhere."""
_SAID = (
    {"tokens": "tokens", "inside": "reserved but empty",
     "outside": "in gaps too small for the next", "free": "free"},
    {"tokens": "tokens", "inside": "empty", "outside": "in gaps", "free": "free"},
)  # fmt: skip
"""The parts of a bar, longest first."""


def title(state: PagesState) -> str:
    """Return the picture's title."""
    sequences = plural(len(state.now.running), "sequence")
    if state.of_run:
        return f"The cache of this run: {sequences}"
    if state.by_hand:
        pages = plural(state.server.places, "page")
        return f"By hand: {sequences}, {len(state.now.counts)} of {pages} taken"
    slots, last = state.server.slots, state.steps - 1
    return f"A server's cache of {slots} tokens, step {state.step} of {last}"


def sentences(state: PagesState) -> Iterator[str]:
    """Yield what has happened, and how the two ways compare."""
    if state.by_hand:
        yield _last_move(state)
        waste, counts = state.wastes[0], state.now.counts.values()
        yield (
            f"{plural(sum(count > 1 for count in counts), 'page')} read by several sequences, "
            f"which saves {plural(waste.saved, 'slot')}; {plural(waste.inside, 'slot')} reserved "
            "but empty. Click a sequence to choose it."
        )
    elif state.of_run:
        pages, stretches = state.wastes
        longest = max(each.tokens for each in state.now.running)
        yield (
            f"Contiguous, each sequence has room for {longest} slots. In pages "
            f"{plural(pages.inside, 'slot')} of {pages.used + pages.inside} "
            f"{'is' if pages.inside == 1 else 'are'} reserved but empty; "
            f"contiguous {stretches.inside} of {stretches.used + stretches.inside}."
        )
    else:
        said = _changes(state.now)
        if state.step >= len(state.in_pages):
            yield f"In pages all was answered after {len(state.in_pages)} steps."
        else:
            yield f"This step: {', '.join(said) or 'no page was taken or given'}."
        one, other = (
            max(len(moment.running) for moment in moments)
            for moments in (state.in_pages, state.in_stretches)
        )
        yield (
            f"In pages up to {one} sequences run at once and all is answered after "
            f"{len(state.in_pages)} steps; contiguous up to {other}, after "
            f"{len(state.in_stretches)}."
        )


def waits(state: PagesState) -> tuple[str, ...]:
    """Return who has no room yet, and who is answered, longest first."""
    if state.of_run:
        return ()
    now = state.now
    return (f"{plural(now.waiting, 'sequence')} waiting, {now.done} answered",
            f"{now.waiting} waiting, {now.done} done", f"{now.waiting} waiting")  # fmt: skip


def stretches(state: PagesState) -> tuple[str, ...]:
    """Return the words on the stretches, longest first."""
    if state.of_run:
        return ("the same sequences contiguous, each as long as the longest", "contiguous")
    if state.by_hand:
        count = len(state.beside.running)
        fit = f"{count} fit{'s' * (count == 1)}, {state.beside.waiting} would wait"
        return (f"the same sequences contiguous, {MOST} slots each: {fit}",
                f"contiguous: {fit}", "contiguous")  # fmt: skip
    running = (
        f"{plural(len(state.beside.running), 'sequence')} running, {state.beside.waiting} waiting"
    )
    return (f"the same requests contiguous, reserved for the longest answer: {running}",
            f"contiguous: {running}", "contiguous")  # fmt: skip


def sequence_name(server: Server, each: Running) -> str:
    """Return the number of a request, with a letter for its sample if it has several."""
    several = len(server.requests[each.request].answers) > 1
    return f"{each.request}{ascii_lowercase[each.sample] if several else ''}"


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
    """Return in words the effect of the last move, and a server's answer if no page is free."""
    now, kind = state.now, state.moves[-1].kind
    if now.preempted:
        begins = "No page was free, so the sequence that came last gives its own back"
    elif kind == "admit" and now.waiting:
        begins = "There are too few free pages, so the new sequence waits"
    else:
        begins = _DONE[kind]
    said = _changes(now)
    return f"{begins}: {', '.join(said)}." if said else f"{begins}. No page was taken or given."


def places_words(server: Server, numbers: Numbers) -> tuple[str, ...]:
    """Return the heading of the places, and the meaning of their numbers, longest first."""
    places = f"{plural(server.places, 'place')} of {server.page} tokens"
    if numbers in ("none", "alone"):
        return (places,)
    one, other = ("left", "right") if numbers == "beside" else ("above", "below")
    return (
        f"{places}, with their sequence ({one}) and number ({other})",
        f"{places}: sequence, number",
        places,
    )


def place_texts(state: PagesState, readers: Sequence[Running], place: int) -> tuple[str, ...]:
    """Return who reads a place, longest first."""
    count = len(readers)
    name = sequence_name(state.server, readers[0]) if count == 1 else str(readers[0].request)
    if place in state.now.copied:
        return f"{name} copy", name, ""
    return (f"{name} ×{count}", f"×{count}", "") if count > 1 else (name, "")


def table_words(server: Server, each: Running) -> tuple[str, ...]:
    """Return the block table of a sequence, and shorter forms where it is too long."""
    begins = f"{sequence_name(server, each)}: {each.tokens}"
    pages = f"{begins}, {plural(len(each.pages), 'page')}"
    return f"{begins}, {' '.join(map(str, each.pages))}", pages, begins


def parts(waste: Waste) -> dict[str, int]:
    """Return the slots of each part of a bar."""
    return {"tokens": waste.used, "inside": waste.inside, "outside": waste.outside,
            "free": waste.free}  # fmt: skip


def bar_words(waste: Waste, name: str) -> tuple[str, ...]:
    """Return where the slots go, longest first."""
    shared = [f"{waste.saved} shared"] if waste.saved else []
    slots = [(part, n) for part, n in parts(waste).items() if n]
    sizes = [[f"{n} {words[part]}" for part, n in slots] + shared for words in _SAID]
    few = [f"{n} {_SAID[1][part]}" for part, n in slots if part in ("inside", "outside")]
    return tuple(f"{name}: {', '.join(each)}" for each in (*sizes, few or sizes[1]))
