"""A mask that a Python function makes: the user's file runs in a process of its own.

The file defines ``mask(head, i, j)``: whether query row `i` of a head sees key `j`, True or False.
The numbers may be arrays, as in FlexAttention's mask functions; a function that takes single
numbers is called for each pair. It runs with the rights of the user, only because the user has
named the file, in bounded time and memory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from simulator.base.errors import InputError, Mistake, refuse, shortened, shown
from simulator.problem.intervals import Bools
from simulator.problem.masked_file import block_mask
from simulator.problem.workload import Workload
from simulator.study.sparse.patterns import MOST_PAIRS, Pattern, dense_mask

SECONDS = 20.0
"""How long a function may take for a whole run."""
MEMORY = 2**32
"""Bytes of address space that the process may take."""
NOISE = 2**20
"""Bytes that the process may print, and bytes of a file that it writes, beside its answer."""
_NO_BOOL = 3
"""The exit status of the process if the function answers with anything but True or False."""
_CHILD = """
import sys
memory, most, no_bool, path, heads, rows, keys = sys.argv[1:]
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(memory),) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(most),) * 2)
except ImportError:  # Windows has no such limits
    pass
import runpy
import numpy as np
out, sys.stdout = sys.stdout.buffer, sys.stderr
said = runpy.run_path(path)
if not callable(said.get("mask")):
    sys.exit("expected a function mask(head, i, j)")
function, rows, keys = said["mask"], int(rows), int(keys)
i, j = np.arange(rows)[:, None], np.arange(keys)[None, :]

def of_pair(head, row, key):
    answer = function(head, row, key)
    if isinstance(answer, np.ndarray | np.generic) and answer.ndim == 0:
        answer = answer.item()
    if not isinstance(answer, bool):
        words = " ".join(repr(answer)[:200].split())
        print("", f"{head} {row} {key} {words}", sep=chr(10), file=sys.stderr)
        sys.exit(int(no_bool))
    return answer

first = None
for head in heads.split(","):
    try:
        seen = np.asarray(function(int(head), i, j))
        if seen.dtype != bool or np.broadcast_shapes(seen.shape, (rows, keys)) != (rows, keys):
            raise TypeError
    except (TypeError, ValueError):
        pairs = [[of_pair(int(head), r, c) for c in range(keys)] for r in range(rows)]
        seen = np.array(pairs)
    bits = np.packbits(np.broadcast_to(seen, (rows, keys))).tobytes()
    if first is None:
        out.write(bits)
        first = bits
    elif bits != first:
        out.write(head.encode())
        break
out.flush()
"""


def function_pattern(w: Workload, path: Path, seconds: float = SECONDS) -> Pattern:
    """Return the mask that a function of (head, i, j) makes.

    w: lengths, and the heads that the function is asked about.
    Raises InputError: the file is missing or fails, takes too long, answers with anything but True
        or False, or answers differently for two heads: a run has one mask.
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
    each = -(-rows * keys // 8)
    status, out, noise = _answer(path.absolute(), w.picked, (rows, keys), each + NOISE, seconds)
    if status is None:
        raise refuse(source, "mask", "", f"an answer within {seconds:g} s")
    if len(noise) >= NOISE:
        raise refuse(source, "mask", "", f"a function that prints at most {NOISE} bytes")
    lines = noise.decode(errors="replace").strip().splitlines() or ["it ended early"]
    if status == _NO_BOOL:
        head, row, key, value = lines[-1].split(" ", 3)
        expected = "True or False, as of j <= i, not a number that is added to the score"
        raise InputError(
            source, [Mistake(f"mask({head}, {row}, {key})", shortened(value), expected)]
        )
    if status or len(out) < each:
        raise refuse(source, "mask", "", f"a function that runs: {shown(lines[-1])[:200]}")
    if other := out[each:].decode(errors="replace"):
        expected = f"the same of heads {w.picked[0]} and {other}: a run has one mask"
        raise refuse(source, "mask", "", expected)
    bits = np.frombuffer(out, dtype=np.uint8)
    seen: Bools = np.unpackbits(bits, count=rows * keys).reshape(rows, keys).astype(np.bool_)
    mask = replace(dense_mask(w), causal=False, blocks=block_mask(seen))
    return Pattern(path.name, "mask(head, i, j) of the file", mask)


def _answer(
    path: Path, heads: tuple[int, ...], sizes: tuple[int, int], most: int, seconds: float
) -> tuple[int | None, bytes, bytes]:
    """Return the exit status, None if not in time, the answer, and the printed bytes.

    Answer and print go into files of bounded length, which nobody waits for: a process that the
    function has started may hold them. All these processes end with it.
    """
    given = [MEMORY, most, _NO_BOOL, path, ",".join(map(str, heads)), *sizes]
    own = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # each thread takes address space
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as noise:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _CHILD, *map(str, given)],
            stdin=subprocess.DEVNULL, stdout=out, stderr=noise, env=own, start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(process)
        noise.seek(max(0, noise.seek(0, os.SEEK_END) - NOISE))
        out.seek(0)
        return status, out.read(most), noise.read()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and the processes that it has started."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
