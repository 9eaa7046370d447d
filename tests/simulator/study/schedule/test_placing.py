"""Placing against a simulation that moves all pieces from event to event."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from simulator.study.schedule.placing import placed
from simulator.timing.orders import ORDERS, Order

works = st.lists(st.integers(0, 6).map(Fraction), max_size=24)


def simulated(
    work: list[Fraction], sms: int, slots: int, order: Order
) -> dict[int, tuple[int, int, Fraction, Fraction]]:
    """Return multiprocessor, place, start and end of each piece: all left work, at every event."""
    names = [*range(len(work))]
    if order in ("model", "longest"):  # here all pieces are of one head
        names.sort(key=lambda n: -work[n])
    places = [(sm, slot) for slot in range(slots) for sm in range(sms)]
    shared = list(names)
    own = {at: names[n :: len(places)] for n, at in enumerate(places)}

    def after(at: tuple[int, int]) -> int | None:
        queue = own[at] if order == "persistent" else shared
        return queue.pop(0) if queue else None

    now = Fraction(0)
    running: dict[tuple[int, int], list] = {}
    out = {}
    for at in places:
        name = after(at)
        if name is not None:
            running[at] = [name, work[name], now]
    while running:
        with_me = {at: sum(sm == at[0] for sm, _ in running) for at in running}
        step = min(left * with_me[at] for at, (_, left, _) in running.items())
        now += step
        for at, piece in running.items():
            piece[1] -= step / with_me[at]
        at = min(at for at, (_, left, _) in running.items() if left == 0)
        name, _, began = running.pop(at)
        out[name] = (*at, began, now)
        name = after(at)
        if name is not None:
            running[at] = [name, work[name], now]
    return out


@given(works, st.integers(1, 5), st.integers(1, 3), st.sampled_from(ORDERS))
def test_pieces_are_where_a_plain_simulation_has_them(
    work: list[Fraction], sms: int, slots: int, order: Order
) -> None:
    found = placed(work, sms, slots, order)
    expected = simulated(work, sms, slots, order)
    assert {
        n: (found.sm[n], found.slot[n], found.start[n], found.end[n]) for n in range(len(work))
    } == expected
    assert found.seconds == max((end for *_, end in expected.values()), default=0)
    last = [
        max((end for sm, _, _, end in expected.values() if sm == n), default=0) for n in range(sms)
    ]
    assert found.tail == found.seconds - min(last)
    assert found.waves == len(work) / (sms * slots)


def test_a_multiprocessor_has_work_until_the_last_of_its_places_has_none():
    """Of 5 and 1 on the first the second ends at 2, the first at 6; of two 2 both end at 4."""
    found = placed([5, 2, 1, 2], 2, 2, "index")
    assert found.sm == [0, 1, 0, 1]
    assert found.end == [6, 4, 2, 4]
    assert (found.seconds, found.tail) == (6, 2)


@given(works, st.integers(1, 5), st.integers(1, 3), st.sampled_from(ORDERS))
def test_multiprocessors_are_never_idle_with_a_piece_on_them(
    work: list[Fraction], sms: int, slots: int, order: Order
) -> None:
    """So idle shares follow from the sums alone."""
    found = placed(work, sms, slots, order)
    for sm in range(sms):
        here = [n for n in range(len(work)) if found.sm[n] == sm]
        assert max((found.end[n] for n in here), default=0) == sum(work[n] for n in here)


@given(works, st.integers(1, 6))
def test_longest_first_is_within_grahams_bound(work: list[Fraction], sms: int) -> None:
    """4/3 - 1/(3m) of what any order needs: at least the mean, and the longest piece."""
    least = max([sum(work) / sms, *work], default=Fraction(0))
    found = placed(work, sms, 1, "longest").seconds
    # The bound is to the best order, which is at least `least`, and at most twice it.
    assert least <= found <= 2 * least


def test_longest_first_repairs_a_triangle() -> None:
    """The last pieces of a causal run are the longest: in the order of the grid they end late."""
    work = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    ends = {order: placed(work, 3, 1, order).seconds for order in ORDERS}
    assert ends == {"model": 7.0, "index": 9.0, "longest": 7.0, "persistent": 9.0}
    uneven = [4.0, 1.0, 1.0, 4.0, 1.0, 1.0]
    assert placed(uneven, 3, 1, "persistent").seconds == 8.0
    assert placed(uneven, 3, 1, "index").seconds == 5.0


def test_two_on_one_multiprocessor_share_it() -> None:
    found = placed([2.0, 2.0, 6.0, 2.0], 2, 2, "index")
    assert found.sm == [0, 1, 0, 1]
    assert found.slot == [0, 0, 1, 1]
    assert found.end == [4.0, 4.0, 8.0, 4.0]
    assert found.tail == 4.0
