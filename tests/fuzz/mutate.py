"""Changes to valid files: of bytes, of lines, of what is inside a format.

Each takes the bytes of a file, a `random.Random` and other files of its kind, and returns bytes.
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from random import Random

MOST_BYTES = 2**20
"""Of a file that comes out: what is dangerous in a large file is so in one of a megabyte."""

Mutation = Callable[[bytes, Random, Sequence[bytes]], bytes]

_NUMBERS = (
    "0", "-1", "1", "2", "3.5", "1e308", "-1e-320", "nan", "inf", "-inf", "4096", "16777216",
    "9223372036854775807", "99999999999999999999", "0x" + "f" * 4000, "1" * 5000, "1_0",
    "true", "1979-05-27T07:32:00Z",
)  # fmt: skip
_TEXTS = (
    "", "a\x1b[2J\x07\u202eb", "é" * 3000, "\x00", "𝄞", "../" * 40, "/dev/null", "a\nb", "%s{0}",
    "$x$", "naive", "file", "capture", "NaN", "last", "[*]", "<b>&amp;",
)  # fmt: skip
_USUAL = (
    "1", "2", "3", "8", "16", "0.5", "true", "false", '"naive"', '"flash1"', '"flash2"',
    '"float16"', '"bfloat16"', '"paper"', '"fa3"', '"all"', "[0, 1]", '"random"', '"capture"',
    '"last"', '"A100-SXM"', '"memory"', '"Llama-3-8B"', "[0, 0]", '"robot-ball-layer2"',
)  # fmt: skip
_INTS = (0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)


def mutated(data: bytes, ending: str, rng: Random, others: Sequence[bytes]) -> bytes:
    """Return a file that has been changed one to four times; `others` are of the same ending."""
    inner = _OF.get(ending, ())
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3))):
        of = inner if inner and rng.random() < 0.7 else _PLAIN
        data = rng.choice(of)(data, rng, others)[:MOST_BYTES]
    return data


# --- bytes ------------------------------------------------------------------------------------


def _flip(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    out = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _cut(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _drop(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    start, stop = _part(data, rng)
    return data[:start] + data[stop:]


def _splice(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others)
    start, stop = _part(other, rng)
    at = rng.randrange(len(data) + 1)
    return data[:at] + other[start:stop] + data[at if rng.random() < 0.5 else at + stop - start :]


def _repeat(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    start, stop = _part(data, rng)
    part = data[start:stop] or b"["
    times = min(rng.choice((2, 10, 1000, 100_000)), MOST_BYTES // len(part))
    return data[:stop] + part * times + data[stop:]


def _number(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Put an extreme number over some bytes, as lengths and counts are stored."""
    form = rng.choice(("<B", "<H", ">H", "<I", ">I", "<Q", ">Q"))
    size = struct.calcsize(form)
    at = rng.randrange(max(len(data) - size, 0) + 1)
    value = rng.choice(_INTS) & (256**size - 1)
    return data[:at] + struct.pack(form, value) + data[at + size :]


def _noise(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((1, 3, 30))) + data[at:]


def _part(data: bytes, rng: Random) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice((1, 4, 16, 64, 400, 4000)))


_PLAIN: tuple[Mutation, ...] = (_flip, _cut, _drop, _splice, _repeat, _number, _noise)


# --- TOML and lessons -------------------------------------------------------------------------


