"""The files of a run: arrays and summary, written whole or not at all."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import psutil

from simulator.base.dtypes import F32
from simulator.base.errors import refuse
from simulator.base.files import check_target, write_atomically
from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of
from simulator.program.tile_program import TileProgram

OUTPUTS = (".npz", ".json", ".csv")  # endings of files that a run can be written to
_SUMMARY = "summary.json"


def check_output(path: Path, workload: Workload, *, part: bool = False) -> None:
    """Refuse an output before anything is computed for it."""
    w = workload
    inputs = [w.file.path] if w.file else []
    if path.name == _SUMMARY:
        raise refuse("run", "-o", str(path), "another name: the summary is written beside it")
    check_target("run", path, OUTPUTS, inputs, path.parent / _SUMMARY)
    if not holds_arrays(path):
        if part:
            raise refuse("run", "-o", str(path), "a name that ends in .npz or .json, with --rows")
        return
    if part:
        return
    columns = w.value_dim + 1 + (0 if algorithm_of(w).stores_scores else 2 * w.grid.Tc)
    need, free = 4 * w.heads * w.seqlen_q * columns, psutil.virtual_memory().available
    if need > 0.9 * free:
        raise refuse(
            "run",
            "-o",
            str(path),
            f"arrays that fit in memory: these need {need / 2**30:.1f} GiB, "
            f"{free / 2**30:.1f} GiB are free",
        )


def holds_arrays(path: Path) -> bool:
    """Return whether an output is made of the arrays, not of counts alone."""
    return path.suffix != ".csv"


def write_results(
    path: Path, program: TileProgram, summary: Mapping[str, Any], arrays: Mapping[str, F32]
) -> None:
    """Write a run, and its summary as ``summary.json`` in the same folder.

    path: ``.npz`` or ``.json`` for the arrays, with the summary inside; ``.csv`` for the traffic
        after each visit.
    Raises InputError: a file cannot be written; the old file stays as it was.
    """
    text = json.dumps(summary, indent=1)
    if path.suffix == ".npz":
        write_atomically(path, lambda out: _write_npz(out, text, arrays))
    elif path.suffix == ".json":
        write_atomically(path, lambda out: _write_json(out, text, arrays))
    else:
        write_atomically(path, lambda out: _write_traffic(out, program))
    write_atomically(path.with_name(_SUMMARY), lambda out: out.write(text.encode()))


def _write_npz(out: IO[bytes], summary: str, arrays: Mapping[str, F32]) -> None:
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
        archive.writestr(_SUMMARY, summary)


def _write_json(out: IO[bytes], summary: str, arrays: Mapping[str, F32]) -> None:
    """Write nested lists, one row of queries at a time, because text takes much more memory."""
    out.write(b'{"summary": ' + summary.encode())
    for name, array in arrays.items():
        out.write(f',\n"{name}": ['.encode())
        for head, rows in enumerate(array):
            out.write(b"[" if not head else b",\n[")
            for n, row in enumerate(rows):
                out.write((",\n" if n else "").encode() + _json(row).encode())
            out.write(b"]")
        out.write(b"]")
    out.write(b"}\n")


def _json(numbers: F32 | np.float32) -> str:
    """Return numbers exactly; NaN and infinities as strings, because JSON has no such numbers."""
    values = numbers.tolist()
    if np.isfinite(numbers).all():
        return json.dumps(values)
    return json.dumps([_number(v) for v in values] if isinstance(values, list) else _number(values))


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _write_traffic(out: IO[bytes], program: TileProgram) -> None:
    """Write a line for each visit: its place, and the bytes and FLOPs requested up to its end."""
    tensors = program.tensors
    words = [f"{tensor}_{way}_bytes" for tensor in tensors for way in ("read", "write")]
    names = ["visit", "launch", "head", "i", "j", *words, "read_bytes", "write_bytes", "flops"]
    out.write((",".join(names) + "\n").encode())
    for index in range(len(program)):
        visit, count = program.visit(index), program.counters(index + 1)
        numbers = [index, visit.launch, visit.head, visit.i, visit.j]
        for tensor in tensors:
            numbers += [count.read[tensor], count.write[tensor]]
        numbers += [count.read_bytes, count.write_bytes, count.flops]
        out.write((",".join(map(str, numbers)) + "\n").encode())
