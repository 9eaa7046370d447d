"""Makes the double in build/gpu-double: the driver, and CuPy's module that is linked with CUDA.

CuPy's wheels contain the CUDA runtime, so that nothing could take its place. The one module that
calls it is made again from CuPy's source archive, which pip fetches once; the rest of CuPy is as
its wheel has it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build" / "gpu-double"
_RUNTIME = "cupy_backends/cuda/api/runtime"
_SETTINGS = {"CUPY_CUDA_VERSION": 13000, "CUPY_HIP_VERSION": 0, "CUPY_USE_CUDA_PYTHON": False}
_PROFILER = """#pragma once
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();
"""
"""The header cuda_profiler_api.h, for which there would be a package of its own."""
_SECONDS = 3600  # after which a process is stopped that waits for ever
_FLAGS = ("-std=c++17", "-O1", "-fPIC", "-shared", "-pthread")


@cache
def environment() -> dict[str, str]:
    """Return the environment of a process that takes the double for a GPU."""
    driver, runtime = _driver(), _runtime()
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(driver.parent),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE / "start")]),
        "DOUBLE_RUNTIME": str(runtime),
        "XDG_CACHE_HOME": str(BUILD / "cache"),
        "QT_QPA_PLATFORM": "offscreen",
    }


def _driver() -> Path:
    """Return the driver, made now unless its source is the same as then."""
    source = HERE / "driver.cpp"
    path = BUILD / hashlib.sha256(source.read_bytes()).hexdigest()[:16] / "libcuda.so.1"
    if not path.exists():
        _compiled(source, path, ["-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-ldl"])
    return path


def _runtime() -> Path:
    """Return CuPy's module of the CUDA runtime, made now for this Python and this CuPy if need be.

    Raises SystemExit: a command failed, such as pip where there is no network: with what it said.
    """
    name = f"cupy-{version('cupy-cuda13x')}"
    path = BUILD / f"{name}-{sys.implementation.cache_tag}.so"
    if path.exists():
        return path
    source = BUILD / name
    if not (BUILD / f"{name}.tar.gz").exists():
        _fetch(name)
    _run(["tar", "xf", f"{name}.tar.gz", f"{name}/cupy_backends"], BUILD)
    (source / "cuda_profiler_api.h").write_text(_PROFILER, encoding="utf-8")
    given = ",".join(f"{key}={value}" for key, value in _SETTINGS.items())
    _run([sys.executable, "-m", "cython", "--cplus", "-3", "-E", given, f"{_RUNTIME}.pyx"], source)
    include = [source, sysconfig.get_paths()["include"]]
    _compiled(source / f"{_RUNTIME}.cpp", path, ["-w", *(f"-I{folder}" for folder in include)])
    return path


def _fetch(name: str) -> None:
    """Fetch CuPy's source archive.

    pip asks an archive for its metadata, for which CuPy's set-up wants CUDA unless it is told to
    make stubs.
    """
    with_stubs = {**os.environ, "CUPY_INSTALL_USE_STUB": "1"}
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--no-binary", "cupy", "--dest", "."]
    _run([*command, name.replace("-", "==")], BUILD, with_stubs)


def _compiled(source: Path, target: Path, options: Sequence[str]) -> None:
    """Compile a source with CUDA's headers, which are in the packages that the suite brings."""
    headers = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13" / "include"
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    compiler = os.environ.get("CXX", "g++")
    _run([compiler, *_FLAGS, f"-I{headers}", str(source), *options, "-o", str(part)], BUILD)
    part.replace(target)


def _run(command: Sequence[str], folder: Path, env: dict[str, str] | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def on_double(*arguments: str, **gpu: int) -> subprocess.CompletedProcess[str]:
    """Run Python with the double in the place of a GPU.

    arguments: of Python.
    gpu: what driver.cpp takes from the environment, such as ``capability=70``.
    """
    said = {f"DOUBLE_{name.upper()}": str(value) for name, value in gpu.items()}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT, env={**environment(), **said}, timeout=_SECONDS,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


if __name__ == "__main__":
    environment()
