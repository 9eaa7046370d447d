"""Commands that are stopped when their time is up, with all processes that they have started."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Sequence

import psutil

from kernels.checks.outcome import ROOT


def ended(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command in the checkout until it ends.

    A tool that watches a program starts it as another process. If that process were not stopped, it
    would go on using the GPU, and the next check would time both.

    Raises OSError: the command does not start.
    Raises subprocess.TimeoutExpired: the command was stopped.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            said, wrong = process.communicate(timeout=seconds)
        except BaseException:  # its time is up, or Ctrl+C
            _stop(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, said, wrong)


def _stop(process: subprocess.Popen[str]) -> None:
    """End a process and all processes that it has started, directly or not."""
    started: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        started = psutil.Process(process.pid).children(recursive=True)
    process.kill()  # first, so that it starts no others
    for other in started:
        with contextlib.suppress(psutil.Error):
            other.kill()
