"""A file of settings as Qt writes it, read as text alone.

`QSettings` makes objects from the file: with PySide it unpickles them, which runs any code.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from string import hexdigits

from simulator.base.errors import InputError
from simulator.base.files import write_atomically
from simulator.base.limits import read_bounded

Value = str | list[str] | bytes
_MOST_BYTES = 2**20  # bytes of a file that are read: ours has a few thousand
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PARTS = re.compile(r'\\x([0-9a-fA-F]+)|\\([0-7]+)|\\(.)|(")|(,)|([^\\",]+)', re.DOTALL)
_BYTES = re.compile(r"@ByteArray\((.*)\)", re.DOTALL)
_Sections = dict[str, dict[str, str]]


class IniFile:
    """Values by their keys; a new value is written at once, and other windows' changes are seen.

    path: the file. No error is raised: a value that cannot be read is absent, and a value that
        cannot be written is known to this object alone.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._stored: _Sections = {}
        self._seen: tuple[int, ...] | None = None
        self._own: dict[str, Value] = {}

    def get(self, key: str) -> Value | None:
        """Return a text, a list of at least two texts or bytes; None if there is nothing usable."""
        self._look()
        section, name = _place(key)
        raw = self._stored.get(section, {}).get(name)
        return self._own.get(key, None if raw is None else _read_value(raw))

    def put(self, key: str, value: Value) -> None:
        """Keep a value."""
        if self.get(key) == value:
            return
        self._own[key] = value
        for each, own in self._own.items():
            section, name = _place(each)
            self._stored.setdefault(section, {})[name] = _written_value(own)
        with suppress(InputError, OSError, ValueError):
            self._write()
            self._own.clear()
        self._seen = None

    def _look(self) -> None:
        """Read the file if it has changed."""
        try:
            found = self.path.stat()
        except (OSError, ValueError):
            return
        seen = found.st_mtime_ns, found.st_size, found.st_ino
        if seen != self._seen:
            self._seen, self._stored = seen, _read(self.path)

    def _write(self) -> None:
        path = Path(os.path.realpath(self.path))  # a link stays one
        path.parent.mkdir(parents=True, exist_ok=True)
        sections = ((name, self._stored[name]) for name in sorted(self._stored))
        text = "\n".join(
            "".join([f"[{name}]\n", *(f"{key}={raw}\n" for key, raw in sorted(values.items()))])
            for name, values in sections
        )
        write_atomically(path, lambda out: out.write(text.encode("utf-8")))


def _read(path: Path) -> _Sections:
    """Return the values as they are written, by section and key."""
    try:
        text = read_bounded(path, _MOST_BYTES, "settings").decode("utf-8-sig", errors="replace")
    except (InputError, OSError, ValueError):
        return {}
    out: _Sections = {}
    section = "General"
    for line in map(str.strip, text.split("\n")):
        key, equals, raw = line.partition("=")
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif equals and not line.startswith((";", "#")):
            out.setdefault(section, {})[key.strip()] = raw.strip()
    return out


def _place(key: str) -> tuple[str, str]:
    """Return the section of a key and its name there."""
    section, slash, name = key.partition("/")
    return (_key(section), _key(name)) if slash else ("General", _key(key))


def _key(text: str) -> str:
    return "".join(c if re.match(r"[\w.-]", c, re.ASCII) else f"%{ord(c):02X}" for c in text)


def _read_value(raw: str) -> Value | None:
    texts, quoted = [""], False
    for code, octal, letter, quote, comma, plain in _PARTS.findall(raw):
        if quote:
            quoted = not quoted
        elif comma and not quoted:
            texts.append("")
        elif code or octal:
            texts[-1] += chr(int(code, 16) & 0xFFFF if code else int(octal, 8) & 0xFFFF)
        elif plain and not quoted:
            texts[-1] += plain.lstrip() if not texts[-1] else plain
        else:
            texts[-1] += _LETTERS.get(letter, letter) or comma or plain
    if len(texts) > 1:
        return [text.removeprefix("@") for text in texts]
    (text,) = texts
    if stored := _BYTES.fullmatch(text):
        return stored[1].encode("latin-1", errors="replace")
    if text.startswith("@@"):
        return text[1:]
    return None if text.startswith("@") else text  # an object, which is never made


def _written_value(value: Value) -> str:
    if isinstance(value, bytes):
        return _written_text(f"@ByteArray({value.decode('latin-1')})", "\x7e")
    if not value and isinstance(value, list):
        return "@Invalid()"
    texts = [value] if isinstance(value, str) else value
    marked = (f"@{text}" if text.startswith("@") else text for text in texts)
    return ", ".join(_written_text(text) for text in marked)


def _written_text(text: str, last: str = "\U0010ffff") -> str:
    """Return a text with codes for letters after `last` or before space, quoted if necessary."""
    out, coded = "", False
    for letter in text:
        # A digit after a code would belong to it.
        odd = not " " <= letter <= last or "\ud800" <= letter <= "\udfff"
        coded = odd or (coded and letter in hexdigits)
        out += f"\\x{ord(letter):x}" if coded else f"\\{letter}" if letter in '\\"' else letter
    plain = text == text.strip() and not set(text) & set(",;=\"'")
    return out if plain else f'"{out}"'
