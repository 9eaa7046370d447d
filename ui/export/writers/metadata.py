"""The note in an export: the scenario, the version and the command.

In every format the note is the same: a scenario file with two lines of comment before it. A note
that is saved as text opens as a scenario.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape, unescape
from os.path import normpath
from pathlib import Path
from typing import IO

from simulator.base.errors import InputError, reason, refuse, unusable
from simulator.base.files import open_regular
from simulator.base.limits import EXPORT_BYTES, NOTE_BYTES
from simulator.base.tables import parse_toml
from simulator.lesson.link import SCHEME, ViewLink
from simulator.problem.scenario import Scenario, parse_scenario, scenario_toml, with_values

NO_CHARACTER = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""Characters that no XML file may contain, not even escaped: control codes, half letters."""
_FIRST = "# Tilescope "
_IN_HTML = b'<meta name="tilescope" content="'
_AT_ONCE = 2**18  # bytes of a file that are read at a time
_XMP = (
    '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
    '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:xmp="http://ns.adobe.com/xap/1.0/">'
    "<xmp:CreatorTool>Tilescope</xmp:CreatorTool>"
    '<dc:description><rdf:Alt><rdf:li xml:lang="x-default">{}</rdf:li></rdf:Alt></dc:description>'
    "</rdf:Description></rdf:RDF></x:xmpmeta>\n"
    '<?xpacket end="r"?>'
)


@dataclass(frozen=True, slots=True)
class Note:
    """The note in an export."""

    scenario: str  # TOML; an input path in it is relative to the export's folder if possible
    version: str  # of Tilescope
    command: str  # that makes the same file
    link: str = ""  # to the view that the export shows; "" where there is none
    title: str = field(default="Tilescope", compare=False)  # title of the whole; only a PDF has it

    @property
    def text(self) -> str:
        """The whole note, as a scenario file."""
        link = f"# {self.link}\n" if self.link else ""
        return f"{_FIRST}{self.version}\n# {self.command}\n{link}{self.scenario}"

    @property
    def xmp(self) -> bytes:
        """The whole note, as an XMP packet."""
        return _XMP.format(escape(self.text, quote=False).replace("\n", "&#10;")).encode("utf-8")


def note_of(view: ViewLink, folder: Path, version: str, command: str) -> Note:
    """Return the note for an export in `folder` that begins with a view."""
    said = NO_CHARACTER.sub(_in_toml, scenario_toml(view.scenario, folder))
    link = ""
    with suppress(InputError):  # a user's own file has none
        link = view.text
    return Note(said, version, command, link)


def _in_toml(found: re.Match[str]) -> str:
    """Return a character that XML forbids as TOML writes it; half a letter cannot be written."""
    code = ord(found[0])
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04x}"


def read_note(path: Path) -> Note:
    """Return the note of an export."""
    reader = _READERS.get(path.suffix.lower())
    try:
        text = None
        if reader is not None:
            with open_regular(path) as file:
                text = reader(file)
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise unusable(path, "a readable file", error) from None
    if text is None or not text.startswith(_FIRST) or len(text) > NOTE_BYTES:
        raise refuse(str(path), "", "", "a file that Tilescope exported, its metadata kept")
    first, _, rest = text.partition("\n")
    command, _, scenario = rest.partition("\n")
    link = ""
    if scenario.startswith(f"# {SCHEME}"):
        link, _, scenario = scenario.removeprefix("# ").partition("\n")
    return Note(scenario, first.removeprefix(_FIRST), command.removeprefix("# "), link)


def read_scenario(path: Path) -> Scenario:
    """Return the scenario that an export shows."""
    note = read_note(path)
    try:
        data = parse_toml(note.scenario)
    except (ValueError, RecursionError) as error:
        raise refuse(str(path), "scenario", "", f"TOML ({reason(error)})") from None
    scenario = parse_scenario(data, str(path))
    if scenario.input.path:
        absolute = normpath((path.parent / scenario.input.path).absolute())
        return with_values(scenario, {"input": {"path": absolute}})
    return scenario


# --- readers, a format each ----------------------------------------------------------------


def _read_png(file: IO[bytes]) -> str | None:
    from ui.export.writers.png import read_note as read

    return read(file)


def _read_gif(file: IO[bytes]) -> str | None:
    """Return the note in the last comment, whose blocks begin with their lengths."""
    file.seek(max(0, file.seek(0, 2) - 2 * NOTE_BYTES))
    tail = file.read()
    at, parts = tail.rfind(_FIRST.encode()) - 1, []
    while 0 <= at < len(tail) and tail[at]:
        parts.append(tail[at + 1 : at + 1 + tail[at]])
        at += 1 + tail[at]
    return b"".join(parts).decode("utf-8", "replace") if parts else None


def _read_film(file: IO[bytes]) -> str | None:
    try:
        import av
    except ImportError:
        raise refuse(file.name, "", "", "the library PyAV, which reads films") from None
    try:
        # The format is given, because FFmpeg might take a list of other files or addresses for a
        # film.
        kind = "webm" if file.name.lower().endswith(".webm") else "mp4"
        with av.open(file, format=kind) as box:
            tags = {key.lower(): value for key, value in box.metadata.items()}
    except (av.FFmpegError, OSError):  # the library seeks to any place that a broken file names
        return None
    comment = tags.get("comment")
    return None if comment is None else str(comment)


def _read_svg(file: IO[bytes]) -> str | None:
    return _text_in(_between(_parts(file), b"<metadata", b"</metadata>"), b"<metadata")


def _read_xmp(file: IO[bytes]) -> str | None:
    packet = _between(_parts(file), b"<x:xmpmeta", b"</x:xmpmeta>")
    return _text_in(packet, b"<dc:description", b"<rdf:li")


def _read_html(file: IO[bytes]) -> str | None:
    found = _between(_parts(file), _IN_HTML, b'">')
    return None if found is None else unescape(found[len(_IN_HTML) : -2].decode("utf-8", "replace"))


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a file piece by piece, up to the largest size of our exports."""
    for _ in range(EXPORT_BYTES // _AT_ONCE):
        part = file.read(_AT_ONCE)
        if not part:
            return
        yield part


def _between(parts: Iterator[bytes], start: bytes, end: bytes) -> bytes | None:
    """Return the text from the first `start` to the next `end`, including both.

    Every byte is read a limited number of times, even if `start` is repeated often.
    """
    seen = b""
    for part in parts:
        seen += part
        at = seen.find(start)
        if at < 0:
            seen = seen[-len(start) :]
            continue
        seen = seen[at:]
        stop = seen.find(end)
        if stop >= 0:
            return seen[: stop + len(end)]
        if len(seen) > NOTE_BYTES:
            return None
    return None


def _text_in(found: bytes | None, *tags: bytes) -> str | None:
    """Return the text at the start of the last tag's element; each tag is inside the one before."""
    if found is None:
        return None
    for tag in tags:
        found = found.partition(tag)[2].partition(b">")[2]
    return unescape(found.partition(b"<")[0].decode("utf-8", "replace"))


_READERS: dict[str, Callable[[IO[bytes]], str | None]] = {
    ".png": _read_png,
    ".apng": _read_png,
    ".webp": _read_xmp,
    ".gif": _read_gif,
    ".mp4": _read_film,
    ".webm": _read_film,
    ".svg": _read_svg,
    ".pdf": _read_xmp,
    ".html": _read_html,
}
READS = tuple(_READERS)  # endings of files that a scenario can be read from
