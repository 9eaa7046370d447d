"""The walk of a row block against plain sums in float64, over any column blocks and masks."""

import threading
from dataclasses import fields

import numpy as np
import pytest

from simulator.engines.numerics import Span
from simulator.engines.row_walk import RowBlockWalk, walk_row_block

CASES: dict[str, tuple[int, int, list[Span], list[int]]] = {
    "one tile": (3, 3, [(0, 1)], [0, 1]),
    "a ragged last tile": (30, 7, [(0, 5)], [0, 5]),
    "the ragged tile alone": (30, 7, [(4, 5)], [0, 1]),
    "three pieces in a chunk": (90, 4, [(1, 3), (5, 6), (20, 23)], [0, 6]),
    "a chunk of 64 tiles": (150, 1, [(0, 150)], [0, 64, 128, 150]),
    "just a chunk": (64, 1, [(0, 64)], [0, 64]),
    "two chunks": (65, 1, [(0, 65)], [0, 64, 65]),
    "gaps over chunks": (300, 1, [(2, 50), (60, 140), (150, 290)], [0, 64, 128, 192, 256, 268]),
    "a chunk of 2048 keys": (4500, 48, [(0, 94)], [0, 42, 84, 94]),
    "three tiles would be 2049 keys": (2100, 683, [(0, 4)], [0, 2, 4]),
    "chunks of one wide tile": (6200, 2049, [(0, 4)], [0, 1, 2, 3, 4]),
    "no tile": (12, 4, [], [0]),
}
"""Keys, width of a column block, those that are visited, and the checkpoints."""
ROWS, D, DV = 5, 3, 2


def drawn(keys: int, size: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return q, k, v and a mask: row 0 sees nothing, row 1 late keys alone, row 2 all."""
    draw = np.random.default_rng(keys)
    q, k, v = (
        draw.standard_normal(shape).astype(np.float32)
        for shape in ((ROWS, D), (keys, D), (keys, DV))
    )
    seen = draw.random((ROWS, keys)) < 0.5
    seen[0], seen[1, : keys * 2 // 3], seen[2] = False, False, True
    return q, (k * np.float32(size)).astype(np.float32), v, seen


def walked(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, cols: int, spans: list[Span],
    seen: np.ndarray, threads: int = 1,
) -> RowBlockWalk:  # fmt: skip
    return walk_row_block(q, k, v, scale, cols, spans, lambda a, b: seen[:, a:b], threads)


def check(
    walk: RowBlockWalk, s: np.ndarray, v: np.ndarray, cols: int, spans: list[Span], near: float
) -> None:
    """Compare all of a walk with sums over masked scores `s`, (rows, keys) float64."""
    visited = [j for span in spans for j in range(*span)]
    keys = [np.arange(j * cols, min((j + 1) * cols, s.shape[1])) for j in visited]
    tops, sums, outputs = [np.full(ROWS, -np.inf)], [np.zeros(ROWS)], [np.zeros((ROWS, DV))]
    for n in range(len(visited)):
        so_far = np.concatenate(keys[: n + 1])
        m = s[:, so_far].max(axis=1)
        p = np.exp(s[:, so_far] - np.where(np.isneginf(m), 0.0, m)[:, None])
        tops.append(m)
        sums.append(p.sum(axis=1))
        outputs.append(p @ v[so_far])
    blocks = -(-s.shape[1] // cols)
    after = [sum(j <= block for j in visited) for block in range(blocks)]
    same = {"rtol": near, "atol": near}
    np.testing.assert_allclose(walk.m, np.array(tops)[after].T, **same)
    np.testing.assert_allclose(walk.l, np.array(sums)[after].T, **same)
    np.testing.assert_allclose(walk.checkpoints, np.array(outputs)[walk.checkpoint_at], **same)
    total = np.where(sums[-1] > 0, sums[-1], 1.0)
    np.testing.assert_allclose(walk.o, outputs[-1] / total[:, None], **same)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(walk.lse, tops[-1] + np.log(sums[-1]), **same)


@pytest.mark.parametrize("size", [0.5, 8.0, 60.0])  # of the last, exp overflows without a shift
def test_a_walk_is_the_softmax_of_its_keys_after_every_tile(size: float) -> None:
    for case, (keys, cols, spans, checkpoints) in CASES.items():
        q, k, v, seen = drawn(keys, size)
        s = np.where(seen, q.astype(np.float64) @ k.T * 0.75, -np.inf)
        walk = walked(q, k, v, 0.75, cols, spans, seen)
        assert walk.checkpoint_at.tolist() == checkpoints, case
        check(walk, s, v, cols, spans, 2e-6 * max(10.0, size))
        for field in fields(walk):
            array = getattr(walk, field.name)
            assert not array.flags.writeable
            assert field.name == "checkpoint_at" or array.dtype == np.float32


@pytest.mark.parametrize("level", [-100.0, -41.0, -39.0, 39.0, 41.0, 100.0])
def test_scores_may_all_lie_far_from_zero(level: float) -> None:
    keys, cols, spans, _ = CASES["two chunks"]
    q, k, v, _ = drawn(keys, 1.0)
    q, k = np.ones_like(q), np.zeros_like(k)
    k[:, 0], k[::3, 1] = level, 1.0
    walk = walk_row_block(q, k, v, 1.0, cols, spans, lambda a, b: None)
    check(walk, q.astype(np.float64) @ k.T, v, cols, spans, 2e-5)


def test_threads_do_not_change_a_bit() -> None:
    for case, (keys, cols, spans, _) in CASES.items():
        q, k, v, seen = drawn(keys, 4.0)
        one, *others = (walked(q, k, v, 1.0, cols, spans, seen, threads) for threads in (1, 2, 3))
        for other in others:
            for field in fields(one):
                mine, theirs = getattr(one, field.name), getattr(other, field.name)
                assert mine.tobytes() == theirs.tobytes(), f"{field.name}, {case}"


def test_what_goes_wrong_in_another_thread_is_told() -> None:
    keys, cols, spans, _ = CASES["two chunks"]
    q, k, v, _ = drawn(keys, 1.0)
    asked = threading.Event()

    def visible(start: int, stop: int) -> None:
        if threading.current_thread() is threading.main_thread():
            assert asked.wait(10)
        else:
            asked.set()
            raise InterruptedError

    with pytest.raises(InterruptedError):
        walk_row_block(q, k, v, 1.0, cols, spans, visible, threads=2)


def test_all_threads_that_are_asked_for_work() -> None:
    keys, cols, spans, _ = CASES["gaps over chunks"]
    q, k, v, _ = drawn(keys, 1.0)
    here, meeting = set(), threading.Barrier(3, timeout=10)

    def visible(start: int, stop: int) -> None:
        if threading.get_ident() not in here:
            here.add(threading.get_ident())
            meeting.wait()  # until there are three

    walk_row_block(q, k, v, 1.0, cols, spans, visible, threads=3)
    assert len(here) == 3
