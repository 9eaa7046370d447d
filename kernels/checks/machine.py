"""The machine that checks run on: GPU, driver, versions."""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kernels.build.nvrtc import nvrtc_reason, nvrtc_version
from kernels.build.sources import FOLDER
from kernels.checks.outcome import ROOT, Finding, Setting
from kernels.devices.driver import gpu_status

SECONDS = 20


def device(on: Setting) -> Finding:
    """Look at the GPU and use it in the simplest way, with a copy."""
    import cupy
    import numpy as np

    gpu = cupy.cuda.Device(0)
    attributes, runtime = gpu.attributes, cupy.cuda.runtime
    _, memory = runtime.memGetInfo()
    facts = {
        "GPU": on.device.label,
        "compute capability": f"sm_{gpu.compute_capability}",
        "multiprocessors": str(attributes["MultiProcessorCount"]),
        "memory": f"{memory / 2**30:.1f} GiB",
        "L2 cache": f"{attributes['L2CacheSize'] / 2**20:.0f} MiB",
        "shared memory of a block": f"{on.device.shared_limit // 1024} KiB",
        "driver": driver(gpu.pci_bus_id),
        "CUDA of the driver": gpu_status().driver,
        "CUDA runtime": cuda_version(runtime.runtimeGetVersion()),
        "NVRTC": nvrtc_reason() or nvrtc_version(),
        "CuPy": cupy.__version__,
        **software(),
    }
    sent = np.arange(1000, dtype=np.float32)
    back = on.device.download(on.device.upload(sent))
    faults = () if np.array_equal(back, sent) else ("a copy to the GPU and back is another",)
    return Finding(facts["GPU"], faults, figures={"facts": facts})


def driver(place: str) -> str:
    """Return the version of a GPU's driver, by its place on the bus as CUDA says it."""
    return said(
        "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", f"--id={place}"
    )


def software() -> dict[str, str]:
    """Return versions that are known without a GPU, the commit and the date."""
    tracked = ("--porcelain", "--untracked-files=no", "--", ".", ":!docs/gpu")  # not the report
    changed = said("git", "status", *tracked, empty="")
    return {
        "PyTorch": installed("torch"),
        "NumPy": installed("numpy"),
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "kernel sources": sources_digest(),
        "commit": said("git", "rev-parse", "--short=12", "HEAD") + (" and changes" * bool(changed)),
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }


def sources_digest(folder: Path = FOLDER) -> str:
    """Return a short hash of the CUDA sources that a report is about."""
    texts = [path.read_bytes() for path in sorted(folder.glob("*.cu*"))]
    return hashlib.sha256(repr(texts).encode()).hexdigest()[:12]


def installed(package: str) -> str:
    """Return a package's version."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def cuda_version(number: int) -> str:
    """Return 13000 as ``13.0``."""
    return f"{number // 1000}.{number % 1000 // 10}"


def said(program: str, *arguments: str, empty: str = "unknown") -> str:
    """Return the first line that a program prints, or `empty`."""
    path = shutil.which(program)
    if path is None:
        return empty
    try:
        done = subprocess.run(
            [path, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return empty
    line = done.stdout.strip().partition("\n")[0]
    return line if line and done.returncode == 0 else empty
