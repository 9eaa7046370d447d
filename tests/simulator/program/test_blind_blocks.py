"""Row blocks that see nothing between others that do: O = 0 and LSE = -inf, or the sink."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from simulator.engines.interpreter import Interpreter
from simulator.engines.reference import reference_rows
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import read_inputs, resolve
from simulator.program.algorithms import tile_program
from tests.helpers.op_by_op import counted_by_ops


@pytest.mark.parametrize("sinks", [False, [1.0, -2.0]], ids=str)
@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2", "split-kv"])
def test_blind_row_blocks_anywhere_are_written(tmp_path, algorithm, sinks):
    rng, seen = np.random.default_rng(0), np.ones((5, 4), dtype=bool)
    seen[1], seen[4], seen[3, 2] = False, False, False
    path = tmp_path / "in.safetensors"
    tensors = {
        name: rng.standard_normal((2, n, 4)).astype(np.float32)
        for name, n in (("q", 18), ("k", 16), ("v", 16))
    }
    save_file({**tensors, "block_mask": seen}, path)
    w = resolve(
        parse_scenario(
            {
                "attention": {"algorithm": algorithm},
                "scores": {"sink_logits": sinks},
                "mask": {"block": 4},
                "tiling": {"rows": 4, "cols": 4},
                "input": {"source": "file", "path": str(path)},
            }
        )
    )
    inputs, program = read_inputs(w), tile_program(w)
    interpreter = Interpreter(program, inputs)
    interpreter.run()
    for head in range(2):
        o, lse = reference_rows(w, inputs, head, range(18))
        np.testing.assert_allclose(interpreter.output[head], o, atol=1e-12)
        if algorithm in ("flash2", "split-kv"):
            np.testing.assert_allclose(interpreter.state.tensor("LSE")[head], lse, atol=1e-12)
    counted_by_ops(program)
