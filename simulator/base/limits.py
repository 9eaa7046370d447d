"""Bounds on reading files that others wrote, each with its reason.

A file of a few kilobytes can claim gigabytes, nest without end or repeat slow parts. So sizes
and depths are checked before a file is parsed. Every bound is far above the files that people write
and far below files that would slow a machine down. `tests/fuzz` checks that every file is read or
refused in seconds.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from simulator.base.errors import InputError, refuse, unusable
from simulator.base.files import open_regular

TOML_BYTES = 2**18
"""Bytes of a scenario or a model: ours have less than 2 KiB, one that lists 4096 heads has 24."""
KEY_PARTS = 16
"""Parts of a dotted key: ours have at most four, and tomllib's time grows with their square."""
TITLE_LETTERS = 500
"""Letters of a title: one line of 100 000 letters would take seconds to paint."""
MISTAKES = 100
"""Mistakes of one file that are told and whose lines are looked up; the others are counted."""

LESSON_BYTES = 2**20
"""Bytes of a lesson's file: the longest of ours has 8 KiB."""
LESSON_STEPS = 500
"""Steps of a lesson: each is a scenario, which takes about a millisecond when the file is read."""
TEXT_LETTERS = 10_000
"""Letters of a step's caption, question, answer or notes: a readable caption has some 300."""
PLACEHOLDERS = 100
"""Numbers in one text: each may need a search through the run."""
RUN_SCORES = 2**28
"""Scores of a run whose end a lesson's text asks for: computing the run takes some seconds."""
FORMULA_LETTERS, FORMULA_STEPS = 1000, 2000
"""Letters and steps of one formula, and of all formulas in one text: a step of the typesetter takes
some 0.1 ms, the number of steps doubles with every level of brackets, and our texts take 226 at
most."""

HEADER_BYTES = 2**24
"""Bytes of a safetensors header, and of the list of files in an .npz: in Python they take some
twenty times as much memory."""
TOKEN_BYTES = 2**24
"""Bytes of tokens or another text in an .npz: a million tokens take half of them."""
INFLATED_BYTES, INFLATED_TIMES = 2**26, 8
"""Bytes to which Q, K and V of an .npz may inflate: the first number, or the second times the size
of the file if that is more. The numbers of a model shrink to hardly less than half, but a file of
zeros shrinks to a thousandth."""
PICTURE_PIXELS = 2**24
"""Pixels of a picture whose pieces are tokens: the largest for a model today has 13 million."""

SENTENCE_TOKENS = 512
"""Tokens of a typed text: twice as many as in training; the language model takes 0.1 s."""

TRACE_BYTES, TRACE_EVENTS, TRACE_LANES = 2**23, 2**18, 2**12
"""Bytes, events and lanes of a Chrome trace beside a schedule: a byte takes up to thirty, parsed.
The largest schedule that we write has 2**16 events, which take 7 MB."""

NOTE_BYTES = 2**20
"""Bytes of the note in an export: a scenario, its version and its command."""
EXPORT_BYTES = 2**29
"""Bytes of an SVG, PDF, WebP or page in which a note is searched for."""
CHUNKS = 2**17
"""Chunks of a PNG that are read: each takes a microsecond, and a film of an hour has about this
many."""

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{KEY_PARTS}}}")


def read_bounded(path: Path, most: int, what: str) -> bytes:
    """Return the content of a file.

    most: most bytes that it may have.
    Raises OSError, ValueError: the file cannot be read, or is a pipe or a device.
    Raises InputError: the file has more bytes.
    """
    with open_regular(path) as file:
        data = file.read(most + 1)  # the size may be unknown, as in /proc
        if len(data) > most:
            size = max(os.fstat(file.fileno()).st_size, len(data))
            raise refuse(str(path), "bytes", size, f"{what} of at most {most}")
    return data


def read_utf8(path: str | os.PathLike[str], most: int, what: str, form: str) -> str:
    """Return the text of a file without a byte order mark, which has no meaning.

    Raises InputError: the file cannot be read, has more than `most` bytes or is not UTF-8.
    """
    try:
        return read_bounded(Path(path), most, what).decode("utf-8-sig")
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise refuse(str(path), f"byte {error.start}", "", f"{form} in UTF-8") from None
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        raise unusable(path, "a readable file", error) from None


def check_toml(text: str) -> None:
    """Refuse TOML whose keys have so many parts that parsing them takes minutes.

    Raises ValueError: a key has too many parts.
    """
    if _DEEP_KEY.search(text):
        raise ValueError(f"keys of at most {KEY_PARTS} parts")
