"""Text for XML, and that of one element of a file from somebody else, the others not kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.parsers import expat

from simulator.base.limits import NOTE_BYTES, XML_DEPTH, XML_TOKEN_BYTES

NO_CHARACTER = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""What no XML file may contain, not even escaped: codes of control, halves of letters."""


class _Enough(Exception):  # noqa: N818 - it is no error
    """The rest of the file need not be read."""


def text_of(parts: Iterable[bytes], path: tuple[str, ...]) -> str | None:
    """Return the text of the first element at the end of a path, up to its first child.

    parts: the file, piece by piece; no more of it is taken than is needed.
    path: names of the element and of those around it, the outermost first: with a namespace and a
        space before each, or without, for any namespace.
    Returns: None if there is none, or if the file is broken, or deeper or longer before it than any
        of ours.
    """
    finder = _Finder(path)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = finder.start
    parser.EndElementHandler = finder.end
    parser.CharacterDataHandler = finder.take
    parser.EntityDeclHandler = finder.refuse  # entities made of entities would grow without bound
    given = 0
    try:
        for part in parts:
            parser.Parse(part, False)
            given += len(part)
            if given - parser.CurrentByteIndex > XML_TOKEN_BYTES:
                return None
    except _Enough:
        return finder.text
    except expat.ExpatError:
        pass
    return None


class _Finder:
    def __init__(self, path: tuple[str, ...]) -> None:
        self._path = path
        self._open: list[str] = []
        self._parts: list[str] | None = None
        self._length = 0
        self.text: str | None = None

    def start(self, name: str, attributes: object) -> None:
        if self._parts is not None:
            self._end()
        self._open.append(name)
        if len(self._open) > XML_DEPTH:
            raise _Enough
        ends = self._open[-len(self._path) :]
        if len(ends) == len(self._path) and all(map(_is_called, ends, self._path)):
            self._parts = []

    def end(self, name: str) -> None:
        if self._parts is not None:
            self._end()
        self._open.pop()

    def take(self, text: str) -> None:
        if self._parts is not None:
            self._parts.append(text)
            self._length += len(text)
            if self._length > NOTE_BYTES:
                raise _Enough

    def refuse(self, *_: object) -> None:
        raise _Enough

    def _end(self) -> None:
        self.text = "".join(self._parts or ())
        raise _Enough


def _is_called(name: str, wanted: str) -> bool:
    return name == wanted or (" " not in wanted and name.rpartition(" ")[2] == wanted)
