"""A mask that a Python function makes: the user's file runs in a process of its own.

The file defines ``mask(head, i, j)``: whether query row `i` of a head sees key `j`. The numbers may
be arrays, as in FlexAttention's mask functions; a function that takes single numbers is called for
each pair. It runs with the rights of the user, only because the user has named the file.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from simulator.base.errors import refuse, shown
from simulator.problem.intervals import Bools
from simulator.problem.masked_file import block_mask
from simulator.problem.workload import Workload
from simulator.study.sparse.patterns import MOST_PAIRS, Pattern, dense_mask

SECONDS = 20.0
"""How long a function may take for a whole run."""
_CHILD = """
import runpy, sys
import numpy as np
path, heads, rows, keys = sys.argv[1], *map(int, sys.argv[2:])
out, sys.stdout = sys.stdout.buffer, sys.stderr
said = runpy.run_path(path)
if not callable(said.get("mask")):
    sys.exit("expected a function mask(head, i, j)")
function = said["mask"]
i, j = np.arange(rows)[:, None], np.arange(keys)[None, :]
for head in map(int, sys.stdin.read().split()):
    try:
        seen = np.asarray(function(head, i, j))
        if seen.dtype != bool or np.broadcast_shapes(seen.shape, (rows, keys)) != (rows, keys):
            raise TypeError
    except (TypeError, ValueError):
        seen = [[bool(function(head, int(r), int(c))) for c in range(keys)] for r in range(rows)]
    whole = np.broadcast_to(np.asarray(seen, dtype=bool), (rows, keys))
    out.write(np.packbits(whole).tobytes())
out.flush()
"""


def function_pattern(w: Workload, path: Path, seconds: float = SECONDS) -> Pattern:
    """Return the mask that a function of (head, i, j) makes.

    Parameters
    ----------
    w : Workload
        Lengths, and the heads that it is asked about.
    path : Path
        The user's file.
    seconds : float
        How long it may take.

    Raises
    ------
    InputError
        The file is missing or fails, takes too long, or says one thing of one head and another of
        the next: a run has one mask.
    """
    source = str(path)
    if getattr(sys, "frozen", False):
        raise refuse(source, "", "", "a checkout: it runs Python")
    if not path.is_file():
        raise refuse(source, "", "", "a file with a function mask(head, i, j)")
    rows, keys = w.queries, w.seqlen_k
    if rows * keys > MOST_PAIRS:
        expected = f"at most {MOST_PAIRS} pairs, to ask about each"
        raise refuse(source, "pairs", rows * keys, expected)
    sizes = [str(n) for n in (len(w.picked), rows, keys)]
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _CHILD, str(path.absolute()), *sizes],
            input=" ".join(map(str, w.picked)).encode(), capture_output=True, check=False,
            timeout=seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise refuse(source, "mask", "", f"an answer within {seconds:g} s") from None
    each = -(-rows * keys // 8)
    if done.returncode or len(done.stdout) != each * len(w.picked):
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it ended early"]
        raise refuse(source, "mask", "", f"a function that runs: {shown(lines[-1])[:200]}")
    bits = np.frombuffer(done.stdout, dtype=np.uint8).reshape(len(w.picked), each)
    for head, own in zip(w.picked, bits, strict=True):
        if not np.array_equal(own, bits[0]):
            expected = f"the same of heads {w.picked[0]} and {head}: a run has one mask"
            raise refuse(source, "mask", "", expected)
    seen: Bools = np.unpackbits(bits[0], count=rows * keys).reshape(rows, keys).astype(np.bool_)
    mask = replace(dense_mask(w), causal=False, blocks=block_mask(seen))
    return Pattern(path.name, "mask(head, i, j) of the file", mask)
