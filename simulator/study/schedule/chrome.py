"""Events as a file of Chrome's trace viewer and of Perfetto, and back.

References
----------
Google, "Trace Event Format": complete events (``X``) with `ts` and `dur` in microseconds, events
that begin and end (``B``, ``E``), names of processes and threads (``M``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simulator.base.errors import InputError, reason, refuse, safe_text
from simulator.base.files import write_atomically
from simulator.base.limits import (
    TITLE_LETTERS,
    TRACE_BYTES,
    TRACE_EVENTS,
    TRACE_LANES,
    read_bounded,
)
from simulator.study.schedule.events import Events

MICROSECONDS = 1e6
_DIGITS = 6
"""Digits after the point of microseconds: down to a picosecond."""
_LATEST = 1e15
"""The latest time in microseconds: some thirty years, where a float still tells quarters apart."""


def trace_text(rows: Sequence[tuple[str, Events]], about: Mapping[str, str]) -> str:
    """Return events as the text of a trace.

    rows: each is a process of the trace, and its lanes are threads.
    """
    out: list[dict[str, Any]] = []
    for process, (title, events) in enumerate(rows):
        out.append(_named("process_name", process, 0, title))
        for lane in sorted(set(events.lane.tolist())):
            out.append(_named("thread_name", process, lane, events.lanes[lane]))
        begins = np.round(events.start * MICROSECONDS, _DIGITS).tolist()
        lasts = np.round((events.end - events.start) * MICROSECONDS, _DIGITS).tolist()
        columns = zip(events.names, events.lane.tolist(), begins, lasts, strict=True)
        out += [
            {"name": name, "ph": "X", "ts": ts, "dur": dur, "pid": process, "tid": lane}
            for name, lane, ts, dur in columns
        ]
    whole = {"traceEvents": out, "displayTimeUnit": "ns", "otherData": dict(about)}
    return json.dumps(whole, separators=(",", ":"))


def _named(kind: str, process: int, lane: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": lane, "args": {"name": name}}


def write_trace(path: Path, rows: Sequence[tuple[str, Events]], about: Mapping[str, str]) -> None:
    """Write a trace file, whole or not at all.

    Raises InputError: the file cannot be written.
    """
    text = trace_text(rows, about)
    write_atomically(path, lambda out: out.write(text.encode("utf-8")))


def read_trace(path: Path) -> Events:
    """Read the events of a Chrome trace; times begin with the first of them.

    path: a JSON file: a list of events, or an object with ``traceEvents``.
    Raises InputError: the file cannot be read, is too large, or has no event with a duration.
    """
    try:
        said = json.loads(read_bounded(path, TRACE_BYTES, "a trace").decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise refuse(str(path), "", "", reason(error)) from None
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise refuse(str(path), "", "", "a Chrome trace: JSON, not too deep") from None
    found = said.get("traceEvents") if isinstance(said, dict) else said
    if not isinstance(found, list):
        raise refuse(str(path), "traceEvents", "", "a list of events")
    if len(found) > TRACE_EVENTS:
        raise refuse(str(path), "events", len(found), f"at most {TRACE_EVENTS}")
    pieces, names = _pieces([each for each in found if isinstance(each, dict)])
    if not pieces:
        expected = 'an event with a duration: ph "X" with ts and dur, or "B" and "E"'
        raise refuse(str(path), "traceEvents", "", expected)
    # Numbers are texts here: shorter ones come first, so that they stand in their order.
    keys = sorted({key for key, *_ in pieces}, key=lambda key: [(len(part), part) for part in key])
    if len(keys) > TRACE_LANES:
        raise refuse(str(path), "threads", len(keys), f"at most {TRACE_LANES}")
    pieces.sort(key=lambda piece: (piece[1], -piece[2]))
    first = pieces[0][1]
    place = {key: n for n, key in enumerate(keys)}
    start = np.array([begin - first for _, begin, _, _ in pieces]) / MICROSECONDS
    last = np.array([end - begin for _, begin, end, _ in pieces]) / MICROSECONDS
    longest = float(last.max())
    return Events(
        lanes=tuple(
            names.get(key, safe_text(f"{key[0]} {key[1]}"[:TITLE_LETTERS])) for key in keys
        ),
        lane=np.array([place[key] for key, *_ in pieces]),
        above=np.zeros(len(pieces)),
        height=np.ones(len(pieces)),
        start=start,
        end=start + last,
        weight=last / longest if longest else np.ones(len(pieces)),
        names=tuple(name for *_, name in pieces),
    )


Key = tuple[str, str]
"""A lane: process and thread, as the file calls them."""


def _pieces(
    found: Sequence[dict[str, Any]],
) -> tuple[list[tuple[Key, float, float, str]], dict[Key, str]]:
    """Return lane, begin, end and name of each event that lasts, and the names of the lanes."""
    pieces: list[tuple[Key, float, float, str]] = []
    names: dict[Key, str] = {}
    open_now: dict[Key, list[tuple[float, str]]] = {}
    for each in found:
        key = _word(each.get("pid", "")), _word(each.get("tid", ""))
        kind, begin = each.get("ph"), _time(each.get("ts"))
        name = _word(each.get("name", ""))
        if kind == "M" and each.get("name") == "thread_name" and isinstance(each.get("args"), dict):
            names[key] = _word(each["args"].get("name", ""))
        elif begin is None:
            continue
        elif kind == "X":
            last = _time(each.get("dur", 0))
            if last is not None and last >= 0:
                pieces.append((key, begin, begin + last, name))
        elif kind == "B":
            open_now.setdefault(key, []).append((begin, name))
        elif kind == "E" and open_now.get(key):
            began, name = open_now[key].pop()
            if begin >= began:
                pieces.append((key, began, begin, name))
    return pieces, names


def _word(value: object) -> str:
    """Return a name of the file as one line of a bounded length."""
    text = value if isinstance(value, str) else repr(value) if isinstance(value, int) else ""
    return safe_text(text[:TITLE_LETTERS])


def _time(value: object) -> float | None:
    """Return a time in microseconds; None if the value is no time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _LATEST:
        return None
    return float(value) if math.isfinite(value) else None
