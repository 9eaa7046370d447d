"""Files as people have them: each is read as its author meant it, or refused in one line."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.base.dtypes import F32, DType, round_to
from simulator.code.run_script import run_script
from simulator.run.trace import simulate
from tests.helpers.written_files import file_scenario, read, refusal, write_safetensors

H, HKV, N, D, DV = 4, 2, 6, 3, 2
Made = dict[str, Any]


def heads_first(heads: int = H, kv_heads: int = HKV) -> Made:
    """Return Q, K and V in float64, heads first."""
    rng = np.random.default_rng(3)
    shapes = {"q": (heads, N, D), "k": (kv_heads, N, D), "v": (kv_heads, N, DV)}
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def as_type(dtype: Any, *names: str) -> Callable[[Made], Made]:
    return lambda x: {n: x[n].astype(dtype if n in names or not names else "f4") for n in x}


def each(change: Callable[[Any], Any]) -> Callable[[Made], Made]:
    return lambda x: {n: change(x[n].astype("f4")) for n in x}


def by_token(x: Any) -> Any:
    return x.swapaxes(0, 1).copy()


def bits(x: Any) -> Any:
    """Return bfloat16 as bit patterns."""
    return (round_to(x, "bfloat16").view(np.uint32) >> 16).astype(np.uint16)


NHD: Made = {"input": {"layout": "nhd"}}
HALF: Made = {"attention": {"dtype": "float16"}}
ROUNDED = "In the file q, k and v are float64, here rounded to float32."
READ: dict[str, tuple[str, Callable[[Made], Made], Made, DType, str]] = {
    "float32": ("npz", as_type("f4"), {}, "float32", ""),
    "float16": ("npz", as_type("f2"), {}, "float16", ""),
    "bfloat16 bits": ("npz", each(bits), {}, "bfloat16", ""),
    "float64": ("npz", as_type("f8"), {}, "float32", ROUNDED),
    "float64, half": ("npz", as_type("f8"), HALF, "float16", ROUNDED.replace("32", "16")),
    "float64, safe": ("safetensors", as_type("f8"), {}, "float32", ROUNDED),
    "big-endian": ("npz", as_type(">f4"), {}, "float32", ""),
    "big-endian half": ("npz", as_type(">f2"), {}, "float16", ""),
    "big-endian double": ("npz", as_type(">f8"), {}, "float32", ROUNDED),
    "big-endian bits": ("npz", each(lambda x: bits(x).astype(">u2")), {}, "bfloat16", ""),
    "Fortran": ("npz", each(np.asfortranarray), {}, "float32", ""),
    "Fortran, big-endian": ("npz", each(lambda x: np.asfortranarray(x.astype(">f4"))), {},
                            "float32", ""),
    "a view": ("npz", each(lambda x: x[..., ::-1][..., ::-1]), {}, "float32", ""),
    "capitals": ("npz", lambda x: {n.upper(): x[n].astype("f4") for n in x}, {}, "float32", ""),
    "capitals, safe": ("safetensors", lambda x: {n.upper(): x[n].astype("f4") for n in x}, {},
                       "float32", ""),
    "batch axis": ("npz", each(lambda x: x[None]), {}, "float32", ""),
    "nhd": ("npz", each(by_token), NHD, "float32", ""),
    "nhd, batch axis": ("npz", each(lambda x: by_token(x)[None]), NHD, "float32", ""),
    "nhd, Fortran": ("npz", each(lambda x: np.asfortranarray(by_token(x))), NHD, "float32", ""),
    "nhd, transposed": ("npz", each(lambda x: x.swapaxes(0, 1)), NHD, "float32", ""),
    "nhd, safe": ("safetensors", each(by_token), NHD, "float32", ""),
    "nhd, bits": ("safetensors", each(lambda x: bits(by_token(x))), NHD, "bfloat16", ""),
    "mixed": ("npz", as_type("f2", "k", "v"), {}, "float32",
              "In the file k and v are float16, here taken as float32."),
    "mixed, safe": ("safetensors", as_type("f2", "v"), {}, "float32",
                    "In the file v is float16, here taken as float32."),
    "mixed double": ("npz", as_type("f8", "q"), {}, "float32",
                     "In the file q is float64, here rounded to float32."),
    "two halves": ("safetensors", lambda x: {**as_type("f2")(x), "k": bits(x["k"].astype("f4"))},
                   {}, "float32", "In the file q and v are float16, here taken as float32."),
}  # fmt: skip


def write(path: Path, tensors: Made) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **tensors)
        return path
    return write_safetensors(path, tensors)


@pytest.mark.parametrize("name", READ)
def test_a_file_is_read_as_its_author_meant_it(name: str, tmp_path: Path) -> None:
    ending, change, tables, dtype, note = READ[name]
    tensors = heads_first()
    path = write(tmp_path / f"x.{ending}", change(tensors))
    workload, inputs = read(path, **tables)
    assert workload.dtype == dtype
    stored = {"mixed": "k v", "mixed, safe": "v", "two halves": "q v"}.get(name, "").split()
    for own, got in (("q", inputs.q), ("k", inputs.k), ("v", inputs.v)):
        expected: F32 = round_to(tensors[own].astype(np.float32), dtype)
        if own in stored:
            expected = tensors[own].astype(np.float16).astype(np.float32)
        elif name == "two halves":
            expected = round_to(expected, "bfloat16")
        np.testing.assert_array_equal(got, expected)
        assert got.flags.c_contiguous
    assert " ".join(workload.file.notes).startswith(note)
    assert bool(workload.file.notes) == bool(note)


@pytest.mark.parametrize("layout", ["hnd", "nhd"])
@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_two_axes_are_one_head(ending: str, layout: str, tmp_path: Path) -> None:
    tensors = {name: x[0].astype(np.float32) for name, x in heads_first(1, 1).items()}
    _, inputs = read(write(tmp_path / f"x.{ending}", tensors), input={"layout": layout})
    np.testing.assert_array_equal(inputs.q, tensors["q"][None])
    np.testing.assert_array_equal(inputs.v, tensors["v"][None])


@pytest.mark.parametrize(
    ("change", "tables", "line"),
    [
        (as_type("i8"), {}, "expected floating-point numbers"),
        (as_type("c8"), {}, "expected floating-point numbers"),
        (as_type("O"), {}, 'tensor q = "pickled objects"'),
        (each(lambda x: x[0, 0]), {}, "shape of q = (3,): expected three axes"),
        (each(lambda x: np.stack([x, x])), {}, "with at most a batch axis of 1"),
        (lambda x: {n: x[n] for n in "qk"}, {}, "tensor v: expected tensors q, k and v"),
        (lambda x: {**x, "k": by_token(x["k"])}, {}, "shape of v = (2, 6, 2): expected 6 heads"),
        (each(lambda x: x), NHD, "shape of k = (6, 2, 3): expected a number of heads that"),
        (as_type("f8"), {"attention": {"head_dim": 4}}, "attention.head_dim = 4: expected 3 as in"),
        (as_type("f2"), {"attention": {"dtype": "float32"}}, 'expected "float16" as in x.npz'),
        (lambda x: {n: x[n] * 1e300 for n in x}, {}, "tensor q, head 0, row 0, column 0"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    change: Callable[[Made], Made], tables: Made, line: str, tmp_path: Path
) -> None:
    tensors = heads_first()
    if tables is NHD:
        tensors = {**tensors, "q": tensors["q"][:, :3]}
    assert line in refusal(write(tmp_path / "x.npz", change(tensors)), **tables)


def test_what_is_as_output_has_its_layout_and_dtype(tmp_path: Path) -> None:
    tensors = heads_first()
    upstream = np.random.default_rng(4).standard_normal((H, N, DV))
    stored = {name: by_token(x) for name, x in {**tensors, "do": upstream}.items()}
    backward = {"attention": {"algorithm": "flash2-backward"}, **NHD}
    _, inputs = read(write(tmp_path / "x.npz", stored), **backward)
    np.testing.assert_array_equal(inputs.upstream, upstream.astype(np.float32))


def test_shapes_that_fit_both_ways_are_said_with_both_numbers(tmp_path: Path) -> None:
    tensors = {name: np.zeros((70, 7, 3), np.float32) for name in "qkv"}
    path = write(tmp_path / "x.npz", tensors)
    file = read(path)[0].file
    assert file.notes == (
        'q has 70 heads of 7 tokens; with [input] layout = "nhd" it would have 7 heads of 70 '
        "tokens.",
    )
    file = read(path, **NHD)[0].file  # seven heads of seventy tokens: as usual
    assert file.notes == ()
    np.savez(path, **tensors, tokens=np.array(list("abcdefg")))  # which say how many there are
    file = read(path)[0].file
    assert file.notes == ()


# --- F8 --------------------------------------------------------------------------------------

KINDS = ["F8_E4M3", "F8_E5M2"]


def number_of(byte: int, kind: str) -> float:
    """Return what a byte means (Micikevicius et al. 2022, table 1), in whole steps of its power."""
    wide, bias = (3, 7) if kind == "F8_E4M3" else (2, 15)
    exponent, fraction = byte % 128 >> wide, byte % 2**wide
    if kind == "F8_E4M3" and byte % 128 == 127:
        return float("nan")
    if kind == "F8_E5M2" and exponent == 31:
        return float("nan") if fraction else float("inf")
    steps = fraction + (2**wide if exponent else 0)
    return (-1) ** (byte // 128) * steps * 2.0 ** (max(exponent, 1) - bias - wide)


def as_numbers(stored: Any, kind: str) -> Any:
    return np.vectorize(lambda byte: np.float32(number_of(int(byte), kind)))(stored)


def some_bytes() -> Made:
    """Return Q, K and V as bytes of numbers of all sizes, none of them infinite."""
    rng = np.random.default_rng(5)
    signs = {name: np.uint8(128) * rng.integers(0, 2, x.shape) for name, x in heads_first().items()}
    return {n: (sign + rng.integers(0, 80, sign.shape)).astype("u1") for n, sign in signs.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_of_f8_is_its_number(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    every = np.arange(256, dtype=np.uint8)
    expected = as_numbers(every, kind)
    good = np.isfinite(expected)
    assert expected[good].max() == (448 if kind == "F8_E4M3" else 57344)
    stored = every[good].reshape(1, -1, 1)
    workload, inputs = read(write_safetensors(path, dict.fromkeys("qkv", stored), f8=kind))
    assert workload.dtype == "bfloat16"
    np.testing.assert_array_equal(inputs.q[0, :, 0], expected[good])
    for bad in every[~good]:
        tensors = dict.fromkeys("qkv", np.full((1, 1, 1), bad))
        assert "expected a finite number" in refusal(write_safetensors(path, tensors, f8=kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float16", None])
def test_f8_is_multiplied_by_its_scale(kind: str, dtype: str | None, tmp_path: Path) -> None:
    stored = some_bytes()
    scales = {"q": np.array([0.3], "f4"), "k": np.array([0.7, 1.9], "f4"), "v": np.float32(2.5)}
    scaled = {f"{name}_scale": np.asarray(scale) for name, scale in scales.items()}
    path = write_safetensors(tmp_path / "x.safetensors", {**stored, **scaled}, f8=kind)
    workload, inputs = read(path, attention={"dtype": dtype} if dtype else {})
    assert workload.dtype == (dtype or "bfloat16")
    for name, got in (("q", inputs.q), ("k", inputs.k), ("v", inputs.v)):
        scale = np.reshape(scales[name], (-1, 1, 1))
        expected = round_to(as_numbers(stored[name], kind) * scale, workload.dtype)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("scale", "line"),
    [
        ([1.0, 2.0, 3.0], "shape of k_scale = (3,): expected one number, or one of each of 2"),
        ([0.0], "k_scale[0] = 0.0: expected a finite number above 0"),
        ([1.0, np.inf], "k_scale[1] = "),
    ],
)
def test_other_scales_are_refused(scale: list[float], line: str, tmp_path: Path) -> None:
    tensors = {**some_bytes(), "k_scale": np.array(scale, np.float32)}
    assert line in refusal(write_safetensors(tmp_path / "x.safetensors", tensors, f8=KINDS[0]))


def test_an_f8_cache_beside_wider_queries(tmp_path: Path) -> None:
    tensors = {**some_bytes(), "q": heads_first()["q"].astype(np.float16)}
    workload, inputs = read(write_safetensors(tmp_path / "x.safetensors", tensors, f8=KINDS[0]))
    assert workload.dtype == "float16"
    expected = as_numbers(tensors["v"], KINDS[0]).astype(np.float16)
    np.testing.assert_array_equal(inputs.v, expected)


# --- the script that recomputes a run --------------------------------------------------------


@pytest.mark.parametrize("name", ["float64, half", "capitals, safe", "nhd, bits", "mixed", "F8"])
def test_the_script_of_a_run_reads_the_same_numbers(name: str, tmp_path: Path) -> None:
    tables: Made = {}
    if name == "F8":
        tensors = {**some_bytes(), "k_scale": np.array([0.5, 2.5], "f4")}
        path = write_safetensors(tmp_path / "x.safetensors", tensors, f8=KINDS[1])
    else:
        ending, change, tables, _, _ = READ[name]
        path = write(tmp_path / f"x.{ending}", change(heads_first()))
    script = tmp_path / "run.py"
    script.write_text(run_script(simulate(file_scenario(path, **tables)), 1, 2), encoding="utf-8")
    largest = runpy.run_path(str(script), run_name="__main__")["worst"]
    assert 0 <= largest < 1e-2
