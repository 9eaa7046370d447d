"""A cache that is changed by hand: no page has two texts, none is lost, and moves can be undone."""

from hypothesis import given
from hypothesis import strategies as st

from simulator.problem.paging import pages_of
from simulator.study.pages.by_hand import FIRST, MOST, PROMPTS, SLOTS, CacheMove, by_hand, may
from simulator.study.pages.pages import Request, filled, holes, paged_waste, stretched_waste

ADMIT = CacheMove("admit")


@given(
    st.sampled_from([2, 4, 8, 16]),
    st.lists(
        st.tuples(st.sampled_from(["admit", "grow", "grow", "fork", "end"]), st.integers(0, 9)),
        max_size=60,
    ),
)
def test_a_page_has_one_text_and_nothing_is_lost(page, asked) -> None:
    texts: dict[tuple[int, int], list[object]] = {(0, 0): [(0, n) for n in range(PROMPTS[0])]}
    moves, forks, admitted, ended = FIRST, 0, 1, 0
    _, now, _ = by_hand(page, moves)
    for count, (kind, which) in enumerate(asked):
        move = CacheMove(kind, 0 if kind == "admit" else which % max(len(now.running), 1))
        if not may(now, move):
            continue
        before = now
        moves = (*moves, move)
        server, now, beside = by_hand(page, moves)
        if kind == "admit":
            own = [(admitted, n) for n in range(PROMPTS[admitted % len(PROMPTS)])]
            texts[admitted, 0] = own
            admitted += 1
        elif kind == "end":
            ended += 1
        else:
            each = before.running[move.which]
            text = texts[each.request, each.sample]
            if kind == "fork":
                forks += 1
                texts[each.request, now.running[len(before.running)].sample] = list(text)
            elif any((a.request, a.sample, a.tokens) == (each.request, each.sample, each.tokens + 1)
                     for a in now.running):  # fmt: skip
                text.append(count)
            else:
                assert now.preempted  # the sequence that was to grow came last
        assert len(now.running) + now.waiting == admitted + forks - ended
        assert now.done == ended
        content: dict[int, object] = {}
        for each in now.running:
            text = texts[each.request, each.sample]
            assert each.tokens == len(text) <= MOST
            assert len(set(each.pages)) == len(each.pages) == pages_of(each.tokens, page)
            for n, place in enumerate(each.pages):
                part = text[n * page : (n + 1) * page]
                assert content.setdefault(place, part) == part
        assert {place: len(part) for place, part in content.items()} == filled(server, now)
        for waste in (paged_waste(server, now), stretched_waste(server, beside)):
            assert waste.used + waste.inside + waste.outside + waste.free == SLOTS


def test_the_first_write_to_a_shared_page_copies_it_and_the_second_does_not() -> None:
    fork, grow = CacheMove("fork", 0), CacheMove("grow", 0)
    _, shared, _ = by_hand(4, (ADMIT, fork))
    one, other = shared.running
    assert one.pages == other.pages == (0, 1, 2)
    assert not shared.taken
    _, written, _ = by_hand(4, (ADMIT, fork, grow))
    assert written.copied == written.taken == (3,)
    assert [each.pages for each in written.running] == [(0, 1, 3), (0, 1, 2)]
    _, again, _ = by_hand(4, (ADMIT, fork, grow, CacheMove("grow", 1)))
    assert not again.taken  # nobody else reads the page any more
    _, ended, _ = by_hand(4, (ADMIT, fork, grow, CacheMove("end", 0)))
    assert ended.given == (3,)  # the others are still read


def test_who_finds_no_page_waits_and_is_taken_in_when_pages_come_back() -> None:
    full = (ADMIT,) * 5  # of 16 places these prompts take 3, 2, 4, 1 and 3
    _, now, _ = by_hand(4, full)
    assert (len(now.running), now.waiting) == (5, 0)
    _, now, _ = by_hand(4, (*full, ADMIT, ADMIT))
    assert (len(now.running), now.waiting) == (6, 1)  # one more fits, the next needs four
    _, now, _ = by_hand(4, (*full, ADMIT, ADMIT, CacheMove("end", 2)))
    assert (len(now.running), now.waiting) == (6, 0)
    assert set(now.taken) == set(now.given)  # the first places that are free


def test_a_prompt_that_fills_the_last_page_is_taken_in() -> None:
    _, now, _ = by_hand(8, (ADMIT,) * 5)  # of 8 places these prompts take 2, 1, 2, 1 and 2
    assert (len(now.running), now.waiting) == (5, 0)
    _, now, _ = by_hand(8, (ADMIT,) * 6)
    assert (len(now.running), now.waiting) == (5, 1)


def test_stretches_are_as_long_as_a_sequence_may_be_and_lie_side_by_side() -> None:
    server, _, beside = by_hand(4, (ADMIT,) * 3)
    assert server.requests == tuple(Request(0, each, 32, (0,)) for each in PROMPTS[:3])
    assert [each.pages for each in beside.running] == [(0,), (32,)]
    assert holes(server, beside) == {}
    _, now, beside = by_hand(8, (ADMIT,) * 6)
    assert (len(now.running), now.waiting) == (5, 1)
    assert (len(beside.running), beside.waiting) == (2, 4)
    server, _, beside = by_hand(4, (ADMIT,))
    assert holes(server, beside) == {32: 32}


def test_no_page_left_makes_the_sequence_that_came_last_wait() -> None:
    full = (*(ADMIT,) * 6, CacheMove("grow", 3), CacheMove("grow", 4))
    _, now, _ = by_hand(4, full)
    moves = full
    while not now.preempted:
        moves = (*moves, CacheMove("grow", 0))
        _, now, _ = by_hand(4, moves)
    assert now.preempted == (5,)
    assert [each.request for each in now.running] == [0, 1, 2, 3, 4]
    assert now.waiting == 1
    assert set(now.taken) <= set(now.given)
    _, before, _ = by_hand(4, moves[:-1])
    assert len(before.running) == 6


def test_a_prompt_has_as_many_sequences_as_there_are_letters() -> None:
    fork = CacheMove("fork", 1)
    for count in (24, 25):
        server, now, beside = by_hand(16, (ADMIT, ADMIT, *(fork,) * count))
        assert may(now, fork) is (count < 25)
        assert may(now, CacheMove("fork", 0))
        assert [len(each.answers) for each in server.requests] == [1, count + 1]
        assert now.step == beside.step == count + 2
        assert (len(beside.running), beside.waiting) == (2, count)


def test_moves_about_nobody_and_beyond_the_longest_cannot_be_made() -> None:
    _, now, _ = by_hand(4, (ADMIT, CacheMove("end", 0)))
    assert not any(may(now, CacheMove(kind, 0)) for kind in ("grow", "fork", "end"))
    assert may(now, ADMIT)
    _, now, _ = by_hand(4, (ADMIT, ADMIT))
    assert [may(now, CacheMove("end", which)) for which in (-1, 0, 1, 2)] == [
        False,
        True,
        True,
        False,
    ]
    _, now, _ = by_hand(4, (ADMIT, *(CacheMove("grow", 0),) * (MOST - PROMPTS[0])))
    assert now.running[0].tokens == MOST
    assert not may(now, CacheMove("grow", 0))
    assert may(now, CacheMove("fork", 0))
