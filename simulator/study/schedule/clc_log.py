"""Tiles that thread blocks asked for, from the lines that a kernel with CLC prints.

CLC, cluster launch control, lets a thread block of a Blackwell GPU take over tiles of blocks that
have not begun. CUTLASS does not log this. FlashAttention's kernels, which are written in CUTLASS's
Python language, print a line for each query if ``FA_LOG_LEVEL=3`` and ``FA_CLC=1``::

    [CLC] query sm=<smid> cta=<blockIdx.x> (m_blk=<m>,h=<h>,b=<b>,s=<s>) valid=<0|1>

References
----------
flash-attention, ``AI/CLC_TRACE_DEBUG.md``, "Current trace format"; `scheduler_warp` of
``flash_attn/cute/flash_fwd_sm100.py``, which prints after each query, so the first tile of a thread
block is not printed.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from simulator.base.errors import reason, refuse
from simulator.base.limits import TRACE_BYTES, TRACE_LANES, read_bounded
from simulator.study.schedule.events import Events

_BEGINS = "[CLC] query"
_FORM = f"{_BEGINS} sm=… cta=… (m_blk=…,h=…,b=…,s=…) valid=0 or 1"
_NUMBER = r"(-?\d{1,9})"
_LINE = re.compile(
    rf"sm=(\d{{1,9}})\s+cta={_NUMBER}\s+"
    rf"\(m_blk={_NUMBER},h={_NUMBER},b={_NUMBER},s={_NUMBER}\)\s+valid=([01])\s*$"
)


def read_clc_log(path: Path) -> Events:
    """Read which tiles each multiprocessor was given, in the order of the lines.

    The lines have no times: each tile takes a turn of its multiprocessor, and all turns are alike.
    Other lines of the log are passed over; so are queries after the last tile (``valid=0``).

    Raises InputError: the log cannot be read, is too large, has a query in another form, or has no
        query that was given a tile.
    """
    try:
        text = read_bounded(path, TRACE_BYTES, "a CLC log").decode("utf-8", errors="replace")
    except OSError as error:
        raise refuse(str(path), "", "", reason(error)) from None
    sms: list[int] = []
    names: list[str] = []
    queries = 0
    for n, line in enumerate(text.split("\n"), 1):
        _, begun, rest = line.partition(_BEGINS)
        if not begun:
            continue
        found = _LINE.match(rest.strip())
        if found is None:
            raise refuse(str(path), f"line {n}", "", _FORM)
        queries += 1
        sm, cta, block, head, sequence, split = (int(each) for each in found.groups()[:6])
        if found[7] == "1":
            sms.append(sm)
            names.append(f"m_blk {block}, h {head}, b {sequence}, s {split}, taken by cta {cta}")
    if not names:
        none = "" if not queries else f": {queries} asked for a tile and got none"
        raise refuse(str(path), "", "", f"a line {_FORM.replace('0 or 1', '1')}{none}")
    lanes = sorted(set(sms))
    if len(lanes) > TRACE_LANES:
        raise refuse(str(path), "multiprocessors", len(lanes), f"at most {TRACE_LANES}")
    place = {sm: n for n, sm in enumerate(lanes)}
    taken = [0] * len(lanes)
    turns = []
    for sm in sms:
        turns.append(taken[place[sm]])
        taken[place[sm]] += 1
    start, ones = np.array(turns, dtype=np.float64), np.ones(len(names))
    return Events(
        lanes=tuple(f"SM {sm}" for sm in lanes),
        lane=np.array([place[sm] for sm in sms], dtype=np.int64),
        above=np.zeros(len(names)),
        height=ones,
        start=start,
        end=start + 1,
        weight=ones,
        names=tuple(names),
        timed=False,
    )