def _text(change: Callable[[str, Random], str]) -> Mutation:
    def apply(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
        text = change(data.decode("utf-8", "replace"), rng)
        return text[:MOST_BYTES].encode("utf-8", "replace")

    return apply


def _toml_value(rng: Random, depth: int = 0) -> str:
    if rng.random() < 0.5:
        return rng.choice(_USUAL)
    kind = rng.randrange(7 if depth < 4 else 4)
    if kind < 2:
        return rng.choice(_NUMBERS)
    if kind < 4:
        return _quoted(rng.choice(_TEXTS), rng)
    inner = [_toml_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind < 6:
        return f"[{', '.join(inner)}]"
    return "{ " + ", ".join(f"k{n} = {v}" for n, v in enumerate(inner)) + " }"


def _quoted(text: str, rng: Random) -> str:
    form = rng.randrange(4)
    if form == 0:
        return "'''" + text + "'''"
    return json.dumps(text, ensure_ascii=form == 1)


def _other_value(text: str, rng: Random) -> str:
    """Change a few values: one of TOML's own words stays one."""
    lines = text.split("\n")
    able = [n for n, line in enumerate(lines) if " = " in line]
    for n in rng.sample(able, min(len(able), rng.choice((1, 1, 3)))):
        lines[n] = f"{lines[n].partition(' = ')[0]} = {_toml_value(rng)}"
    return "\n".join(lines)


def _near_value(text: str, rng: Random) -> str:
    """Change whole numbers a little, which mostly gives a file that is good."""

    def near(found: re.Match[str]) -> str:
        return (
            str(max(0, int(found[0]) + rng.choice((-2, -1, 1, 2, 7))))
            if rng.random() < 0.3
            else found[0]
        )

    return re.sub(r"\b\d{1,4}\b", near, text)


def _deep_value(text: str, rng: Random) -> str:
    deep = rng.choice((5, 50, 500, 50_000))
    value = rng.choice(("[" * deep + "]" * deep, "{a=" * deep + "1" + "}" * deep, "[" * deep))
    return _line_in(text, f"a = {value}", rng)


def _deep_key(text: str, rng: Random) -> str:
    parts = ".".join(rng.choices(("a", "mask", '"x.y"', "0"), k=rng.choice((2, 8, 40, 3000))))
    return _line_in(text, rng.choice((f"{parts} = 1", f"[{parts}]", f"[[{parts}]]")), rng)


def _line_in(text: str, line: str, rng: Random) -> str:
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines) + 1), line)
    return "\n".join(lines)


def _shuffled_lines(text: str, rng: Random) -> str:
    lines = text.split("\n")
    for _ in range(rng.choice((1, 2, 5))):
        n, m = rng.randrange(len(lines)), rng.randrange(len(lines))
        act = rng.randrange(3)
        if act == 0:
            lines[n], lines[m] = lines[m], lines[n]
        elif act == 1:
            lines.insert(n, lines[m])
        elif len(lines) > 1:
            lines.pop(n)
    return "\n".join(lines)


def _many_lines(text: str, rng: Random) -> str:
    """Add as many lines as there may be, each of them new."""
    count = rng.choice((50, 1000, 30_000))
    form = rng.choice(
        ("k{} = 1", "[t{}]", "[[a]]\nk = {}", "# {}", "## {}", "k{} = [", "{{{{ {} }}}}")
    )
    return _line_in(text, "\n".join(form.format(n) for n in range(count)), rng)


_TOML = tuple(
    map(
        _text,
        (
            _other_value,
            _other_value,
            _near_value,
            _near_value,
            _deep_value,
            _deep_key,
            _shuffled_lines,
            _many_lines,
        ),
    )
)


