"""Bounds on files: what is just within one is read, and what is not is refused with its size."""

import struct
import sys
import tomllib
from pathlib import Path

import pytest

from simulator import InputError, load_scenario
from simulator.base import limits
from simulator.base.limits import check_toml, read_bounded
from simulator.base.tables import parse_toml, read_toml
from simulator.problem.scenario import parse_scenario
from tests.helpers.refused import refused
from tests.helpers.written_files import refusal

DOCS = Path(__file__).resolve().parents[3] / "docs"
KIB, MIB = 1024, 1024**2

BOUNDS = {
    "TOML_BYTES": 256 * KIB, "KEY_PARTS": 16, "TITLE_LETTERS": 500, "MISTAKES": 100,
    "LESSON_BYTES": MIB, "LESSON_STEPS": 500, "TEXT_LETTERS": 10_000, "PLACEHOLDERS": 100,
    "RUN_SCORES": 256 * MIB, "FORMULA_LETTERS": 1000, "FORMULA_STEPS": 2000,
    "HEADER_BYTES": 16 * MIB, "TOKEN_BYTES": 16 * MIB, "INFLATED_BYTES": 64 * MIB,
    "INFLATED_TIMES": 8, "NOTE_BYTES": MIB, "EXPORT_BYTES": 512 * MIB, "CHUNKS": 128 * KIB,
    "SENTENCE_TOKENS": 512,
    "TRACE_BYTES": 8 * MIB, "TRACE_EVENTS": 2**18, "TRACE_LANES": 4096, "PICTURE_PIXELS": 2**24,
}  # fmt: skip


def test_what_opened_before_still_opens() -> None:
    """People have files up to these bounds: a lower one takes them away."""
    public = {name for name in vars(limits) if name.isupper() and name[0] != "_"}
    assert {name: getattr(limits, name) for name in public} == BOUNDS


def test_the_docs_name_the_bounds() -> None:
    files, lessons = (
        " ".join((DOCS / name).read_text(encoding="utf-8").split())
        for name in ("files.md", "writing-lessons.md")
    )
    steps, numbers = limits.LESSON_STEPS, limits.PLACEHOLDERS
    assert f"at most {steps} steps, a text at most {numbers} numbers" in lessons
    assert f"unpack to {limits.INFLATED_BYTES // MIB} MiB, or to eight times the" in files
    assert limits.INFLATED_TIMES == 8
    assert f"at most {limits.PICTURE_PIXELS:,} pixels".replace(",", " ") in files


def test_files_of_toml_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("# " + "x" * (256 * KIB - 2))
    assert load_scenario(path) == parse_scenario({})
    path.write_text("# " + "x" * (256 * KIB - 1))
    assert "bytes = 262145: expected TOML of at most 262144" in refused(read_toml, path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="its files are of Linux")
def test_a_file_of_unknown_size_is_read_no_further_than_its_bound() -> None:
    path = Path("/proc/version")
    assert path.stat().st_size == 0
    size = len(path.read_bytes())
    assert read_bounded(path, size, "text") == path.read_bytes()
    with pytest.raises(InputError, match=f"bytes = {size}: expected text of at most {size - 1}"):
        read_bounded(path, size - 1, "text")


def test_a_file_is_told_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 99)
    assert "bytes = 99: expected text of at most 5" in refused(read_bounded, path, 5, "text")


@pytest.mark.parametrize("part", ["a", "a-1", '"b c"', "'d.e'"])
@pytest.mark.parametrize("dot", [".", " . ", "\t."])
def test_keys_have_few_parts(part: str, dot: str) -> None:
    good, bad = (dot.join([part] * count) for count in (16, 17))
    for text in (f"{good} = 1", f"[{good}]"):
        assert parse_toml(text) == tomllib.loads(text)
    for text in (f"{bad} = 1", f"[{bad}]", f"x = {{ {bad} = 1 }}"):
        with pytest.raises(ValueError, match="keys of at most 16 parts"):
            check_toml(text)


def test_a_hundred_mistakes_are_told_and_the_others_counted() -> None:
    for count, told in ((100, 100), (101, 100), (250, 100)):
        with pytest.raises(InputError) as error:
            parse_scenario({f"key{n}": 1 for n in range(count)})
        assert len(error.value.mistakes) == told
        assert error.value.others == count - told
        assert str(error.value).endswith(f" (and {count - 1} more)")
        assert [m.key for m in error.value.mistakes] == [f"key{n}" for n in range(told)]


def test_a_header_of_safetensors_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    for length in (16 * MIB, 16 * MIB + 1):
        path.write_bytes(struct.pack("<Q", length) + b"{}")
        bounded = "a header of at most 16777216 bytes" in refusal(path)
        assert bounded == (length > 16 * MIB)
