"""Numbers of a ring in a lesson are those of its model, and others are refused in a line."""

import pytest

from simulator.base.errors import InputError
from simulator.problem.hardware import links
from simulator.problem.scenario import with_values
from simulator.problem.workload import read_inputs, resolve
from simulator.study.ring.numbers import ring_numbers
from simulator.study.ring.timeline import ring_timeline
from simulator.study.ring.work import ring_of, ring_work
from tests.helpers.lesson_texts import computed
from tests.helpers.refused import refused
from tests.helpers.runs import scenario

PLAIN = scenario("flash2", nq=24, heads=2, d=3, mask={"causal": True}, dtype="float16")
CHOSEN = with_values(PLAIN, {"tiling": {"devices": 3, "layout": "zigzag"}})


def test_times_and_shares_are_those_of_the_ring():
    w = resolve(CHOSEN)
    for layout, link, sending in (
        ("zigzag", "NVLink-4", "during"), ("contiguous", "PCIe-5", "after"),
    ):  # fmt: skip
        work = ring_work(ring_of(w, 3, layout))
        found = ring_timeline(work, links()[link], sending == "during")
        shares = work.flops.sum(axis=1) / work.flops.sum()
        for figure, value in (
            ("seconds", found.seconds), ("idle", found.idle), ("speed-up", found.speed_up),
            ("most", shares.max()), ("least", shares.min()),
        ):  # fmt: skip
            told = f'ring_time("{figure}", "{layout}", "{link}", "{sending}")'
            assert computed(told, CHOSEN) == pytest.approx(value, rel=1e-12)
    assert computed('ring_time("seconds")', CHOSEN) == computed(
        'ring_time("seconds", "zigzag")', CHOSEN
    )


def test_devices_bytes_and_error_are_those_of_the_scenario():
    ring = ring_of(resolve(CHOSEN), 3, "zigzag")
    assert computed("ring_devices()", CHOSEN) == 3
    assert computed("ring_devices()", PLAIN) == 4
    assert computed("ring_sent()", CHOSEN) == ring_work(ring).sent.sum(axis=1).max()
    errors = {ring_numbers(ring, read_inputs(resolve(CHOSEN)), head).error for head in range(2)}
    assert computed("ring_error()", CHOSEN) in errors


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ('ring_time("work")', "expected one of seconds, idle, speed-up, most, least"),
        ('ring_time("idle", "round")', "expected one of contiguous, zigzag, striped"),
        ('ring_time("idle", "", "string")', "expected one of NVLink-5"),
        ('ring_time("idle", "", "PCIe-5", "never")', "expected one of during, after"),
    ],
)
def test_other_names_are_refused(told, said):
    with pytest.raises(InputError, match=said):
        computed(told, CHOSEN)


def test_a_run_without_a_ring_is_refused():
    assert "Without a softmax" in refused(computed, "ring_devices()", scenario("linear", nq=8))