def _expression(rng: Random, depth: int = 0) -> str:
    from simulator.lesson.expressions import FUNCTIONS
    from simulator.lesson.numbers import QUANTITIES

    kind = rng.randrange(6 if depth < 5 else 2)
    if kind == 0:
        return rng.choice(
            (*_NUMBERS[:9], "1000000", "64", "0.5", "'flash2'", "'S'", "'Llama-3-8B'")
        )
    if kind == 1:
        return rng.choice(list(QUANTITIES))
    inner = [_expression(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind < 4:
        return f"{rng.choice(list(FUNCTIONS))}({', '.join(inner)})"
    two = [*inner, "1", "-1"][:2]
    return f"({two[0]} {rng.choice(('+', '-', '*', '/', '**', '**'))} {two[1]})"


def _placeholder(text: str, rng: Random) -> str:
    from simulator.lesson.expressions import FORMATS

    form = rng.choice(("", "", f" | {rng.choice(FORMATS)}", " | number 9", " | bytes 3"))
    added = rng.choice(("{{ %s%s }}", "{{ %s%s }}", "{{%s%s", "$x^{%s}$%s")) % (
        _expression(rng),
        form,
    )
    return _word_in(text, added, rng)


def _formula(text: str, rng: Random) -> str:
    deep = rng.choice((1, 3, 30, 150))
    nest = rng.choice(
        (("\\frac{", "}{2}"), ("{", "}"), ("\\sqrt{", "}"), ("x^{", "}"), ("\\left(", "\\right)"),
         ("\\begin{matrix}", "\\end{matrix}"), ("\\text{", "}"), ("\\unknown{", "}"), ("_", ""),
         ("\\hat", ""), ("\\left", "")),
    )  # fmt: skip
    shut = nest[1] * rng.choice((deep, deep, deep // 2))
    return _word_in(text, f"${nest[0] * deep}x{shut}$", rng)


def _markdown(text: str, rng: Random) -> str:
    sign = rng.choice(
        ("*", "**", "_", "`", "$", "[", "](", "> ", "- ", "  - ", "1. ", "\\", "<", "![",
         "*a **b ", "- \n", "{{", "}}")
    )  # fmt: skip
    return _word_in(text, sign * rng.choice((3, 40, 2000)), rng)


def _word_in(text: str, word: str, rng: Random) -> str:
    """Put a word into the text of a step, where there is one."""
    spaces = [found.start() for found in re.finditer(r"(?<=[a-z.]) (?=[a-z])", text)] or [0]
    at = rng.choice(spaces)
    return f"{text[:at]} {word}{text[at:]}"


_LESSON = (*_TOML, *map(_text, (_placeholder, _placeholder, _placeholder, _formula, _markdown)))


# --- tensors ----------------------------------------------------------------------------------


def _json_change(value: object, rng: Random) -> object:
    """Return JSON with one thing in it changed."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        return {**value, key: _json_change(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        n = rng.randrange(len(value))
        return [*value[:n], _json_change(value[n], rng), *value[n + 1 :]]
    deep: object = 1
    for _ in range(rng.choice((3, 60))):
        deep = [deep]
    return rng.choice(
        (0, 1, -1, 2**31, 2**40, 2**63, 1.5, None, True, "", "F64", "x" * 5000, [], {},
         [0] * 3000, "\ud800", deep, json.dumps(deep), "[1, 2, 3, 4, 5, 6]")
    )  # fmt: skip


def _header(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Change the header of a safetensors file; what follows stays."""
    length = int.from_bytes(data[:8], "little")
    try:
        said = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError):
        return data
    text = json.dumps(_json_change(said, rng)).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def _members(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Pack an .npz again with one of its arrays changed."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return data
    if not files:
        return data
    name = rng.choice(list(files))
    act = rng.randrange(8)
    if act > 5:  # other numbers under the same header
        half = len(files[name]) // 2
        files[name] = files[name][:half] + _flip(files[name][half:], rng, ())
    elif act == 0:
        files[name] = _npy_claim(files[name], rng)
    elif act == 1:
        files[rng.choice(("q.npy", "tokens.npy", "x" * 60_000, "../q.npy", "q"))] = files[name]
    elif act == 2:
        files[name] += b"\0" * rng.choice((1, 2**16, 2**20, 2**24))
    elif act == 3:
        del files[name]
    else:
        files[name] = rng.choice(_PLAIN)(files[name], rng, [files[name]])
    out = io.BytesIO()
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED,
                         zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))  # fmt: skip
    with zipfile.ZipFile(out, "w", method) as archive:
        for each, content in files.items():
            entry = zipfile.ZipInfo(each)  # of no time: a file comes from its numbers alone
            archive.writestr(entry, content, method)
    return out.getvalue()


def _npy_claim(content: bytes, rng: Random) -> bytes:
    """Let an array's header claim another shape or type, often with as many zeros to hold it."""
    shape = rng.choice(
        ("(1, 16777216, 1)", "(2, 6, 3)", "(1048576,)", "(16777216,)", "()", "(0,)", "(-1,)",
         "(4294967296, 4294967296)", "(1,) * 9", "(1, 65536, 64)")
    )  # fmt: skip
    kind = rng.choice(("<f4", "<f2", "<u2", "|V2", "<U1", "<U500", "|O", ">f4", "<f8", "|b1"))
    text = f"{{'descr': {kind!r}, 'fortran_order': {rng.random() < 0.1}, 'shape': {shape}, }}\n"
    head = b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode()
    return head + rng.choice((content[-64:], b"\0" * rng.choice((2**20, 2**24))))


# --- exports ----------------------------------------------------------------------------------


def _chunks(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Change, repeat, reorder or forge chunks of a PNG."""
    found, at = [], 8
    while at + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        found.append((kind, data[at + 8 : at + 8 + length]))
        at += 12 + length
    act = rng.randrange(5)
    if not found or act == 0:
        found.append((rng.choice((b"iTXt", b"zTXt", b"IEND")), rng.randbytes(rng.randrange(40))))
    n = rng.randrange(len(found))
    kind, body = found[n]
    if act == 1:
        found = found[:n] + [found[n]] * min(10_000, 2**19 // (12 + len(body))) + found[n:]
    elif act == 2:
        found.insert(rng.randrange(len(found)), found.pop(n))
    elif act == 3:
        start = b"Tilescope" + b"\0" * rng.randrange(6)
        found.insert(1, (b"iTXt", start + rng.choice((b"", b"# Tilescope 1\n", body[:200]))))
    elif act == 4:
        found[n] = kind, rng.choice(_PLAIN)(body, rng, [body])
    parts = [
        struct.pack(">I4s", len(b), k) + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in found
    ]
    return data[:8] + b"".join(parts)


def _xml(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Nest, repeat or forge tags of an SVG, or of the XMP packet in another file."""
    deep = rng.choice((10, 1000, 50_000))
    tag = rng.choice((b"g", b"metadata", b"x:xmpmeta", b"svg", b"a" * 50))
    many = rng.choice(
        (b"<" + tag, b"<" + tag + b">", b"</" + tag + b">", b"<" + tag + b"/>", b"<!--", b"&amp;",
         b'<!DOCTYPE a [<!ENTITY b "cc">]>', b"<![CDATA[", b' a="', b"&#x41;", b"</x:xmpmeta>")
    )  # fmt: skip
    places = [found.start() for found in re.finditer(rb"<(?=[a-z?!/])", data)] or [0]
    at = rng.choice(places[:6] if rng.random() < 0.5 else places)
    return data[:at] + many * min(deep, 2**19 // len(many)) + data[at:]


def _note(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Change the scenario that a file names where it is stored as it stands."""
    at = data.find(b"# Tilescope")
    if at < 0:
        return data
    stop = data.find(b"[attention]", at)
    stop = (stop if stop >= 0 else at) + 60
    text = rng.choice(_TOML)(data[at:stop], rng, others)
    return data[:at] + text[: 2**19] + data[stop:]


def _boxes(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Repeat, drop or resize the boxes of an MP4, or the like of a WebP."""
    names = [
        b"moov", b"trak", b"mdia", b"stbl", b"stts", b"stsz", b"udta", b"ilst", b"meta", b"data",
        b"free", b"XMP ", b"ANMF", b"VP8X", b"avcC", b"stco", b"ctts",
    ]  # fmt: skip
    able = [name for name in names if name in data]
    if not able:
        return _number(data, rng, others)
    at = data.find(rng.choice(able)) - 4
    size = int.from_bytes(data[at : at + 4], "big") & 0xFFFF
    act = rng.randrange(3)
    if act == 0:
        return data[:at] + struct.pack(">I", rng.choice(_INTS) & 0xFFFFFFFF) + data[at + 4 :]
    if act == 1:
        return data[:at] + data[at : at + size] * rng.choice((2, 50)) + data[at:]
    inside = at + 8 + rng.choice((0, 4, 8, 12))
    return data[:inside] + struct.pack(">I", rng.choice(_INTS) & 0xFFFFFFFF) + data[inside + 4 :]


_OF: dict[str, tuple[Mutation, ...]] = {
    ".toml": _TOML,
    ".md": _LESSON,
    ".ini": tuple(map(_text, (_shuffled_lines, _many_lines))),
    ".json": (lambda data, rng, others: _json_file(data, rng),),
    ".safetensors": (_header,),
    ".npz": (_members,),
    ".png": (_chunks, _note),
    ".apng": (_chunks, _note),
    ".svg": (_xml, _note),
    ".pdf": (_xml, _note),
    ".webp": (_boxes, _xml),
    ".gif": (_note,),
    ".mp4": (_boxes, _note),
    ".webm": (_note,),
}


def _json_file(data: bytes, rng: Random) -> bytes:
    try:
        return json.dumps(_json_change(json.loads(data), rng)).encode()
    except (ValueError, RecursionError):
        return data
