"""The mask of a scenario: what it says, and the blocks that the input file has."""

from __future__ import annotations

from pathlib import Path

from simulator.base.errors import SCENARIO, refuse
from simulator.problem.input_files import InputFile, read_flags
from simulator.problem.masks import BlockMask, Mask
from simulator.problem.recurrence import RULES
from simulator.problem.scenario import Scenario

BLOCK_MASK = "block_mask"
"""The tensor of an input file that says which blocks are visible."""


MOST_BLOCKS_OF_MASK = 2**28
"""Most blocks that are read: each takes a byte."""


def mask_of(scenario: Scenario, file: InputFile | None, seqlen_q: int, seqlen_k: int) -> Mask:
    """Return which pairs a scenario leaves visible.

    Parameters
    ----------
    scenario : Scenario
        What its author said.
    file : InputFile or None
        Says whether it is causal and has a window if the scenario does not, and has the blocks.
    seqlen_q, seqlen_k : int
        Rows of one head, and keys.

    Raises
    ------
    InputError
        Documents that do not add up to the keys; blocks without a file that has them, or of another
        number than rows and keys need.
    """
    said = scenario.mask
    causal = bool(file and file.causal) if said.causal is None else said.causal
    if said.documents and sum(said.documents) != seqlen_k:
        expected = f"lengths that add up to seqlen_k = {seqlen_k}, not to {sum(said.documents)}"
        raise refuse(SCENARIO, "mask.documents", list(said.documents), expected)
    window = said.window
    if window is None and file and scenario.attention.algorithm not in RULES:
        window = file.said.window
    blocks = None
    if said.block:
        if file is None:
            expected = f"an input file with a tensor {BLOCK_MASK}: it says which are visible"
            raise refuse(SCENARIO, "mask.block", said.block, expected)
        blocks = read_block_mask(file.path, said.block, seqlen_q, seqlen_k)
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
    )
    if blocks and file and not mask.pairs_exist:
        raise refuse(str(file.path), f"tensor {BLOCK_MASK}", "", "at least one visible pair")
    return mask


def read_block_mask(path: Path, size: int, seqlen_q: int, seqlen_k: int) -> BlockMask:
    """Read which blocks of `size` rows and keys are visible.

    Raises
    ------
    InputError
        The file has no such tensor, or not one that fits.
    """
    shape = -(-seqlen_q // size), -(-seqlen_k // size)
    if shape[0] * shape[1] > MOST_BLOCKS_OF_MASK:
        expected = f"larger blocks: at most {MOST_BLOCKS_OF_MASK} of them"
        raise refuse(SCENARIO, "mask.block", size, expected)
    table = read_flags(path, BLOCK_MASK)
    if table.shape != shape:
        expected = f"{shape}: blocks of {size} of {seqlen_q} rows and {seqlen_k} keys"
        raise refuse(str(path), f"shape of {BLOCK_MASK}", table.shape, expected)
    return BlockMask(size, table)
