"""Bounds on what is taken from files that others wrote, each with its reason.

A few kilobytes can claim gigabytes, nest without end or repeat what is slow. So sizes and depths
are looked at before a file is parsed; every bound is far above what people write and far below
what a machine feels. `tests/fuzz` holds that whatever a file says is read or refused in seconds.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from simulator.base.errors import refuse

TOML_BYTES = 2**18
"""Of a scenario or a model: ours take less than 2 KiB, one that lists 4096 heads 24."""
KEY_PARTS = 16
"""Parts of a dotted key: ours have four at most, and tomllib takes the square of their number."""
TITLE_LETTERS = 500
"""Of a title: it is painted as one line, which takes the window seconds at 100 000 letters."""
MISTAKES = 100
"""Told of one file, and found the line of: the others are counted."""

LESSON_BYTES = 2**20
"""Of a lesson's file: the longest that ships has 8 KiB."""
LESSON_STEPS = 500
"""Each is a scenario, worked out as the file is read: about a millisecond."""
TEXT_LETTERS = 10_000
"""Of a step's caption, question, answer or notes: a caption that can be read has some 300."""
PLACEHOLDERS = 100
"""Numbers in one text: each may cost a search through the run."""
RUN_SCORES = 2**28
"""Of a run whose end a lesson's text asks for: it takes some seconds."""
FORMULA_LETTERS, FORMULA_STEPS = 1000, 2000
"""Of one formula, and of all formulas in one text: a step of the typesetter takes some 0.1 ms,
their number doubles with every bracket around a bracket, and texts that ship take 226 at most."""

HEADER_BYTES = 2**24
"""Of a safetensors header, and of the list of files in an .npz: Python takes some twenty times as
much to hold one."""
TOKEN_BYTES = 2**24
"""Of tokens or other text in an .npz: a million tokens take half of it."""
INFLATED_BYTES, INFLATED_TIMES = 2**26, 8
"""What Q, K and V of an .npz may inflate to: that much, or that many times the file if it is more.
Numbers of a model hardly shrink to half, but a file of zeros shrinks to a thousandth."""

NOTE_BYTES = 2**20
"""Of an export's note: a scenario, its version and its command."""
EXPORT_BYTES = 2**29
"""Of an SVG or a PDF that is searched for its note."""
CHUNKS = 2**17
"""Chunks of a PNG, GIF or WebP that are looked at: each takes a microsecond, and a film of an hour
has about as many."""
BLOCKS = 2**20
"""Blocks of pictures in a GIF that are passed over: of 255 bytes each, 267 MB of them."""
XML_DEPTH = 64
"""Elements around a note: ours have seven at most."""
XML_TOKEN_BYTES = 2**24
"""One tag or comment, which the parser holds whole: pictures inside an SVG are that long."""

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{KEY_PARTS}}}")


def read_bounded(path: Path, most: int, what: str) -> bytes:
    """Return what a file holds.

    Parameters
    ----------
    path : Path
        The file.
    most : int
        Bytes that it may have.
    what : str
        What it is, in an error.

    Raises
    ------
    OSError, ValueError
        It cannot be read.
    InputError
        It has more bytes.
    """
    with path.open("rb") as file:
        data = file.read(most + 1)  # its size may be unknown, as of a pipe
        if len(data) > most:
            size = max(os.fstat(file.fileno()).st_size, len(data))
            raise refuse(str(path), "bytes", size, f"{what} of at most {most}")
    return data


def check_toml(text: str) -> None:
    """Refuse TOML whose keys have so many parts that parsing them takes minutes.

    Raises
    ------
    ValueError
        In words, what is too deep.
    """
    if _DEEP_KEY.search(text):
        raise ValueError(f"keys of at most {KEY_PARTS} parts")
