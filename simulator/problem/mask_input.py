"""The mask of a scenario: its own conditions, and the blocks and pairs of the input file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from simulator.base.errors import SCENARIO, refuse
from simulator.problem.facts import RULES
from simulator.problem.input_files import (
    FLAGS,
    InputFile,
    is_npz,
    read_kind,
    safetensors,
)
from simulator.problem.intervals import Bools
from simulator.problem.masks import MASK, BlockMask, Mask, PairMask
from simulator.problem.scenario import Scenario

BLOCK_MASK = "block_mask"  # the tensor of an input file that says which blocks are visible

MASK_SHAPE = "mask_shape"
"""The text of a safetensors file with the shape of its mask before bits were packed."""
MOST_BLOCKS_OF_MASK = 2**28
"""Most blocks, or pairs of all heads that run, that are read: each takes a byte."""
_SHAPE = re.compile(r"\s*\[\s*\d{1,9}(\s*,\s*\d{1,9}){1,2}\s*\]\s*", re.ASCII)


def mask_of(
    scenario: Scenario, file: InputFile | None, shapes: Mapping[str, int], picked: tuple[int, ...]
) -> Mask:
    """Return which pairs a scenario leaves visible.

    file: gives `causal` and `window` if the scenario does not, and has the blocks and the pairs.
    shapes: query heads of the input, rows of one head, and keys, by the keys of a scenario.
    """
    said, seqlen_q, seqlen_k = scenario.mask, shapes["seqlen_q"], shapes["seqlen_k"]
    causal = bool(file and file.said.causal) if said.causal is None else said.causal
    if said.documents and sum(said.documents) != seqlen_k:
        expected = f"lengths that add up to seqlen_k = {seqlen_k}, not to {sum(said.documents)}"
        raise refuse(SCENARIO, "mask.documents", list(said.documents), expected)
    window = said.window
    if window is None and file and scenario.attention.algorithm not in RULES:
        window = file.said.window
    blocks = None
    if said.block:
        if file is None or file.computed:
            expected = f"an input file with a tensor {BLOCK_MASK}: it says which are visible"
            raise refuse(SCENARIO, "mask.block", said.block, expected)
        blocks = read_block_mask(file.path, said.block, seqlen_q, seqlen_k)
    whole = shapes["heads"], seqlen_q, seqlen_k
    tensor = read_pair_mask(file.path, whole, picked) if file and not file.computed else None
    mask = Mask(
        seqlen_q,
        seqlen_k,
        causal,
        window or 0,
        said.sinks,
        said.dilation,
        said.global_tokens,
        said.documents,
        blocks,
        tensor,
        said.align if seqlen_q != seqlen_k else "bottom-right",  # the same: masks can be compared
    )
    if file and (blocks or tensor) and not mask.pairs_exist:
        name = MASK if tensor else BLOCK_MASK
        raise refuse(str(file.path), f"tensor {name}", "", "at least one visible pair")
    return mask


def read_block_mask(path: Path, size: int, seqlen_q: int, seqlen_k: int) -> BlockMask:
    """Read which blocks of `size` rows and keys are visible."""
    shape = -(-seqlen_q // size), -(-seqlen_k // size)
    if shape[0] * shape[1] > MOST_BLOCKS_OF_MASK:
        expected = f"larger blocks: at most {MOST_BLOCKS_OF_MASK} of them"
        raise refuse(SCENARIO, "mask.block", size, expected)
    table = read_kind(path, BLOCK_MASK, FLAGS)
    if table is None:
        expected = "a tensor of booleans of this name"
        raise refuse(str(path), f"tensor {BLOCK_MASK}", "", expected)
    if table.shape != shape:
        expected = f"{shape}: blocks of {size} of {seqlen_q} rows and {seqlen_k} keys"
        raise refuse(str(path), f"shape of {BLOCK_MASK}", table.shape, expected)
    return BlockMask(size, table)


def read_pair_mask(
    path: Path, whole: tuple[int, int, int], picked: tuple[int, ...]
) -> PairMask | None:
    """Read which pairs the tensor `mask` of a file shows; None if the file has none.

    path: the file. An .npz has booleans; a safetensors file has their bits, packed along the keys
        from the highest bit of a byte on, and their shape as a text.
    whole: query heads of the input, rows of one head, and keys.
    """
    read = _stored_pairs if is_npz(path) else _packed_pairs
    table = read(path, whole, picked)
    return None if table is None else PairMask(table)


def _stored_pairs(path: Path, whole: tuple[int, int, int], picked: tuple[int, ...]) -> Bools | None:
    table = read_kind(path, MASK, FLAGS)
    if table is None:
        return None
    _check_pairs(path, f"shape of {MASK}", table.shape, whole, picked)
    return table[None] if table.ndim == 2 else table[list(picked)]


def _packed_pairs(path: Path, whole: tuple[int, int, int], picked: tuple[int, ...]) -> Bools | None:
    with safetensors(path) as file:
        if MASK not in file.keys():  # noqa: SIM118 - the file is no mapping
            return None
        bits, text = file.get_slice(MASK), (file.metadata() or {}).get(MASK_SHAPE)
        if (dtype := bits.get_dtype()) != "U8":
            expected = f"U8, bits packed along the keys, and the text {MASK_SHAPE}"
            raise refuse(str(path), f"tensor {MASK}", dtype, expected)
        if text is None or not _SHAPE.fullmatch(text):
            expected = "a list of 2 or 3 numbers, the shape of the mask before its bits were packed"
            raise refuse(str(path), f"text {MASK_SHAPE}", (text or "")[:40], expected)
        shape = tuple(map(int, re.findall(r"\d+", text)))
        _check_pairs(path, MASK_SHAPE, shape, whole, picked)
        packed = *shape[:-1], -(-shape[-1] // 8)
        if (stored := tuple(bits.get_shape())) != packed:
            expected = f"{packed}: the bits of 8 keys in a byte"
            raise refuse(str(path), f"shape of {MASK}", stored, expected)
        parts = [bits[:]] if len(shape) == 2 else [bits[head] for head in picked]
    table = [np.unpackbits(part, axis=-1, count=shape[-1]).view(np.bool_) for part in parts]
    return np.stack(table)


def _check_pairs(
    path: Path, name: str, shape: tuple[int, ...], whole: tuple[int, int, int],
    picked: tuple[int, ...],
) -> None:  # fmt: skip
    if shape not in (whole, whole[1:]):
        expected = f"{whole[1:]} or {whole}: rows and keys, or those of each query head"
        raise refuse(str(path), name, shape, expected)
    pairs = math.prod(shape[-2:]) * (len(picked) if len(shape) == 3 else 1)
    if pairs > MOST_BLOCKS_OF_MASK:
        expected = f"at most {MOST_BLOCKS_OF_MASK} pairs, those of all heads that run together"
        raise refuse(str(path), f"size of {MASK}", pairs, expected)
