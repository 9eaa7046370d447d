"""Drawings of Qt's as lists of fragments: fragments of several drawings are stored once."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from html import escape
from xml.etree import ElementTree

from PySide6.QtCore import QBuffer, QByteArray, QSize
from PySide6.QtGui import QPainter

from ui.export.stepping import PictureLayer
from ui.export.writers.metadata import NO_CHARACTER
from ui.export.writers.vector import new_svg
from ui.look.theme import CODE_FAMILY

Element = ElementTree.Element
Edits = list[int | list[int]]
"""A list of fragments as a change of another list: ``[first, count]`` copies a part of that list, a
number is a fragment of its own."""

_NAMESPACE = re.compile(r' xmlns(:xlink)?="[^"]*"')
_USE = re.compile(r"url\(#([^)]*)\)")
_GROUP = re.compile(r"<g\b|</g>")
_USUAL = {
    "vector-effect": "none", "fill-rule": "evenodd", "fill-opacity": "1", "stroke-opacity": "1",
    "stroke-linecap": "square", "stroke-linejoin": "bevel", "transform": "matrix(1,0,0,1,0,0)",
    "font-weight": "400", "font-style": "normal", "stroke": "none", "fill": "none",
    "preserveAspectRatio": "none",
}  # fmt: skip
"""Attributes of a drawing's outermost element, which inner elements need not repeat."""
_KEPT = {"image": ("preserveAspectRatio",), "mask": ("fill",), "rect": ("fill", "stroke")}
"""Attributes that elements repeat all the same, by element."""


_SHORT = 160
"""Letters up to which an element is one piece with its colours, which seldom change."""
_RUN, _TRIED = 3, 8
"""Fewest numbers of a list that are worth a copy, and most places that are tried."""
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}(?![\de])")


class Fragments:
    """The fragments of some drawings.

    parts: pieces of SVG, by the numbers in drawings, in the order in which they were seen.
    shared: definitions that pieces refer to, by their names.
    """

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.shared: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        """The pieces of a group as Qt writes it, with the names of the definitions that it uses."""
        self._kept: tuple[Hashable, list[int]] | None = None
        """The last layer with a key, and its pieces."""

    def drawing(self, layers: Iterable[PictureLayer], size: QSize) -> list[int]:
        """Return a drawing: the numbers of its pieces, one after another."""
        out: list[int] = []
        for layer in layers:
            if layer.key is None:
                out += self._drawn(layer.paint, size)
                continue
            if self._kept is None or self._kept[0] != layer.key:
                self._kept = layer.key, self._drawn(layer.paint, size)
            out += self._kept[1]
        return out

    def _drawn(self, paint: Callable[[QPainter], None], size: QSize) -> list[int]:
        data = QByteArray()
        buffer = QBuffer(data)
        generator = new_svg(buffer, size)
        painter = QPainter(generator)
        try:
            paint(painter)
        finally:
            painter.end()
        text = bytes(data.data()).decode("utf-8", "replace")
        head, _, body = text.partition("</defs>")  # always there, and never twice
        reader = _FragmentReader(self, _parsed(f"<svg>{head.partition('<defs>')[2]}</svg>"))
        out: list[int] = []
        for group in _groups(body):
            names = tuple(reader.renamed(name) for name in _USE.findall(group))
            key = group, names
            if key not in self._groups:
                self._groups[key] = reader.pieces(_parsed(group))
            out += self._groups[key]
        return out

    def number(self, piece: str) -> int:
        """Return the number of a piece."""
        known = self._numbers.setdefault(piece, len(self.parts))
        if known == len(self.parts):
            self.parts.append(piece)
        return known

    def name(self, content: str) -> str:
        """Return the name of a definition; `content`: the definition without a name."""
        if content not in self._names:
            name = f"d{len(self._names)}"
            self._names[content] = name
            self.shared[name] = content.replace(">", f' id="{name}">', 1)
        return self._names[content]


