"""Input files that cannot be used: each refused in one line, and never believed too far."""

import io
import json
import os
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import InputError
from simulator.base.limits import TITLE_LETTERS
from simulator.problem import input_files
from simulator.problem.input_files import Bounds, read_header, read_tensors
from simulator.problem.scenario import load_scenario
from simulator.problem.workload import read_inputs, resolve
from tests.helpers.refused import refused
from tests.helpers.scarce import peak_memory
from tests.helpers.written_files import file_scenario, numbers, read, refusal, write_safetensors


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
def test_missing_files(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"no{ending}"
    assert refusal(path) == f"{path}: expected a readable file (No such file or directory)"
    folder = tmp_path / f"folder{ending}"
    folder.mkdir()
    assert "expected a readable file (Is a directory)" in refusal(folder)
    assert "expected a" in refusal(tmp_path / f"a\0b{ending}")


def test_other_kinds_of_files(tmp_path: Path) -> None:
    for name in ("x.pt", "x", "x.npy", "x.safetensors.bak"):
        (tmp_path / name).write_bytes(b"x" * 100)
        expected = f'input.path = "{name}": expected a .safetensors or .npz file'
        assert expected in refusal(tmp_path / name)
    for name in ("x.npz", "x.safetensors"):
        (tmp_path / name).write_bytes(b"not what the name says" * 10)
        assert "expected a whole " in refusal(tmp_path / name)
        (tmp_path / name).write_bytes(b"")
        assert "expected a whole " in refusal(tmp_path / name)


def whole_file(folder: Path, ending: str) -> Path:
    path = folder / f"x{ending}"
    if ending == ".safetensors":
        return write_safetensors(path, numbers(), {"tokens": json.dumps(["a"] * 6)})
    save = np.savez_compressed if ending == ".packed.npz" else np.savez
    save(path, **numbers(), tokens=np.array(["a"] * 6))
    return path


ENDINGS = [".safetensors", ".npz", ".packed.npz"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_truncated_at_every_place(ending: str, tmp_path: Path) -> None:
    path = whole_file(tmp_path, ending)
    whole = path.read_bytes()
    read(path)
    for length in {*range(0, len(whole), 13), *range(20), len(whole) - 1}:
        path.write_bytes(whole[:length])
        assert refusal(path).startswith(f"{path}: ")


@given(ending=st.sampled_from(ENDINGS), data=st.data())
def test_damaged_files_are_refused_or_read(
    ending: str, data: st.DataObject, tmp_path_factory: Any
) -> None:
    path = whole_file(tmp_path_factory.mktemp("damaged"), ending)
    damaged = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged)
    try:
        inputs = read(path)[1]
    except InputError as error:
        told = str(error)
    else:
        told = str(path)
        assert np.isfinite(inputs.q).all()
    assert told.startswith((str(path), "scenario: "))


def test_absurd_claims_of_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    huge = 50 * 10**9
    shape = [1, huge // 4, 1]
    header = {
        name: {"dtype": "F32", "shape": shape, "data_offsets": [n * huge, (n + 1) * huge]}
        for n, name in enumerate("qkv")
    }
    text = json.dumps(header).encode()
    bad = {
        "50 GB": struct.pack("<Q", len(text)) + text + b"\0" * 64,
        "long header": struct.pack("<Q", 2**63) + text,
        "50 GB header": struct.pack("<Q", huge) + text,
        "header past the end": struct.pack("<Q", len(text) + 1) + text,
        "no JSON": struct.pack("<Q", 4) + b"{{{{",
        "a list": struct.pack("<Q", 2) + b"[]",
        "overlapping": struct.pack("<Q", len(text)) + text.replace(b"50000000000", b"00"),
    }
    with peak_memory() as peak:
        for why, content in bad.items():
            path.write_bytes(content)
            assert "expected a whole safetensors file (" in refusal(path), why
        assert peak() < 5e6


def npy(header: str, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """Return a .npy file with this header."""
    text = header.encode() + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + data


def claim(shape: str, dtype: str = "<f4", fortran: bool = False) -> str:
    return f"{{'descr': {dtype!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


GOOD = npy(claim("(1, 2, 1)"), b"\0" * 8)


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize(
    ("member", "message"),
    [
        (npy(claim("(1, 12500000000, 1)"), b"\0" * 8), "shape of q = (1, 12500000000, 1)"),
        (npy(claim("(-1, -2, 1)"), b"\0" * 8), "shape of q = (-1, -2, 1)"),
        (npy(claim("(1, 2, 1)"), b"\0" * 7), "shape of q = (1, 2, 1): expected the"),
        (npy(claim("(1, 2, 1)", "|O"), b"\0" * 16), 'tensor q = "pickled objects": expected'),
        (npy(claim("(1, 2, 1)", "<i4"), b"\0" * 8), 'tensor q = "int32": expected floating-poi'),
        (npy(claim("(1, 2, 1)", "<c8"), b"\0" * 16), 'tensor q = "complex64": expected floati'),
        (npy(claim("(1, 2, 1)", ">i2"), b"\0" * 4), 'tensor q = ">i2": expected floating-poin'),
        (npy(claim("(1, 2, 1)", "|V1"), b"\0" * 2), 'tensor q = "|V1": expected floating-poin'),
        (npy(claim("(1, 2, 1)", fortran=True), b"\0" * 7), "shape of q = (1, 2, 1): expected the"),
        (npy(claim("(2,)", fortran=True), b"\0" * 8), "shape of q = (2,): expected three axes"),
        (npy(claim("(0, -2, 1)")), "shape of q = (0, -2, 1): expected the"),
        (npy(claim("(1, 2, 1)")[:-9], b"\0" * 8), "expected a whole .npz file ("),
        (npy("__import__('os').system('touch pwned')"), "expected a whole .npz file ("),
        (npy("(" * 9000), "expected a whole .npz file ("),
        (npy(claim("(1, 2, 1)"), b"\0" * 8, (7, 0)), "expected a whole .npz file ("),
        (b"\x80\x04K\x01.", "expected a whole .npz file ("),  # a bare pickle
        (b"", "expected a whole .npz file ("),
    ],
    ids=range(17),
)
def test_bad_arrays_in_an_npz(member: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (("q", member), ("k", GOOD), ("v", GOOD)):
            archive.writestr(f"{name}.npy", data)
    with peak_memory() as peak:
        assert message in refusal(path)
        assert peak() < 5e6
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("shape", ["()", "(1,)"])
def test_a_text_with_codes_beyond_unicode_is_refused(
    order: str, shape: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.npz"
    for code in (0x10FFFF, 0x110000, 0x08000035):
        data = np.array([code], f"{order}u4").tobytes()
        with zipfile.ZipFile(path, "w") as archive:
            for name in "qkv":
                archive.writestr(f"{name}.npy", GOOD)
            archive.writestr("model.npy", npy(claim(shape, f"{order}U1"), data))
        if code == 0x10FFFF:
            assert read_header(path).said.model in (chr(code), json.dumps([chr(code)]))
        else:
            assert 'model = "codes of no letter": expected a text' in refusal(path)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_all_kinds_of_npy_headers_are_read(version: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for n, name in enumerate("qkv"):
            data = np.array([n, n + 0.5], dtype="<f4").tobytes()
            archive.writestr(f"{name}.npy", npy(claim("(1, 2, 1)"), data, version))
    inputs = read_inputs(resolve(file_scenario(path)))
    assert [t.ravel().tolist() for t in (inputs.q, inputs.k, inputs.v)] == [
        [0.0, 0.5], [1.0, 1.5], [2.0, 2.5],
    ]  # fmt: skip


def test_no_pickle_is_read(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    path = tmp_path / "x.npz"
    trap = np.array([Trap()], dtype=object)
    np.savez(path, **{**numbers(), "q": trap}, allow_pickle=True)
    assert 'tensor q = "pickled objects"' in refusal(path)
    np.savez(path, **numbers(), tokens=trap, allow_pickle=True)
    assert "pickled objects" in refusal(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_that_claims_more_than_it_holds(method: int, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", method) as archive:
        for name in "qkv":
            archive.writestr(f"{name}.npy", GOOD)
    size = struct.pack("<I", len(GOOD))
    more = npy(claim("(1, 9, 1)"), b"\0" * 8)
    assert len(more) == len(GOOD)
    raw = body.getvalue()
    if method == zipfile.ZIP_STORED:
        raw = raw.replace(GOOD, more)
    path.write_bytes(raw.replace(size, struct.pack("<I", len(GOOD) + 28)))
    assert refusal(path).startswith(f"{path}: ")


def test_tokens_that_claim_too_much(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in "qkv":
            archive.writestr(f"{name}.npy", GOOD)
        archive.writestr("tokens.npy", npy(claim("(12500000000,)", "<U1")))
    assert "shape of tokens = (12500000000,): expected the" in refusal(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in "qkv":
            archive.writestr(f"{name}.npy", GOOD)
        archive.writestr("tokens.npy", b"\0" * (17 * 2**20))
    assert "bytes of tokens = 17825792: expected at most 16777216" in refusal(path)


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"q": (5,)}, "shape of q = (5,): expected three axes"),
        ({"q": (2, 4, 5, 3)}, "shape of q = (2, 4, 5, 3): expected three axes"),
        ({"v": (1, 1, 2, 6, 2)}, "shape of v = (1, 1, 2, 6, 2): expected three axes"),
        ({"k": (2, 0, 3)}, "shape of k = (2, 0, 3): expected three axes"),
        ({"k": (2, 6, 4)}, "shape of k = (2, 6, 4): expected head_dim 3 as in q"),
        ({"v": (2, 7, 2)}, "shape of v = (2, 7, 2): expected 2 heads of 6 keys as in k"),
        ({"v": (1, 6, 2)}, "shape of v = (1, 6, 2): expected 2 heads of 6 keys as in k"),
        ({"k": (3, 6, 3), "v": (3, 6, 2)}, "shape of k = (3, 6, 3): expected a number of"),
        ({"k": (8, 6, 3), "v": (8, 6, 2)}, "shape of k = (8, 6, 3): expected a number of"),
    ],
)
def test_shapes_that_do_not_fit(
    shapes: dict[str, tuple[int, ...]], message: str, ending: str, tmp_path: Path
) -> None:
    path, tensors = tmp_path / f"x{ending}", numbers(**shapes)
    if ending == ".npz":
        np.savez(path, **tensors)
    else:
        write_safetensors(path, tensors)
    assert message in refusal(path)


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
def test_tensors_missing_or_of_other_types(ending: str, tmp_path: Path) -> None:
    def stored(tensors: dict[str, np.ndarray]) -> Path:
        path = tmp_path / f"x{ending}"
        if ending == ".npz":
            np.savez(path, **tensors)
        else:
            write_safetensors(path, tensors)
        return path

    tensors = numbers()
    without = {name: tensor for name, tensor in tensors.items() if name != "k"}
    expected = "tensor k: expected tensors q, k and v (the file has q, v)"
    assert expected in refusal(stored(without))
    assert "expected tensors q, k and v (the file has none)" in refusal(stored({}))
    line = refusal(stored({**tensors, "v": tensors["v"].astype(np.int64)}))
    assert "tensor v = " in line
    assert "64" in line
    assert """expected floating-point numbers, as NumPy's x.astype("float32")""" in line


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_the_first_number_that_is_none_is_named(
    name: str, value: float, dtype: str, ending: str, tmp_path: Path
) -> None:
    tensors = numbers(dtype)
    bad = np.float32(value)
    if dtype == "bfloat16":
        bad = (bad.view(np.uint32) >> 16).astype(np.uint16)
    tensors[name][1, 3, 1] = bad
    tensors[name][1, 4, 0] = bad
    path = tmp_path / f"x{ending}"
    if ending == ".npz":
        np.savez(path, **tensors)
    else:
        write_safetensors(path, tensors)
    line = refusal(path)
    place = f"tensor {name}, head 1, row 3, column 1 = {value}"
    assert line == f"{path}: {place}: expected a finite number"
    # It is refused even when the head at fault is not one of those that run.
    assert place in refusal(path, input={"head": [0]})


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"tokens": "[]"}, 'tokens = "[]": expected a JSON list of 6 texts'),
        ({"tokens": '["a", "b"]'}, "expected a JSON list of 6 texts"),
        ({"tokens": '{"a": 1}'}, "expected a JSON list of 6 texts"),
        ({"tokens": "[" * 100_000}, "expected a JSON list of 6 texts"),
        ({"tokens": "not JSON\nat all"}, 'tokens = "not JSON at all": expected a JSON list'),
        ({"scale": "0"}, 'scale = "0": expected a number above 0'),
        ({"scale": "-1"}, 'scale = "-1": expected a number above 0'),
        ({"scale": "nan"}, 'scale = "nan": expected a number above 0'),
        ({"scale": "wide"}, 'scale = "wide": expected a number above 0'),
        ({"causal": "maybe"}, 'causal = "maybe": expected true or false'),
    ],
)
def test_metadata_that_cannot_be_used(meta: dict[str, str], message: str, tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "x.safetensors", numbers(), meta)
    assert message in refusal(path)


@pytest.mark.parametrize(
    ("table", "said", "message"),
    [
        ("attention", {"heads": 8}, "attention.heads = 8: expected 4 as in x.safetensors"),
        ("attention", {"kv_heads": 1}, "attention.kv_heads = 1: expected 2 as in x.safetensors"),
        ("attention", {"seqlen_q": 6}, "attention.seqlen_q = 6: expected 5 as in x.safetensors"),
        ("attention", {"seqlen_k": 5}, "attention.seqlen_k = 5: expected 6 as in x.safetensors"),
        ("attention", {"head_dim": 4}, "attention.head_dim = 4: expected 3 as in x.safetensors"),
        ("attention", {"value_dim": 3}, "attention.value_dim = 3: expected 2 as in x.safetensors"),
        ("attention", {"dtype": "float16"},
         'attention.dtype = "float16": expected "float32" as in x.safetensors'),
        ("attention", {"scale": 0.3}, "attention.scale = 0.3: expected 0.25 as in x.safetensors"),
        ("mask", {"causal": False}, "mask.causal = false: expected true as in x.safetensors"),
    ],
)  # fmt: skip
def test_disagreements_name_both_values(
    table: str, said: dict[str, Any], message: str, tmp_path: Path
) -> None:
    meta = {"scale": "0.25", "causal": "true"}
    path = write_safetensors(tmp_path / "x.safetensors", numbers(), meta)
    assert refusal(path, **{table: said}) == f"scenario: {message}"


def test_heads_that_the_file_does_not_have(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "x.safetensors", numbers())
    line = refusal(path, input={"head": [1, 4]})
    assert line == "scenario: input.head = [1, 4]: expected numbers from 0 to 3"


def test_a_file_that_changed_in_between_is_refused(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "x.safetensors", numbers())
    workload = resolve(file_scenario(path))
    path.write_bytes(path.read_bytes()[:-8])
    assert "size of v = 22: expected 24 numbers" in refused(read_inputs, workload)
    path.unlink()
    assert "expected a readable file" in refused(read_inputs, workload)


def test_names_in_a_file_may_hold_anything(tmp_path: Path) -> None:
    tensors = {"a\nb\x1b[31m": np.zeros(1, np.float32), "x" * 5000: np.zeros(1, np.float32)}
    path = write_safetensors(tmp_path / "x.safetensors", tensors)
    assert "expected tensors q, k and v (the file has " in refusal(path)


# --- bounds: what is just within one is read ------------------------------------------------


def told_within(bounds: Bounds, path: Path) -> str:
    """Return the line that a file is refused with within some bounds, empty if it is read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(input_files, "BOUNDS", bounds)
        try:
            read_header(path)
        except InputError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("key", ["model", "layer", "tokens"])
def test_texts_of_a_file_are_as_long_as_a_title(key: str, tmp_path: Path) -> None:
    for length in (TITLE_LETTERS, TITLE_LETTERS + 1):
        text = "x" * length
        meta = {key: json.dumps([text] + ["a"] * 5) if key == "tokens" else text}
        path = write_safetensors(tmp_path / "x.safetensors", numbers(), meta)
        if length == TITLE_LETTERS:
            read(path)
        else:
            expected = f"characters of {key} = {length}: expected at most {TITLE_LETTERS}"
            assert expected in refusal(path)


def test_headers_are_bounded(tmp_path: Path) -> None:
    one, two = whole_file(tmp_path, ".safetensors"), whole_file(tmp_path, ".npz")
    data = two.read_bytes()
    # Sizes as the formats have them: before the header; 12 bytes into the end of an archive.
    sizes = {
        one: int.from_bytes(one.read_bytes()[:8], "little"),
        two: int.from_bytes(data[data.rindex(b"PK\5\6") :][12:16], "little"),
    }
    for path, size in sizes.items():
        assert told_within(Bounds(header=size), path) == ""
        assert f"of at most {size - 1} bytes" in told_within(Bounds(header=size - 1), path)


def test_what_an_npz_inflates_to_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, **{name: np.zeros((1, 500, 8), np.float32) for name in "qkv"})
    with zipfile.ZipFile(path) as archive:
        size = sum(info.file_size for info in archive.infolist())
    times = size // path.stat().st_size
    assert times > 20
    for least, most, good in (
        (size, 0, True), (size - 1, 0, False), (0, times + 1, True), (0, times, False),
    ):  # fmt: skip
        told = told_within(Bounds(inflated=least, times=most), path)
        assert (told == "") == good
        bound = max(least, most * path.stat().st_size)
        assert good or f"unpacked bytes = {size}: expected at most {bound}: such" in told


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("ending", ENDINGS)
def test_numbers_are_read_without_a_copy_of_them_beside(ending: str, tmp_path: Path) -> None:
    path, tensors = tmp_path / f"x{ending}", numbers(q=(4, 200_000, 3))
    if ending == ".safetensors":
        write_safetensors(path, tensors)
    else:
        np.savez_compressed(path, **tensors)
    file = read_header(path)
    with peak_memory() as peak:
        read_tensors(file)
        # What is inflated at once, and the same as bytes, lie beside.
        assert peak() < tensors["q"].nbytes + 5e6


@pytest.mark.skipif(sys.platform == "win32", reason="no such devices and pipes")
@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_pipes_and_devices_are_refused_without_a_wait(ending: str, tmp_path: Path) -> None:
    pipe, noise = tmp_path / f"pipe{ending}", tmp_path / f"noise{ending}"
    os.mkfifo(pipe)
    noise.symlink_to("/dev/urandom")  # it never ends
    for path in (pipe, noise):
        assert "it is a pipe, a socket or a device" in refusal(path)


def test_numbers_of_an_npz_may_be_arrays_of_any_kind_of_number(tmp_path: Path) -> None:
    slopes = np.array([0.5, 0.25, 0.125, 0.0625])
    path = tmp_path / "numbers.npz"
    np.savez(path, **numbers(), scale=np.array([2]), softcap=np.int64(3), alibi=slopes)
    workload, _ = read(path)
    assert (workload.scale, workload.softcap, workload.slopes) == (2.0, 3.0, tuple(slopes))
    np.savez(path, **numbers(), scale=np.array([2, 3]))
    assert '"int64 of shape (2,)": expected a text, a number' in refusal(path)


def test_a_file_with_directions_says_how_many_features_there_are(tmp_path: Path) -> None:
    directions = np.ones((7, 3), np.float32)
    path = write_safetensors(tmp_path / "p.safetensors", {**numbers(), "projection": directions})
    linear = {"algorithm": "linear", "feature_map": "performer"}
    workload, inputs = read(path, attention=linear)
    assert workload.feature_map.features == 7
    assert inputs.projection.shape == (7, 3)
    assert "(9, 3): features and head_dim" in refusal(path, attention={**linear, "features": 9})


def test_a_tensor_file_in_the_place_of_a_scenario_is_told_where_it_belongs(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "mine.safetensors", numbers())
    assert "a scenario (.toml) whose [input] has source" in refused(load_scenario, path)
