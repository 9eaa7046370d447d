"""What ops do to HBM and the chip in float64, against the textbook."""

import numpy as np
import pytest

from simulator.code.code_lines import forms
from simulator.engines.interpreter import Interpreter
from simulator.problem.workload import read_inputs
from simulator.program.algorithms import ALGORITHMS as EVERY
from simulator.program.op import Op
from simulator.program.ops import exp_shift, statistics
from simulator.program.state import State, TileMove
from simulator.program.state_ops import MapFeatures
from tests.helpers.runs import ALGORITHMS, pairs_of, program_of, scenario, textbook

MASK = {"causal": True, "window": 3, "sinks": 1}


def ran(algorithm: str) -> Interpreter:
    """Return a run over rows and row blocks that see nothing, and tiles that are cut."""
    program = program_of(
        scenario(algorithm, nq=13, nk=8, d=3, dv=5, heads=2, kv_heads=1, rows=4, cols=3, mask=MASK)
    )
    interpreter = Interpreter(program, read_inputs(program.workload))
    interpreter.run()
    return interpreter


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_a_run_leaves_in_hbm_is_the_textbooks(algorithm: str) -> None:
    done = ran(algorithm)
    w, hbm = done.program.workload, done.state.hbm
    same = {"rtol": 1e-12, "atol": 1e-12}
    for head in range(2):
        o, lse = textbook(w, read_inputs(w), head)
        np.testing.assert_allclose(hbm["O"][head], o, **same)
        s = hbm["Q"][head].astype(np.float64) @ hbm["K"][0].T * w.scale / w.temperature
        s = np.where(pairs_of(w).matrix(), s, -np.inf)
        blind = np.isneginf(lse)
        assert blind.sum() == 5
        m = s.max(axis=1)
        l = np.exp(s - np.where(blind, 0, m)[:, None]).sum(axis=1)
        if algorithm == "flash2":
            np.testing.assert_allclose(hbm["LSE"][head], lse, **same)
        elif algorithm == "flash1":
            np.testing.assert_allclose(hbm["m"][head], m, **same)
            np.testing.assert_allclose(hbm["l"][head], l, **same)
        else:
            np.testing.assert_allclose(hbm["S"][head], s, **same)
            p = np.exp(s - np.where(blind, 0, m)[:, None]) / np.where(blind, 1, l)[:, None]
            np.testing.assert_allclose(hbm["P"][head], p, **same)
    written = {"naive": {"S", "P", "O"}, "flash1": {"O", "m", "l"}, "flash2": {"O", "LSE"}}
    assert set(hbm) == {"Q", "K", "V"} | written[algorithm]


def test_hbm_is_no_number_until_it_is_written() -> None:
    q, k, v = np.ones((4, 6, 3)), np.ones((2, 5, 3)), np.ones((2, 5, 7))
    machine = State(q, k, v)
    shapes = {
        "Q": (4, 6, 3), "K": (2, 5, 3), "V": (2, 5, 7), "O": (4, 6, 7), "S": (4, 6, 5),
        "P": (4, 6, 5), "LSE": (4, 6), "m": (4, 6), "l": (4, 6),
    }  # fmt: skip
    for name, shape in shapes.items():
        assert machine.tensor(name).shape == shape
        assert np.isnan(machine.tensor(name)).all() == (name not in "QKV")
    machine.view(TileMove("S", 2, range(1, 3), range(2, 5), 0))[...] = 1
    machine.view(TileMove("m", 3, range(4, 6), None, 0))[...] = 2
    assert np.argwhere(machine.tensor("S") == 1).tolist() == [
        [2, row, col] for row in (1, 2) for col in (2, 3, 4)
    ]
    assert np.argwhere(machine.tensor("m") == 2).tolist() == [[3, 4], [3, 5]]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_only_loads_and_stores_ask_hbm_for_bytes(algorithm: str) -> None:
    program = program_of(scenario(algorithm, nq=12, nk=8, mask=MASK))
    loads, stores = set(), set()
    for index in range(len(program)):
        for op in program.ops(index):
            moved = sum(move.bytes for move in op.moves)
            assert bool(moved) == (op.name in ("load", "store", "clear"))
            assert op.read_bytes == (moved if op.name == "load" else 0)
            assert op.write_bytes == (moved if op.name != "load" else 0)
            loads |= {op.name} if op.loads else set()
            stores |= {op.name} if op.stores else set()
    assert loads == {"load"}
    assert stores == ({"store"} if algorithm == "naive" else {"store", "clear"})


def test_what_has_seen_nothing_weighs_nothing() -> None:
    high, low = np.array([-np.inf, -np.inf, 1.0, 2.0]), np.array([-np.inf, 3.0, 1.0, 4.0])
    assert exp_shift(high, low).tolist() == [0.0, 0.0, 1.0, np.exp(-2.0)]
    assert [statistics(rows) for rows in (0, 1, 7)] == [0, 4, 28]


@pytest.mark.parametrize("algorithm", EVERY)
def test_what_an_op_says_names_what_it_makes(algorithm: str) -> None:
    for op in (*forms(algorithm), *forms(algorithm, frozenset(["changes"]))):
        if type(op).says is not Op.says:
            assert len(op.says.split()) > 3, op.name
        if isinstance(op, MapFeatures):
            rows = {"phi_Q": "Q", "phi_K": "K"}
            whose = " and ".join(rows[name] for name in op.makes)
            assert op.says == f"each row of {whose} becomes its features φ"
