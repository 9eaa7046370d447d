"""Batch invariance: what else a GPU answers must not change the bits of an answer."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.engines.numpy_engine import numpy_engine
from simulator.problem.filling import each_sequence
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Inputs, read_inputs, resolve
from simulator.program.algorithms import tile_program
from simulator.run.trace import Trace, simulate, trace_of

OTHERS = st.lists(st.tuples(st.integers(1, 90), st.integers(1, 3)), max_size=4)
"""Keys and queries of the other sequences of a batch."""


def batch(algorithm: str, sequences: list[tuple[int, int]], **tiling: Any) -> dict[str, Any]:
    """Return a batch of sequences of keys and queries, of which the first is shown."""
    return {
        "attention": {"algorithm": algorithm, "heads": 4, "kv_heads": 2, "head_dim": 5},
        "batch": {
            "lengths": [keys for keys, _ in sequences],
            "queries": [queries for _, queries in sequences],
        },
        "mask": {"causal": True},
        "tiling": {"rows": 2, "cols": 4, **tiling},
    }


def answers(data: dict[str, Any]) -> tuple[bytes, bytes]:
    """Return O and LSE of the first sequence, bit by bit."""
    trace = simulate(each_sequence(parse_scenario(data))[0])
    return trace.output.tobytes(), trace.lse.tobytes()


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["split-kv", "paged"])
@given(st.integers(1, 90), st.integers(1, 3), st.integers(1, 8), OTHERS)
def test_splits_of_a_size_give_the_same_bits_in_any_batch(
    algorithm: str, keys: int, queries: int, blocks: int, others: list[tuple[int, int]]
) -> None:
    own = [(keys, queries)]
    alone, among = (
        answers(batch(algorithm, sequences, split_size=4 * blocks))
        for sequences in (own, own + others)
    )
    assert alone == among


def run(lengths: list[int], **tiling: Any) -> Trace:
    data = batch("split-kv", [(length, 1) for length in lengths], **tiling)
    return simulate(each_sequence(parse_scenario(data))[0])


def test_auto_gives_other_bits_in_another_batch() -> None:
    """More thread blocks of others leave fewer splits to each sequence."""
    alone, few, many = ([200] * count for count in (1, 13, 100))
    traces = [run(lengths) for lengths in (alone, few, many)]
    assert [trace.workload.splits for trace in traces] == [43, 5, 1]
    outputs = [trace.output for trace in traces]
    assert len({output.tobytes() for output in outputs}) == 3
    for output in outputs[1:]:
        np.testing.assert_allclose(output, outputs[0], atol=1e-6)
    # A longer cache of another is enough.
    other = run([20, 200])
    assert other.workload.splits > run([20]).workload.splits
    cured = [run(lengths, split_size=64) for lengths in (alone, few, many)]
    assert [trace.workload.splits for trace in cured] == [4, 4, 4]
    assert len({trace.output.tobytes() for trace in cured}) == 1


def test_each_number_of_splits_gives_bits_of_its_own() -> None:
    outputs = [run([512], splits=number).output for number in (1, 2, 4, 8, 16)]
    assert len({output.tobytes() for output in outputs}) == 5
    for output in outputs[1:]:
        np.testing.assert_allclose(output, outputs[0], atol=1e-6)


@given(st.integers(1, 60), st.integers(1, 40), st.integers(1, 5))
def test_a_full_split_stays_as_it_is_while_the_cache_grows(
    keys: int, more: int, blocks: int
) -> None:
    """The same query over the same keys and later ones: a number of splits moves every cut."""
    whole = read_inputs(resolve(parse_scenario(batch("split-kv", [(keys + more, 1)]))))

    def partials(length: int) -> tuple[np.ndarray, np.ndarray]:
        data = batch("split-kv", [(length, 1)], split_size=4 * blocks)
        w = resolve(parse_scenario(data))
        cut = Inputs(whole.q, whole.k[:, :length], whole.v[:, :length])
        trace = trace_of(w, cut, numpy_engine)
        joining = tile_program(w).joining(0, 0)
        assert joining is not None
        left = trace.snapshot(joining, 0).partials
        return left.o, left.lse

    full = keys // (4 * blocks)
    for before, after in zip(partials(keys), partials(keys + more), strict=True):
        assert before[:full].tobytes() == after[:full].tobytes()
        assert len(after) >= len(before)
