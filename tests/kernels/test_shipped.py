"""Kernels that come as machine code: found only where they are right, whole, and fit the GPU."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.build import shipped
from kernels.build.cache import cache_folder
from kernels.build.elf import architecture, elf_size
from kernels.build.nvrtc import (
    compile_cubin,
    compile_ptx,
    newest_target,
    nvrtc_reason,
    nvrtc_version,
)
from kernels.build.shipped import ShippedKernel, fitting, key, machine_code, packed
from kernels.build.sources import whole_source
from kernels.cuda.launch import build_options
from kernels.devices import cupy as cupy_device
from kernels.errors import KernelError
from tests.helpers.runs import scenario
from tests.kernels.helpers import workload_of

needs_nvrtc = pytest.mark.skipif(bool(nvrtc_reason()), reason=nvrtc_reason())

CODE = whole_source("flash2")
OPTIONS = build_options(workload_of(scenario("flash2"))[0], trace=True)


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        (70, None), (75, "sm_75"), (80, "sm_80"), (86, "sm_80"), (87, "sm_80"), (89, "sm_80"),
        (90, "sm_90"), (100, "sm_100"), (103, "sm_100"), (110, "compute_75"), (120, "sm_120"),
        (121, "sm_120"), (130, "compute_75"),
    ],
)  # fmt: skip
def test_what_a_gpu_is_given(capability: int, target: str | None) -> None:
    assert fitting((*shipped.ARCHITECTURES, shipped.PTX), capability) == target


def place(folder: Path, code: str, options: tuple[str, ...], machine: dict[str, bytes]) -> Path:
    path = folder / f"{key(code, options)}.tar.xz"
    path.write_bytes(packed(machine))
    return path


def test_code_of_another_source_is_never_found(tmp_path: Path) -> None:
    place(tmp_path, CODE, OPTIONS, {"sm_90": b"of this source", "compute_75": b"text"})
    assert machine_code(CODE, OPTIONS, 90, tmp_path) == ("sm_90.cubin", b"of this source")
    assert machine_code(CODE, OPTIONS, 86, tmp_path) == ("compute_75.ptx", b"text")
    assert machine_code(CODE + " ", OPTIONS, 90, tmp_path) is None
    assert machine_code(CODE, (*OPTIONS, "-DMORE"), 90, tmp_path) is None
    assert machine_code(CODE, OPTIONS, 70, tmp_path) is None


def test_a_damaged_file_is_no_kernel(tmp_path: Path) -> None:
    path = place(tmp_path, CODE, OPTIONS, {"sm_90": bytes(range(256)) * 40})
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole[: len(whole) // 2], b"no archive"):
        path.write_bytes(damaged)
        with pytest.raises(KernelError, match="is damaged"):
            machine_code(CODE, OPTIONS, 90, tmp_path)


@needs_nvrtc
def test_what_is_wrong_with_a_folder(tmp_path: Path) -> None:
    cubin = compile_cubin(CODE, "flash2.cu", "sm_90", OPTIONS).code
    ptx = compile_ptx(CODE, "flash2.cu", "compute_75", OPTIONS).encode()
    entry = ShippedKernel("flash2", OPTIONS, ("sm_90", "compute_75"))
    assert shipped.faults(tmp_path) == []
    path = place(tmp_path, CODE, OPTIONS, {"sm_90": cubin, "compute_75": ptx})
    shipped.write_index(tmp_path, [entry])
    assert shipped.faults(tmp_path) == []
    said = "flash2 " + " ".join(OPTIONS)
    for machine, missing in (
        ({"sm_90": cubin}, "compute_75"),
        ({"sm_90": cubin[:-1], "compute_75": ptx}, "sm_90"),
        ({"sm_90": cubin, "compute_75": b"nothing"}, "compute_75"),
    ):
        place(tmp_path, CODE, OPTIONS, machine)
        assert shipped.faults(tmp_path) == [f"{said}: no {missing}"]
    path.unlink()
    assert len(shipped.faults(tmp_path)) == 1
    index = tmp_path / "index.json"
    listed: dict[str, Any] = json.loads(index.read_text(encoding="utf-8"))
    (row,) = listed.values()
    index.write_text(json.dumps({"0" * 24: row}), encoding="utf-8")
    assert shipped.faults(tmp_path) == [f"{said}: its source has changed since it was compiled"]


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_75", "sm_120"])
def test_a_cubin_is_whole(arch: str) -> None:
    """CuPy's binding of NVRTC drops the last byte."""
    cubin = compile_cubin(CODE, "flash2.cu", arch, OPTIONS).code
    assert elf_size(cubin) == len(cubin)
    assert elf_size(cubin[:-1]) == len(cubin)
    assert architecture(cubin) == int(arch[3:])
    assert architecture(b"no cubin" * 10) == 0


