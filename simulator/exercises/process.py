"""A student's function on the ops of a run: called in a process with limits, then compared."""

from __future__ import annotations

import io
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from simulator.exercises import child
from simulator.exercises.ops import Array, Call, OpTask

SECONDS = 20.0  # seconds after which the process is stopped, whatever it does
SOURCE = 2**16  # bytes of a student's text
ANSWER = 2**26  # bytes of all that a process answers
_LOOP = "stopped: it did not end within {seconds} s; is there a loop without an end?"


def judge(task: OpTask, source: str, calls: Sequence[Call]) -> str:
    """Return the first mistake of a student's function, op by op; "" if all ops are right."""
    if len(source.encode(errors="replace")) > SOURCE:
        return f"the function has more than {SOURCE} bytes"
    answers, words = _answers(task, source, calls)
    for call, found in zip(calls, answers, strict=False):
        if wrong := difference(task, call, found):
            return f"{call.place}: {wrong}"
    return words


def _answers(task: OpTask, source: str, calls: Sequence[Call]) -> tuple[list[Array], str]:
    """Return the results of the function, and why some are missing; "" if none is."""
    arrays = {
        f"{n}.{name}": each for n, call in enumerate(calls) for name, each in call.given.items()
    }
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, count=np.array(len(calls)), **arrays)
    given = b"".join(
        struct.pack("<Q", len(block)) + block
        for block in (
            source.encode(errors="replace"),
            ",".join([task.function, *task.takes]).encode(),
            packed.getvalue(),
        )
    )
    status, out, words = _run(given)
    answers: list[Array] = []
    stream = io.BytesIO(out)
    while head := stream.read(9):
        if len(head) < 9:
            break
        kind, (length,) = head[:1], struct.unpack("<Q", head[1:])
        block = stream.read(length)
        if kind == b"E":
            return answers, block.decode(errors="replace")
        with suppress(ValueError, EOFError, OSError):
            answers.append(np.load(io.BytesIO(block), allow_pickle=False))
    if len(answers) < len(calls) and not words:
        words = _ended(status)
    return answers, words


def _ended(status: int) -> str:
    """Return words on a function whose process has ended too early."""
    if status in (-getattr(signal, name, 1) for name in ("SIGXCPU", "SIGKILL")):
        return _LOOP.format(seconds=child.SECONDS)
    return "stopped: its process ended before it had answered"


def command() -> list[str]:
    """Return the command that starts the child; the packaged program is its own Python."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "exercises", "--child"]
    return [sys.executable, "-I", str(Path(child.__file__))]


def _run(given: bytes) -> tuple[int, bytes, str]:
    """Run the child; return its status, its output, and why it was stopped."""
    own = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=own
    )
    words: list[str] = []
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, done, words), daemon=True)
    if sys.platform != "linux":  # on Linux the system itself refuses the memory
        watcher.start()
    try:
        out, _ = process.communicate(given, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        words.append(_LOOP.format(seconds=f"{SECONDS:g}"))
    finally:
        done.set()
        if process.poll() is None:  # Ctrl+C
            process.kill()
            process.wait()
    return process.returncode, out[:ANSWER], words[0] if words else ""


def _watch(pid: int, done: threading.Event, words: list[str]) -> None:
    """Stop a process that takes too much memory."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        start = None
        while not done.wait(0.05):
            taken = process.memory_info().rss
            start = taken if start is None else start
            if taken > start + child.MEMORY + 2**28:
                process.kill()
                words.append(f"stopped: it wants more than {child.MEMORY >> 20} MiB of memory")
                return


def difference(task: OpTask, call: Call, found: Array) -> str:
    """Return how a result differs from the op's result; "" if it does not."""
    name = task.gives[0]
    expected = call.expected[name]
    shown = "l" if name == "l" else name
    if found.shape != expected.shape:
        return f"{shown} has the shape {found.shape}, expected {expected.shape}"
    if _same(found, expected):
        return ""
    with np.errstate(all="ignore"):
        for says, wrong in task.mistakes:
            theirs = np.broadcast_to(wrong(call.given), expected.shape)
            if _same(found, theirs):
                return says
    off = np.abs(np.where(found == expected, 0.0, found - expected))
    off = np.where(np.isnan(off), np.inf, off)
    at = tuple(int(n) for n in np.unravel_index(int(np.argmax(off)), off.shape))
    place = ", ".join(map(str, at))
    return f"{shown}[{place}] is {found[at]:.6g}, the engine has {expected[at]:.6g}"


def _same(found: Array, expected: Array) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-9, atol=1e-9, equal_nan=False))
