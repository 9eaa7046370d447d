"""`make package`: from a checkout to dist/tilescope, and what is downloaded.

It makes an environment of its own in build/, so that nothing of the tests gets in, and needs
nothing but Python: on Linux also cc and binutils, and dpkg-deb for the .deb. With ``GPU=0`` in the
environment CuPy and the kernels for it stay out, as they do where there is no CuPy.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import tomllib
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import archives
import licences
import slim

ROOT = Path(__file__).resolve().parent.parent
BUILD, DIST = ROOT / "build" / "package", ROOT / "dist"
CUBINS = BUILD / "cubins"
VENV = ROOT / "build" / "venv-package"
HAS_CUPY = (sys.platform, platform.machine().lower()) in (("linux", "x86_64"), ("win32", "amd64"))
GPU = HAS_CUPY and os.environ.get("GPU", "") != "0"
KIND = "-cpu" if HAS_CUPY and not GPU else ""
"""What the smaller of two bundles is told by."""
GPU_PARTS = ("cupy-cuda13x", "cuda-pathfinder")


def main() -> None:
    """Build everything that this system can."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle-only", action="store_true", help="no archive, no .deb")
    options = parser.parse_args()
    os.chdir(ROOT)
    stated = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    version = stated["project"]["version"]
    name = f"tilescope{KIND}"
    with _part("environment (kept until pyproject.toml asks for others)"):
        python = _environment(stated["project"])
    with _part("icons and licences"):
        subprocess.run([python, "packaging/icons.py", BUILD], check=True)
        parts = GPU_PARTS if GPU else ()
        subprocess.run([python, "packaging/licences.py", BUILD / "licences", *parts], check=True)
    (BUILD / "built").write_text(f"{_day_of_sources()}\n", encoding="ascii")
    shutil.rmtree(DIST / name, ignore_errors=True)
    bundle = DIST / name
    with ThreadPoolExecutor(1) as beside:  # PyInstaller and slimming keep one processor busy
        kernels = beside.submit(_make_kernels, python) if GPU else None
        with _part("PyInstaller"):
            _run_pyinstaller(python, name)
        if sys.platform == "linux":
            with _part("slimming"):
                slim.slim(bundle)
                licences.add_system_libraries(bundle)
        if kernels:
            with _part("the rest of the kernels (kept until their sources or options change)"):
                kernels.result()
                shutil.copytree(CUBINS, bundle / "_internal" / "kernels" / "cubins")
    print(f"{bundle}: {archives.size_of(bundle) / 1e6:.1f} MB")
    if not options.bundle_only:
        with _part("archives"):
            made = archives.make(bundle, version, DIST, BUILD, KIND)
            archives.write_sums(DIST, version)
        for path in made:
            print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def _day_of_sources() -> str:
    """Return the day of the last commit, or today where there is no repository."""
    ask = ["git", "log", "-1", "--format=%cs"]
    if shutil.which("git"):
        done = subprocess.run(ask, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return f"{date.today()}"


def _make_kernels(python: Path) -> None:
    """Compile the kernels by NVRTC, on all processors."""
    subprocess.run([python, "-P", "packaging/cubins.py", CUBINS], check=True)


def _run_pyinstaller(python: Path, name: str) -> None:
    """Make the folder of the bundle, all but the kernels."""
    chosen = {"PYTHONHASHSEED": "1", "TILESCOPE_BUNDLE": name, "TILESCOPE_GPU": str(int(GPU))}
    subprocess.run(
        [python, "-P", "-m", "PyInstaller", "--noconfirm", "--log-level", "ERROR",
         "--workpath", ROOT / "build" / f"pyinstaller{KIND}", "--distpath", DIST, "build.spec"],
        check=True, env=os.environ | chosen,
    )  # fmt: skip


@contextmanager
def _part(name: str) -> Iterator[None]:
    """Say how long a part takes, and how long the processors work for it."""
    print(f"{name}: ...", flush=True)
    started, before = time.perf_counter(), sum(os.times()[:4])
    yield
    took, work = time.perf_counter() - started, sum(os.times()[:4]) - before
    print(f"{name}: {took:.0f} s, {work:.0f} s of the processors", flush=True)


def _environment(project: dict[str, Any]) -> Path:
    """Return the Python of an environment with what is packaged, and PyInstaller."""
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    extras = project.pop("optional-dependencies")
    asked = [sys.version, project, extras["package"], extras["gpu-cuda13"]]
    wanted = json.dumps(asked, indent=1).encode()
    with_gpu, without = VENV / "installed-with-gpu", VENV / "installed"
    stamps = [with_gpu] if GPU else [with_gpu, without]
    if not any(stamp.exists() and stamp.read_bytes() == wanted for stamp in stamps):
        venv.create(VENV, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
               "--no-compile"]  # fmt: skip  # PyInstaller compiles what it takes
        subprocess.run([*pip, f".[package{',gpu-cuda13' if GPU else ''}]"], check=True)
        stamps[-1].write_bytes(wanted)
    return python


if __name__ == "__main__":
    main()
