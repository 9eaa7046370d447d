"""A scenario with another mask: written into its tables, and blocks into a copy of its input.

The pairs in a file are part of the old mask: a copy has them only if the other mask has pairs, too.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.base.dtypes import F32, DType
from simulator.base.errors import SCENARIO, refuse
from simulator.base.files import open_regular, write_atomically
from simulator.problem.filling import drawn
from simulator.problem.input_files import UPSTREAM, InputFile, is_npz
from simulator.problem.intervals import Bools
from simulator.problem.latent import LATENT
from simulator.problem.linear import check_mask
from simulator.problem.mask_input import BLOCK_MASK, MASK_SHAPE
from simulator.problem.masks import MASK, BlockMask, Mask
from simulator.problem.scenario import Scenario, with_values
from simulator.problem.sentence import read_sentence
from simulator.problem.workload import Workload

_NAMES: dict[DType, str] = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def check_blocks(w: Workload, size: int) -> None:
    """Refuse a mask of blocks of `size` rows and keys for a run that cannot have one."""
    if lengths := w.scenario.batch.lengths:
        expected = "none: blocks are saved in a file, which has one sequence"
        raise refuse(SCENARIO, "batch.lengths", list(lengths), expected)
    if w.rule:
        table = np.ones((-(-w.queries // size), -(-w.seqlen_k // size)), dtype=np.bool_)
        check_mask(Mask(w.queries, w.seqlen_k, blocks=BlockMask(size, table)))
    _check_copied(w)


def _check_copied(w: Workload) -> None:
    if w.file and is_npz(w.file.path):
        raise refuse(str(w.file.path), "input.path", w.file.path.name, "a .safetensors file")


def needs_file(w: Workload, mask: Mask) -> bool:
    """Return whether a workload needs another input file for another mask."""
    return bool(mask.blocks) or mask.tensor != w.mask.tensor


def masked_scenario(w: Workload, mask: Mask, path: Path | None = None) -> Scenario:
    """Return a workload's scenario with another mask.

    path: the copy of the input that has the blocks, as `write_masked` has made it.
    """
    said: dict[str, Any] = {
        "causal": mask.causal, "window": mask.window, "sinks": mask.sinks or None,
        "align": mask.align if mask.align != "bottom-right" else None,
        "dilation": mask.dilation if mask.dilation > 1 else None,
        "global_tokens": mask.global_tokens or None,
        "documents": list(mask.documents) or None,
        "block": mask.blocks.size if mask.blocks else None,
    }  # fmt: skip
    changes: dict[str, Any] = {"mask": said}
    if needs_file(w, mask):
        if path is None:
            name = BLOCK_MASK if mask.blocks else MASK
            raise refuse("mask", f"tensor {name}", "", "a file for the input with this mask")
        stored = w.file is not None and bool(w.file.stored)
        changes["input"] = {
            "source": "layer" if stored else "file",
            "path": str(path.absolute()),
            "text": None,
            "layer": None,
            "name": None,
            "seed": None,
        }
    return with_values(w.scenario, changes)


def write_masked(w: Workload, mask: Mask, path: Path) -> None:
    """Write a copy of a workload's input with the blocks of a mask, whole or not at all.

    A copy drops the text `causal` if the mask says otherwise, and the pairs of the file if the mask
    has none.
    """
    _check_copied(w)
    dropped = (BLOCK_MASK,) if mask.tensor else (BLOCK_MASK, MASK)
    header, data = _copied(w.file, dropped) if w.file and not w.typed else _made(w)
    about = header.get("__metadata__", {})
    if about.get("causal") and w.file and w.file.said.causal != mask.causal:
        about.pop("causal")
    if MASK in dropped:
        about.pop(MASK_SHAPE, None)
    blocks = b""
    if mask.blocks:
        blocks, shape = mask.blocks.table.tobytes(), list(mask.blocks.table.shape)
        ends = [len(data), len(data) + len(blocks)]
        header[BLOCK_MASK] = {"dtype": "BOOL", "shape": shape, "data_offsets": ends}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    length = len(text).to_bytes(8, "little")
    write_atomically(path, lambda out: out.write(length + text + data + blocks))


def _copied(file: InputFile, dropped: tuple[str, ...]) -> tuple[dict[str, Any], bytes]:
    """Return header and tensors of a safetensors file, without the tensors `dropped`."""
    with open_regular(file.path) as stored:
        header = json.loads(stored.read(int.from_bytes(stored.read(8), "little")))
        data = stored.read()
    for own in [header.pop(name) for name in dropped if name in header]:
        start, stop = own["data_offsets"]
        for name, each in header.items():
            if name != "__metadata__" and each["data_offsets"][0] >= stop:
                each["data_offsets"] = [n - (stop - start) for n in each["data_offsets"]]
        data = data[:start] + data[stop:]
    return header, data


def _made(w: Workload) -> tuple[dict[str, Any], bytes]:
    """Return header and tensors of random input, before positions turn it, or of a typed text."""
    out, header = io.BytesIO(), dict[str, Any]()
    names = ("q", LATENT) if w.latent else ("q", "k", "v", UPSTREAM)
    tensors = read_sentence(w.scenario.input, w.dtype) if w.file else drawn(w)
    if w.file:
        about = {"tokens": json.dumps(w.file.said.tokens), "model": w.file.said.model}
        about |= {"layer": w.file.said.layer, "scale": str(w.file.said.scale), "causal": "true"}
        header["__metadata__"] = about
    for name, tensor in zip(names, tensors, strict=False):
        start = out.tell()
        out.write(_stored(tensor, w.dtype).tobytes())
        header[name] = {"dtype": _NAMES[w.dtype], "shape": list(tensor.shape),
                        "data_offsets": [start, out.tell()]}  # fmt: skip
    return header, out.getvalue()


def _stored(values: F32, dtype: DType) -> NDArray[Any]:
    if dtype == "bfloat16":
        return (np.ascontiguousarray(values).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(dtype)


def block_mask(seen: Bools, most: int = 128) -> BlockMask:
    """Return a matrix of pairs, (rows, keys) bool, as the largest blocks that show the same."""
    size = most
    while size > 1:
        table = seen[::size, ::size]
        again = np.kron(table, np.ones((size, size), dtype=np.bool_))
        if np.array_equal(again[: seen.shape[0], : seen.shape[1]], seen):
            return BlockMask(size, table.copy())
        size //= 2
    return BlockMask(1, seen.copy())
