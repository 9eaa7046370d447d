"""A server's cache in pages and in stretches: nothing is lost, shared wrongly or counted twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.paging import pages_of
from simulator.study.pages.pages import (
    CacheStep,
    Request,
    Running,
    Server,
    filled,
    holes,
    paged_waste,
    served_in_pages,
    served_in_stretches,
    stretched_waste,
    usual_server,
)


@st.composite
def servers(draw: st.DrawFn) -> Server:
    page, places = draw(st.sampled_from([1, 2, 3, 4, 8])), draw(st.integers(6, 20))
    slots, requests, arrives = page * places, [], 0
    for _ in range(draw(st.integers(1, 8))):
        arrives += draw(st.integers(0, 4))
        most = draw(st.integers(3, max(3, slots // 2)))
        prompt = draw(st.integers(1, most - 1))
        answers = draw(st.lists(st.integers(1, most - prompt), min_size=1, max_size=3))
        requests.append(Request(arrives, prompt, most, tuple(answers)))
    return Server(page, slots, tuple(requests))


def text(server: Server, each: Running) -> list[tuple[int, Any]]:
    """Return the tokens of a sequence: those of its prompt are those of all samples."""
    prompt = server.requests[each.request].prompt
    own = [(each.request, (each.sample, n)) for n in range(prompt, each.tokens)]
    return [(each.request, n) for n in range(prompt)] + own


def asked_by(server: Server, step: int) -> int:
    """Return how many samples have been asked for by a step."""
    return sum(len(each.answers) for each in server.requests if each.arrives <= step)


def test_steps_are_counted_one_by_one() -> None:
    server = usual_server()
    for moments in (served_in_pages(server), served_in_stretches(server)):
        steps = [moment.step for moment in moments]
        assert steps == list(range(len(steps)))


@pytest.mark.parametrize("seed", range(4))
def test_every_third_request_of_the_usual_server_has_two_samples(seed: int) -> None:
    server = usual_server(seed=seed)
    assert [len(each.answers) for each in server.requests] == [1, 2, 1] * 4
    for each in server.requests:
        assert all(each.prompt + answer <= each.most for answer in each.answers)
        assert each.most <= server.slots


@given(servers(), st.booleans())
def test_no_two_sequences_hold_different_tokens_in_one_slot(server: Server, sharing: bool) -> None:
    answered = sum(len(request.answers) for request in server.requests)
    before: dict[tuple[int, int], Running] = {}
    for moment in served_in_pages(server, sharing=sharing):
        slots: dict[tuple[int, int], Any] = {}
        for each in moment.running:
            assert len(each.pages) == pages_of(each.tokens, server.page)
            for n, token in enumerate(text(server, each)):
                slot = each.pages[n // server.page], n % server.page
                assert slots.setdefault(slot, token) == token
            old = before.get((each.request, each.sample))
            assert old is None or each.tokens == old.tokens + 1
        before = {(each.request, each.sample): each for each in moment.running}
        assert {place for place, _ in slots} == set(moment.counts)
        assert len(moment.running) + moment.waiting + moment.done == asked_by(server, moment.step)
        assert all(0 <= place < server.places for place in moment.counts)
        tokens = filled(server, moment)
        assert sum(tokens.values()) == len(slots)
        waste = paged_waste(server, moment)
        assert waste.used == len(slots)
        assert waste.saved == moment.tokens - len(slots)
        assert waste.used + waste.inside + waste.outside + waste.free == server.slots
        assert sharing or (waste.saved == 0 and not moment.copied)
        assert set(moment.copied) <= set(moment.taken)
        assert all(each.tokens <= each.last for each in moment.running)
    assert moment.done + len(moment.running) == answered
    assert moment.running == ()


@given(servers())
def test_stretches_lie_apart_and_slots_add_up(server: Server) -> None:
    for moment in served_in_stretches(server):
        owner = [-1] * server.slots
        for n, each in enumerate(moment.running):
            most = server.requests[each.request].most
            (start,) = each.pages
            assert set(owner[start : start + most]) == {-1}
            owner[start : start + most] = [n] * most
            assert each.tokens <= most
        free = owner.count(-1)
        assert sum(holes(server, moment).values()) == free
        assert len(moment.running) + moment.waiting + moment.done == asked_by(server, moment.step)
        waste = stretched_waste(server, moment)
        assert waste.used + waste.inside + waste.outside + waste.free == server.slots
        assert waste.outside + waste.free == free
    assert moment.done == sum(len(request.answers) for request in server.requests)


def test_a_sample_copies_the_last_page_of_the_prompt_before_it_writes() -> None:
    server = Server(4, 40, (Request(0, 6, 20, (3, 5)),))
    first = next(served_in_pages(server))
    one, other = first.running
    assert one.pages[0] == other.pages[0]  # the prompt's full page is shared on
    assert one.pages[1] != other.pages[1]  # both have written a token of their own
    assert len(first.copied) == 1
    assert first.counts[one.pages[0]] == 2
    apart = next(served_in_pages(server, sharing=False))
    assert len(apart.counts) == 4
    assert not apart.copied


def test_who_came_last_gives_its_pages_back_if_none_is_free() -> None:
    server = Server(2, 12, (Request(0, 4, 10, (6,)), Request(0, 4, 10, (6,))))
    moments = list(served_in_pages(server))
    lost = next(moment for moment in moments if moment.preempted)
    assert lost.preempted == (1,)
    assert [each.request for each in lost.running] == [0]
    assert lost.waiting == 1
    assert moments[-1].done == 2


@pytest.mark.parametrize("page", [2, 4, 8, 16])
def test_the_usual_server_answers_sooner_from_pages(page: int) -> None:
    server = usual_server(page)

    def most(moments: list[CacheStep]) -> int:
        return max(len(moment.running) for moment in moments)

    paged, stretched = list(served_in_pages(server)), list(served_in_stretches(server))
    assert len(paged) < len(stretched)
    assert most(paged) > most(stretched)
    assert any(stretched_waste(server, moment).outside for moment in stretched)
    assert any(moment.copied for moment in paged)
    ends = moments_of_done(paged)
    assert ends == sorted(ends)


def moments_of_done(moments: list[CacheStep]) -> list[int]:
    return [moment.done for moment in moments]


def test_a_hole_is_too_small_if_it_is_shorter_than_what_waits_first() -> None:
    server = Server(4, 40, (Request(0, 4, 12, (8,)),) * 2)
    for wanted, outside in ((0, 0), (8, 0), (9, 8), (20, 8), (21, 28)):
        running = tuple(Running(0, 0, 4, 12, (start,)) for start in (8,))
        moment = CacheStep(3, running, 1, 0, wanted=wanted)
        assert holes(server, moment) == {0: 8, 20: 20}
        waste = stretched_waste(server, moment)
        assert (waste.outside, waste.free) == (outside, 28 - outside)
