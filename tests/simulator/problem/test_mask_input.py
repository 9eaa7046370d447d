"""What a scenario and its file say of the mask: documents that fit, blocks that the file has."""

from pathlib import Path

import numpy as np
import pytest

from simulator import InputError
from simulator.problem.mask_input import read_block_mask
from simulator.problem.masks import Mask
from simulator.problem.packing import PackedMask, packed, unpacked
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import resolve
from tests.helpers.refused import refused
from tests.helpers.runs import Pairs
from tests.helpers.written_files import numbers, read, refusal, write_safetensors

TABLE = np.array([[True, False], [True, True], [False, True]])
"""Blocks of 3: SHAPES has 5 rows and 6 keys, and here there are 7 rows."""
SHAPES = {"q": (4, 7, 3)}


def written(folder: Path, kind: str, table: np.ndarray) -> Path:
    tensors = {**numbers(**SHAPES), "block_mask": table}
    if kind == "npz":
        np.savez(folder / "a.npz", **tensors)
        return folder / "a.npz"
    return write_safetensors(folder / "a.safetensors", tensors)


def test_a_file_with_blocks_that_nobody_asks_for_is_a_file_without(tmp_path: Path) -> None:
    assert not read(written(tmp_path, "npz", TABLE))[0].mask.hides


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (TABLE[:2], "shape of block_mask = (2, 2): expected (3, 2): blocks of 3 of 7 rows and 6"),
        (TABLE.astype(np.float32), "tensor block_mask = "),
        (np.zeros_like(TABLE), "tensor block_mask: expected at least one visible pair"),
        (TABLE[0], "shape of block_mask = (2,): expected"),
    ],
)
@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_blocks_that_do_not_fit(
    tmp_path: Path, kind: str, table: np.ndarray, expected: str
) -> None:
    assert expected in refusal(written(tmp_path, kind, table), mask={"block": 3})


def test_a_file_without_blocks(tmp_path: Path) -> None:
    for path in (write_safetensors(tmp_path / "a.safetensors", numbers()), tmp_path / "b.npz"):
        if path.suffix == ".npz":
            np.savez(path, **numbers())
        assert "tensor block_mask: expected a tensor of booleans" in refusal(
            path, mask={"block": 2}
        )


def test_blocks_need_a_file() -> None:
    said = {"attention": {"seqlen_q": 8, "head_dim": 4}, "mask": {"block": 2}}
    with pytest.raises(InputError, match=r"mask\.block = 2: expected an input file with a tensor"):
        resolve(parse_scenario(said))


def test_too_many_blocks_are_refused_before_they_are_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mask\.block = 1: expected larger blocks"):
        read_block_mask(tmp_path / "none.npz", 1, 2**15, 2**14)


def test_a_dilated_window_with_too_many_gaps_is_refused() -> None:
    mask = Mask(2**17, 2**17, causal=True, window=2**15, dilation=2)
    assert mask.visited_columns(16, 16).sums[-1] > 0
    with pytest.raises(InputError, match=r"mask\.dilation = 2: expected larger tiles or a smaller"):
        mask.visited_columns(1, 1)


def test_documents_add_up() -> None:
    said = {"attention": {"seqlen_q": 8, "head_dim": 4}, "mask": {"documents": [3, 4]}}
    assert "add up to seqlen_k = 8, not to 7" in refused(resolve, parse_scenario(said))


@pytest.mark.parametrize(
    "said", [{"documents": (2, 3)}, {"window": 2, "dilation": 2, "global_tokens": 1}]
)
def test_packed_and_back(said: dict[str, object]) -> None:
    mask = Pairs(4, 5, **said).mask()
    together = packed(mask, 3)
    assert isinstance(together, PackedMask)
    assert unpacked(together) == unpacked(mask) == mask
    np.testing.assert_array_equal(
        together.visible(range(12), range(5)), np.tile(mask.visible(range(4), range(5)), (3, 1))
    )


def test_linear_attention_refuses_them() -> None:
    for said in ({"documents": [3, 5]}, {"global_tokens": 2}):
        tables = {"attention": {"algorithm": "linear", "seqlen_q": 8, "head_dim": 4}, "mask": said}
        with pytest.raises(InputError, match="linear attention is causal or sees every key"):
            resolve(parse_scenario(tables))
