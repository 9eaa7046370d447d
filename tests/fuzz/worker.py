"""A process that opens many files, one after another, and says what each took.

It reads ``KIND<tab>PATH`` lines and answers each with a line of JSON. It ends itself, by a signal,
on a file that takes too much of the processor, and Python raises MemoryError on one that wants
gigabytes: the machine is not to suffer.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path

CPU_SECONDS = 20
"""After which a file is taken for endless."""
ROOM = 3 * 2**30
"""Bytes that the process may grow by."""
PAGE = os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Answer until standard input ends."""
    from tests.fuzz.opener import open_as

    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is none of the answers
    logging.disable()
    warnings.simplefilter("ignore")
    _warm_up(open_as)
    limit = _address_space() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    print("ready", file=out, flush=True)
    for line in sys.stdin:
        kind, _, name = line.rstrip("\n").partition("\t")
        print(json.dumps(_opened(open_as, kind, Path(name))), file=out, flush=True)


def _opened(open_as, kind: str, path: Path) -> dict[str, object]:  # type: ignore[no-untyped-def]
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)  # ends the process, in whatever code it is
    before, started, told = _reset_peak(), time.process_time(), ""
    threads: list[str] = []
    threading.excepthook = lambda args: threads.append(f"{args.exc_type}: {args.exc_value}")
    try:
        outcome = open_as(kind, path)
    except Exception:
        outcome, told = "raised", traceback.format_exc()
    seconds, peak = time.process_time() - started, _status("VmHWM") - before
    signal.setitimer(signal.ITIMER_PROF, 0)
    if threads:
        outcome, told = "raised", "\n".join(threads)
    return {"outcome": outcome, "seconds": seconds, "bytes": max(peak, 0), "told": told}


def _warm_up(open_as) -> None:  # type: ignore[no-untyped-def]
    """Import and cache what the first file of a kind would else pay for."""
    for kind, path in (line.split("\t") for line in sys.argv[1:]):
        open_as(kind, Path(path))


def _reset_peak() -> int:
    """Let the peak of memory begin anew; return the bytes in use."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{key}:"):
            return 1024 * int(line.split()[1])
    raise LookupError(key)


def _address_space() -> int:
    return PAGE * int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])


if __name__ == "__main__":
    main()
