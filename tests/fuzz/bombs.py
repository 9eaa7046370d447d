"""Small files that claim, nest or repeat without measure: each once took minutes or gigabytes."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator

_XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/">'


def bombs() -> Iterator[tuple[str, bytes]]:
    """Yield the name, which begins with the kind and has the ending, and the bytes of each."""
    yield "scenario.long-key.toml", b"a." * 50_000 + b"a = 1\n"
    yield "scenario.long-table.toml", b"[" + b"a." * 50_000 + b"a]\n"
    yield "scenario.many-keys.toml", b"".join(b"k%d=1\n" % n for n in range(28_000))
    yield "scenario.large.toml", b"title = '" + b"x" * 2**20 + b"'"
    yield "scenario.title.toml", b"title = '" + b"x" * 200_000 + b"'"
    yield "scenario.deep-value.toml", b"a = " + b"[" * 100_000
    yield "model.long-key.toml", b"a." * 50_000 + b"a = 1\n"
    front = b'+++\ntitle = "T"\n+++\n'
    yield "lesson.steps.md", front + b"## A\n" * 100_000
    block = b'## A\n```toml step\nscenario = "flash2"\n'
    yield "lesson.braces.md", front + block + b"```\n" + b"{{" * 300_000
    yield (
        "lesson.keys.md",
        front + block + b"".join(b"k%d=1\n" % n for n in range(60_000)) + b"```\n",
    )
    yield "lesson.long-key.md", front + block + b"a." * 50_000 + b"a = 1\n```\n"
    yield "lesson.power.md", front + block + b"```\n{{ (-1)**0.5 }} {{ 1000000**64 }}\n"
    yield (
        "lesson.formula.md",
        front + block + b"```\n$" + b"\\frac{" * 800 + b"1" + b"}{2}" * 800 + b"$\n",
    )
    yield "export.packets.pdf", b"%PDF-1.4\n" + b"<x:xmpmeta" * 50_000
    yield "export.deep.pdf", b"%PDF-1.4\n" + _XMP + b"<a>" * 200_000 + b"</x:xmpmeta>"
    yield "export.deep.svg", b"<svg>" + b"<g>" * 300_000
    yield "export.wide.svg", b"<svg>" + b"<g/>" * 250_000
    yield "export.entities.svg", _entities()
    yield "export.attribute.svg", b'<svg a="' + b"x" * 2**20
    yield "export.chunks.png", b"\x89PNG\r\n\x1a\n" + b"\0\0\0\0tEXt\0\0\0\0" * 80_000
    yield "export.text.png", b"\x89PNG\r\n\x1a\n" + _chunk(b"iTXt", b"Tilescope\0\0\0")
    yield "export.blocks.gif", b"GIF89a" + bytes(7) + b"!\1" + b"\1x" * 500_000
    yield "export.chunks.webp", b"RIFF\0\0\0\0WEBP" + b"ABCD\0\0\0\0" * 125_000
    yield "export.list.mp4", b"#EXTM3U\n" + b"#EXTINF:1,\nhttp://127.0.0.1:9/a.ts\n" * 20_000
    yield "npz.zeros.npz", _npz("(1, 1048576, 64)", 2**27)
    yield "npz.tokens.npz", _npz("(1, 16777216, 1)", 2**25, tokens=2**24)
    yield "npz.nan.npz", _npz("(1, 1048576, 8)", 2**24, b"\xff")
    yield "npz.bzip2.npz", _npz("(1, 16777216, 1)", 2**25, method=zipfile.ZIP_BZIP2)
    yield "safetensors.header.safetensors", struct.pack("<Q", 2**26) + b" " * 2**20
    yield "safetensors.tensors.safetensors", _tensors()
    yield "report.deep.json", b"[" * 500_000
    yield "trace.deep.json", b"[" * 500_000
    yield "trace.many.json", b"[" + b"{}," * 2_700_000 + b"{}]"
    yield "settings.long.ini", b"[General]\nrecent=" + b"a, " * 300_000


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", len(body), kind) + body + bytes(4)


def _entities() -> bytes:
    lines = [b'<!ENTITY a0 "aaaaaaaaaa">']
    lines += [b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10)]
    return b"<!DOCTYPE svg [" + b"".join(lines) + b"]><svg><metadata>&a9;</metadata></svg>"


def _tensors() -> bytes:
    item = '"t%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    text = ("{" + ",".join(item % n for n in range(18_000)) + "}").encode()
    return struct.pack("<Q", len(text)) + text


def _npy(shape: str, kind: str) -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


def _npz(
    shape: str, size: int, fill: bytes = b"\0", tokens: int = 0, method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """Pack Q, K and V of one repeated byte, `size` bytes each: compressed piece by piece."""
    out, piece = io.BytesIO(), fill * 2**20
    heads = {name: (_npy(shape, "<f2"), size) for name in "qkv"}
    if tokens:
        heads["tokens"] = _npy(f"({tokens},)", "<U1"), 4 * tokens
    with zipfile.ZipFile(out, "w", method, compresslevel=1) as archive:
        for name, (head, length) in heads.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(head)
                for _ in range(length // len(piece)):
                    file.write(piece)
    return out.getvalue()
