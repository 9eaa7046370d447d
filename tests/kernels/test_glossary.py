"""The names of the kernels in one table: complete, in use, and the same in the docs."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from kernels.build.reading import stripped
from kernels.build.sources import FOLDER
from kernels.cuda.glossary import NAMES, explained
from kernels.cuda.specs import KERNELS

CONVENTIONS = Path(__file__).resolve().parents[2] / "docs" / "conventions.md"
BUILDS = ((), ("-DSOFTCAP", "-DALIBI", "-DPATTERN", "-DSINK", "-DTHRESHOLD", "-DPROJECTS=1"))
SAID = re.compile(r"//.*|/\*.*?\*/|\".*?\"")


def test_every_name_is_in_the_sources() -> None:
    texts = [path.read_text("utf-8") for path in FOLDER.glob("*.cu*")]
    words = {word for text in texts for word in re.findall(r"\w+", SAID.sub("", text))}
    for each in NAMES:
        own = [word for word in words if word.endswith(each.name)]
        assert each.name in words or (each.name.startswith("_") and own), each.name
    assert len({each.name for each in NAMES}) == len(NAMES)


@pytest.mark.long
def test_every_constant_that_kernels_share_has_a_row() -> None:
    """Of what is read: conditions of the build are decided, and what counts is gone."""
    files = defaultdict(set)
    for kernel in (*KERNELS, "flash2_mma"):
        for options in BUILDS:
            for line in stripped(kernel, options):
                for word in re.findall(r"\b[A-Z][A-Z0-9_]+\b", SAID.sub("", line.text)):
                    files[word].add(line.file)
    shared = {word for word, found in files.items() if len(found) > 1}
    assert {"BR", "BC", "ROWS", "VALUES"} < shared
    assert shared <= {each.name for each in NAMES}


def test_the_docs_have_the_same_table() -> None:
    text = CONVENTIONS.read_text("utf-8")
    section = text.partition("## Names in the kernels\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\S+)` \| (.*?) \| (.*?) ?\|$", section, re.MULTILINE)
    assert rows == [tuple(each) for each in NAMES]


def test_a_word_is_explained() -> None:
    assert explained("BR") == "BR: query rows of a tile. FlashAttention: kBlockM."
    assert explained("V_shared") == "V_shared: in shared memory. FlashAttention: sQ."
    assert explained("S_shared").startswith("S_shared: scores of a tile, then its P.")
    assert explained("TILE_ROWS").endswith("that nobody stores.")
    assert explained("for") == ""
    assert explained("") == ""
