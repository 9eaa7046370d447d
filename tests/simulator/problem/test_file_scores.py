"""What an input file says of scores: a bias of each distance, soft-cap, slopes and a window."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from simulator.base.errors import InputError
from simulator.code.run_script import run_script
from simulator.problem.scenario import parse_scenario
from simulator.run.trace import Trace, simulate
from tests.helpers.process import python
from tests.helpers.refused import refused

HEADS, KV_HEADS, NQ, NK, D = 4, 2, 9, 13, 8


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"q": (HEADS, NQ, D), "k": (KV_HEADS, NK, D), "v": (KV_HEADS, NK, D),
              "bias": (HEADS, NQ + NK - 1)}  # fmt: skip
    return {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}


@pytest.fixture
def file(tmp_path: Path) -> Any:
    """Write a file and return its path."""

    def write(**texts: str) -> Path:
        path = tmp_path / "mine.safetensors"
        save_file(tensors(), path, texts)
        return path

    return write


def opened(path: Path, algorithm: str = "flash2", **tables: Any) -> Trace:
    said = {"attention": {"algorithm": algorithm, **tables.pop("attention", {})},
            "input": {"source": "file", "path": str(path), **tables.pop("input", {})},
            "tiling": {"rows": 4, "cols": 5}, **tables}  # fmt: skip
    return simulate(parse_scenario(said))


def test_what_a_file_says_of_scores_is_taken_unless_the_scenario_speaks(file: Any) -> None:
    slopes = (0.5, 0.25, 0.0, 1.0)
    path = file(causal="true", window="6", softcap="1.5", alibi=json.dumps(slopes))
    w = opened(path).workload
    assert (w.mask.window, w.softcap, w.slopes) == (6, 1.5, slopes)
    np.testing.assert_array_equal(w.biases.values, tensors()["bias"])
    picked = opened(path, input={"head": [3, 1]}).workload
    np.testing.assert_array_equal(picked.biases.values, tensors()["bias"][[3, 1]])
    own = {"mask": {"window": 0}, "scores": {"softcap": 0, "alibi": False, "bias": False}}
    w = opened(path, **own).workload
    assert (w.mask.window, w.softcap, w.slopes, w.biases) == (0, 0, (), None)


def test_linear_attention_takes_nothing_of_it(file: Any) -> None:
    path = file(window="6", softcap="1.5", alibi="[1, 1, 1, 1]")
    w = opened(path, "linear").workload
    assert not w.changes_scores
    assert not w.mask.window


def test_every_op_of_a_biased_tile_is_the_engines(file: Any) -> None:
    trace = opened(file(causal="true"))
    shot = trace.snapshot(visit=3)
    names = [op.name for op in shot.ops]
    assert "bias" in names
    cites = next(op.cites for op in shot.ops if op.name == "bias")
    assert "Raffel et al. 2020" in cites


def test_the_script_of_a_run_has_the_bias(file: Any, tmp_path: Path) -> None:
    trace = opened(file(causal="true"), input={"head": [2, 0]})
    script = tmp_path / "run.py"
    script.write_text(run_script(trace, 0, 3), encoding="utf-8")
    done = python(script)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        ({"window": "-1"}, 'window = "-1": expected a whole number from 0'),
        ({"window": "9" * 5000}, "window"),
        ({"softcap": "no"}, 'softcap = "no": expected a number above 0'),
        ({"alibi": "[1]"}, 'alibi = "[1]": expected a JSON list of 4 slopes'),
        ({"alibi": "[1, 2, -3, 4]"}, "alibi"),
        ({"query_tokens": '["a"]'}, 'query_tokens = "["a"]": expected a JSON list of 9 texts'),
    ],
)
def test_a_text_that_cannot_be_used_is_named(texts: dict[str, str], line: str, file: Any) -> None:
    assert line in refused(opened, file(**texts))


def test_a_bias_of_another_shape_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    all_of_it = tensors()
    save_file(all_of_it | {"bias": np.zeros((HEADS, NQ), np.float32)}, path)
    assert "shape of bias = (4, 9): expected (4, 21)" in refused(opened, path)
    save_file(all_of_it | {"bias": np.full((HEADS, NQ + NK - 1), np.nan, np.float32)}, path)
    assert "tensor bias, row 0, column 0" in refused(opened, path)
    del all_of_it["bias"]
    save_file(all_of_it, path)
    with pytest.raises(InputError, match=r"scores\.bias = true: expected an input file with"):
        opened(path, scores={"bias": True})