class _FragmentReader:
    """Reads one drawing."""

    def __init__(self, fragments: Fragments, root: Element) -> None:
        self._fragments = fragments
        self._defined = {e.attrib["id"]: e for e in root.iter() if "id" in e.attrib}
        self._names: dict[str, str] = {}

    def pieces(self, element: Element) -> list[int]:
        """Return the pieces of an element."""
        out: list[int] = []
        self.walk(element, out)
        return out

    def renamed(self, old: str) -> str:
        """Return the name in the page of a definition of the drawing."""
        if old not in self._names and old in self._defined:
            written = self._written(self._defined[old], named=False)
            self._names[old] = self._fragments.name(written)
        return self._names.get(old, old)

    def walk(self, element: Element, out: list[int]) -> None:
        """Add the pieces of an element."""
        if element.tag != "g":
            out.append(self._fragments.number(self._written(element)))
            return
        if not len(element):
            return
        said = self._said(element)
        if all(child.tag == "text" for child in element):  # each has these attributes itself
            said = {key: said[key] for key in ("transform", "clip-path") if key in said}
        said = {key: value for key, value in said.items() if not key.startswith("font-")}
        inner: list[int] = []
        if all(child.tag != "g" for child in element):
            body = "".join(map(self._written, element))
            around = (f"<g{_attributes(said)}>", "</g>") if said else ("", "")
            pieces = [*around[:1], body, *around[1:]]
            if len(body) < _SHORT:
                pieces = ["".join(pieces)]
            out += [self._fragments.number(piece) for piece in pieces if piece]
            return
        for child in element:
            self.walk(child, inner)
        if inner and said:
            inner.insert(0, self._fragments.number(f"<g{_attributes(said)}>"))
            inner.append(self._fragments.number("</g>"))
        out += inner

    def _written(self, element: Element, *, named: bool = True) -> str:
        tag, said = element.tag, self._said(element)
        if not named:
            said.pop("id", None)
        body = escape(element.text or "", quote=False) if tag == "text" else ""
        body += "".join(map(self._written, element))
        return f"<{tag}{_attributes(said)}>{body}</{tag}>"

    def _said(self, element: Element) -> dict[str, str]:
        """Return the attributes of an element that are not as usual."""
        kept = _KEPT.get(element.tag, ())
        said = {
            key: _USE.sub(self._renamed, value)
            for key, value in element.attrib.items()
            if not key.startswith("{") and (key in kept or _USUAL.get(key) != value)
        }
        if family := said.pop("font-family", ""):
            said |= {"class": "code"} if family == CODE_FAMILY else {}
        for key in ("d", "points"):
            if key in said and said.get("vector-effect") != "non-scaling-stroke":
                said[key] = _LONG_NUMBER.sub(_shortened, said[key])
        return said

    def _renamed(self, found: re.Match[str]) -> str:
        return f"url(#{self.renamed(found[1])})"


def _parsed(text: str) -> Element:
    """Return an element as Qt writes it."""
    text = NO_CHARACTER.sub("\ufffd", _NAMESPACE.sub("", text))
    return ElementTree.fromstring(text.replace("xlink:", ""))


def _groups(body: str) -> Iterator[str]:
    """Yield the groups in the one group of a drawing, as they are written."""
    depth, start = 0, 0
    for tag in _GROUP.finditer(body):
        if tag[0] == "<g":
            depth += 1
            start = tag.start() if depth == 2 else start
        else:
            if depth == 2:
                yield body[start : tag.end()]
            depth -= 1


def _shortened(found: re.Match[str]) -> str:
    """Return a number to a hundredth of a pixel."""
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _attributes(said: dict[str, str]) -> str:
    return "".join(f' {key}="{escape(" ".join(value.split()))}"' for key, value in said.items())


def edits(before: list[int], after: list[int]) -> Edits:
    """Return a list as a change of another; the time grows with the lengths of both alone."""
    shorter = min(len(before), len(after))
    first = _alike(before, 0, after, 0)
    rest = shorter - first
    last = next((n for n in range(rest) if before[-1 - n] != after[-1 - n]), rest)
    stop, end = len(before) - last, len(after) - last
    places: dict[tuple[int, ...], list[int]] = {}
    for n in range(first, stop - _RUN + 1):
        found = places.setdefault(tuple(before[n : n + _RUN]), [])
        if len(found) < _TRIED:
            found.append(n)
    out: Edits = [[0, first]] if first else []
    at = follows = first  # follows: the next place in `before` if one number has replaced another
    while at < end:
        tried = follows, *places.get(tuple(after[at : at + _RUN]), ())
        count, start = max((min(_alike(before, n, after, at), end - at), n) for n in tried)
        if count < _RUN:
            out.append(after[at])
            count, start = 1, follows
        else:
            out.append([start, count])
        at, follows = at + count, start + count
    return [*out, [stop, last]] if last else out


def _alike(before: list[int], n: int, after: list[int], m: int) -> int:
    """Return how many numbers two lists have in common, from a place in each list on."""
    begin, size = n, 256
    while size:
        while before[n : n + size] == after[m : m + size] and n + size <= len(before):
            n, m = n + size, m + size
        size //= 4
    return n - begin
