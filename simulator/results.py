"""The files of a run: arrays and summary, whole or not at all."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import psutil

from simulator.dtypes import F32
from simulator.errors import refuse
from simulator.files import write_atomically
from simulator.workload import Workload


def check_output(path: Path, workload: Workload) -> None:
    """Refuse an output before anything is computed for it.

    Raises
    ------
    InputError
        It does not end in .npz, its folder is missing, or the arrays do not fit in memory.
    """
    if path.suffix != ".npz":
        raise refuse("run", "-o", str(path), "a file that ends in .npz")
    if not path.parent.is_dir():
        raise refuse("run", "-o", str(path), f"a folder {path.parent} that exists")
    w = workload
    columns = w.value_dim + 1 + (0 if w.algorithm == "naive" else 2 * w.grid.Tc)
    need, free = 4 * w.heads * w.seqlen_q * columns, psutil.virtual_memory().available
    if need > 0.9 * free:
        raise refuse(
            "run",
            "-o",
            str(path),
            f"arrays that fit in memory: these need {need / 2**30:.1f} GiB, "
            f"{free / 2**30:.1f} GiB are free",
        )


def write_results(path: Path, summary: Mapping[str, Any], arrays: Mapping[str, F32]) -> None:
    """Write the arrays as .npz, with the summary inside and as ``summary.json`` beside it.

    Raises
    ------
    InputError
        A file cannot be written; what was there is as it was.
    """
    text = json.dumps(summary, indent=1)

    def write_npz(out: IO[bytes]) -> None:
        with zipfile.ZipFile(out, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr("summary.json", text)

    write_atomically(path, write_npz)
    write_atomically(path.with_name("summary.json"), lambda out: out.write(text.encode()))
