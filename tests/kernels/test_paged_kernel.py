"""Pages on the CPU twin of the GPU: any order gives the same bits, and nothing else is read."""

from dataclasses import replace

import numpy as np
import pytest

from kernels.cuda.fast import FastRun
from kernels.devices.host.device import HostDevice
from simulator.problem.paging import PageTable
from simulator.problem.scenario import with_values
from simulator.problem.workload import Workload, read_inputs, resolve
from tests.kernels.helpers import SCHEDULES, faults, needs_compiler, scenario

pytestmark = needs_compiler

KEYS, PAGE = 61, 4
"""The last page has one token."""
PAGES = 16


def workload(algorithm: str = "paged") -> Workload:
    chosen = scenario(
        algorithm, nq=3, nk=KEYS, heads=4, kv_heads=2, rows=20, cols=40, d=8, dv=33,
        mask={"causal": True, "window": 30, "sinks": 2},
    )  # fmt: skip
    return resolve(with_values(chosen, {"tiling": {"page_size": PAGE}}))


def lying(w: Workload, entries: list[int]) -> Workload:
    """Return the same workload whose pages lie elsewhere."""
    other = replace(w)
    other.__dict__["pages"] = PageTable(PAGE, KEYS, np.array(entries, dtype=np.int32))
    return other


def output(w: Workload) -> bytes:
    run = FastRun(w, read_inputs(w), HostDevice())
    run.launch()
    return bytes(run.tensors.o.tobytes())


@pytest.mark.long
def test_pages_in_any_order_give_the_bits_of_keys_that_lie_together() -> None:
    together, rng = output(workload("split-kv")), np.random.default_rng(0)
    tables = [list(range(PAGES)), list(range(PAGES))[::-1], rng.permutation(PAGES).tolist()]
    tables.append(rng.permutation(5 * PAGES)[:PAGES].tolist())  # places of a larger cache
    for table in tables:
        assert output(lying(workload(), table)) == together, table


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_nothing_is_read_but_the_tokens_of_the_sequence(schedule) -> None:
    """Free places and what lies after the last token are NaN; entries of free pages lie."""
    w = workload()
    table = [*np.random.default_rng(1).permutation(PAGES + 5)[:PAGES].tolist(), -1, 2**31 - 1]
    table += [-(2**31), 7, 10**6]
    poisoned, inputs = lying(w, table), read_inputs(w)
    assert np.isnan(poisoned.pages.scattered(inputs.k)).any()
    assert faults(poisoned, inputs, (schedule,)) == []
    got = np.frombuffer(output(poisoned), dtype=np.float32)
    assert np.isfinite(got).all()
    assert output(poisoned) == output(w)


def test_pages_of_other_sequences_are_not_read() -> None:
    """They are NaN in the memory of the device, and lie between those of the sequence."""
    chosen = with_values(
        workload().scenario,
        {"attention": {"seqlen_k": None}, "batch": {"lengths": [KEYS, 30, 90], "sequence": 1}},
    )
    w = resolve(chosen)
    inputs = read_inputs(w)
    assert len(w.pages.others) == PAGES + 23
    assert faults(w, inputs, SCHEDULES[:1]) == []
    alone = replace(w)
    alone.__dict__["pages"] = PageTable(PAGE, 30, np.arange(8, dtype=np.int32))
    assert output(w) == output(alone)