@pytest.mark.long
@needs_nvrtc
def test_a_cubin_brings_the_ptx_that_it_was_made_of() -> None:
    made = compile_cubin(CODE, "flash2.cu", "sm_75", OPTIONS, with_ptx=True)
    assert made.ptx == compile_ptx(CODE, "flash2.cu", "compute_75", OPTIONS)
    alone = compile_cubin(CODE, "flash2.cu", "sm_75", OPTIONS)
    assert (alone.code, alone.ptx) == (made.code, "")


# --- on the way to a GPU -------------------------------------------------------------------------


class Loader(cupy_device.CupyDevice):
    """As far as a device gets without a GPU: which bytes the driver would be given."""

    def __init__(self, capability: int) -> None:
        self.capability = capability

    def loaded(self, content: bytes, code: str) -> Any:
        assert code == CODE
        return content


def cached() -> set[str]:
    return {path.name for path in cache_folder().iterdir()}


def test_shipped_kernels_come_first_and_are_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = np.random.default_rng(0).bytes(100)
    place(tmp_path, CODE, OPTIONS, {"sm_80": content})
    monkeypatch.setattr(
        cupy_device, "machine_code", lambda *said: machine_code(*said, folder=tmp_path)
    )
    before = cached()
    assert Loader(86).module(CODE, OPTIONS) == content
    assert not [name for name in cached() - before if "sm_80" in name]


@needs_nvrtc
@pytest.mark.parametrize("capability", [86, 130])
def test_nvrtc_makes_what_is_not_shipped(capability: int) -> None:
    content: Any = Loader(capability).module(CODE, OPTIONS)
    if capability == 86:
        assert (architecture(content), elf_size(content)) == (86, len(content))
    else:
        assert b".visible .entry" in content
    assert Loader(capability).module(CODE, OPTIONS) == content


@needs_nvrtc
def test_the_cache_tells_compilers_apart() -> None:
    """Else an upgrade of NVRTC would go on with what an older one has made."""
    Loader(86).module(CODE, OPTIONS)
    assert any(f"nvrtc-{nvrtc_version()}-sm_86" in name for name in cached())


@needs_nvrtc
@pytest.mark.parametrize(
    ("capability", "target"),
    [(75, "sm_75"), (90, "sm_90"), (101, "compute_100"), (130, "compute_121")],
)
def test_a_gpu_that_nvrtc_does_not_know_gets_ptx_of_an_earlier_one(
    capability: int, target: str
) -> None:
    if nvrtc_version() != "13.0":
        pytest.skip("other versions know other GPUs")
    assert newest_target(capability) == target


@needs_nvrtc
@pytest.mark.parametrize("capability", [61, 70])
def test_a_gpu_older_than_all_that_nvrtc_knows_is_told_so(capability: int) -> None:
    if not nvrtc_version().startswith("13."):
        pytest.skip("earlier versions know these GPUs")
    told = rf"^this GPU is sm_{capability}, and NVRTC 13\.\d begins at sm_75: .*cupy-cuda12x"
    with pytest.raises(KernelError, match=told):
        Loader(capability).module(CODE, OPTIONS)


def test_neither_shipped_nor_nvrtc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupy_device, "nvrtc_reason", lambda: "NVRTC is not installed (pip ...)")
    with pytest.raises(KernelError, match=r"^NVRTC is not installed"):
        Loader(90).module(CODE, OPTIONS)
    monkeypatch.setattr("sys.frozen", True, raising=False)
    said = dict(option[2:].split("=") for option in OPTIONS if "=" in option)
    tiles = f"tiles of {said['BR']} × {said['BC']}, d = {said['HEAD_DIM']}, float32"
    with pytest.raises(KernelError, match=f"^this copy brings no GPU kernel for {tiles}, and"):
        Loader(90).module(CODE, OPTIONS)


def test_a_kernel_of_the_gpu_is_loaded_from_bytes_and_called_as_all_are() -> None:
    """With the driver's part played by a stand-in: what it is given, and in which words."""
    asked: list[Any] = []

    class Function:
        ptr = 7

        def __call__(self, *said: Any, **more: Any) -> None:
            asked.append((said, more))

    class Loaded:
        def load(self, content: bytes) -> None:
            asked.append(content)

        def get_function(self, name: str) -> Function:
            asked.append(name)
            return Function()

    loaded = Loaded()
    loaded.load(b"cubin")
    kernel = cupy_device.CupyModule(loaded).get_function("flash2")
    kernel((2, 3), (64,), [np.int32(1)], shared_mem=5)
    assert asked == [b"cubin", "flash2", (((2, 3), (64,), [np.int32(1)]), {"shared_mem": 5})]
