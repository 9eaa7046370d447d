"""Input files made for a test, and the line that a bad one is refused with."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator import InputError
from simulator.base.dtypes import bfloat16_from_bits
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve

SHAPES = {"q": (4, 5, 3), "k": (2, 6, 3), "v": (2, 6, 2)}


def numbers(dtype: str = "float32", **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return Q, K and V: bfloat16 as bit patterns."""
    rng = np.random.default_rng(7)
    out = {}
    for name, shape in (SHAPES | shapes).items():
        values = rng.standard_normal(shape).astype(np.float32)
        if dtype == "bfloat16":
            out[name] = (values.view(np.uint32) >> 16).astype(np.uint16)
        else:
            out[name] = values.astype(dtype)
    return out


def as_float32(tensor: np.ndarray) -> np.ndarray:
    return bfloat16_from_bits(tensor) if tensor.dtype == np.uint16 else tensor.astype(np.float32)


def write_safetensors(
    path: Path, tensors: dict[str, np.ndarray], meta: dict[str, str] | None = None, f8: str = ""
) -> Path:
    """Write a file byte by byte: the library cannot write bfloat16 from numpy.

    Booleans of the name "mask" are packed, as docs/files.md has it.

    f8: what bytes are, if they are numbers: F8_E4M3 or F8_E5M2.
    """
    names = {"float32": "F32", "float16": "F16", "uint16": "BF16", "float64": "F64", "int64": "I64",
             "bool": "BOOL", "int32": "I32", "uint8": "U8"}  # fmt: skip
    if "mask" in tensors and tensors["mask"].dtype == np.bool_:
        meta = {**(meta or {}), "mask_shape": json.dumps(tensors["mask"].shape)}
        tensors = {**tensors, "mask": np.packbits(tensors["mask"], axis=-1)}
    header: dict[str, Any] = {} if meta is None else {"__metadata__": meta}
    at = 0
    for name, tensor in tensors.items():
        ends = [at, at := at + tensor.nbytes]
        kind = (tensor.dtype == np.uint8 and f8) or names[str(tensor.dtype)]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": ends}
    text = json.dumps(header).encode()
    data = b"".join(tensor.tobytes() for tensor in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def file_scenario(path: Path, **tables: dict[str, Any]) -> Any:
    """Return a scenario that reads `path`."""
    said = {"source": "file", "path": str(path)} | tables.pop("input", {})
    return parse_scenario({"input": said, **tables})


def read(path: Path, **tables: dict[str, Any]) -> tuple[Workload, Inputs]:
    """Resolve and read."""
    workload = resolve(file_scenario(path, **tables))
    return workload, read_inputs(workload)


def refusal(path: Path, **tables: dict[str, Any]) -> str:
    """Return the line that a file, or a scenario that disagrees with it, is refused with."""
    with pytest.raises(InputError) as error:
        read(path, **tables)
    text = str(error.value)
    assert text.isprintable()
    assert len(text) < 600
    return text
