"""Digests of what every engine computes of every demo and case, by which commits are compared."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
ENGINES = ("numpy", "host")
HOURS = {"real-scale"}
"""What the host engine would compute for hours."""


def cases() -> list[Path]:
    return sorted(
        path
        for folder in ("assets/scenarios", "tests/conformance")
        for path in (ROOT / folder).rglob("*.toml")
    )


def digests(path: Path, engine: str) -> dict[str, str]:
    """Return a digest for each array that a run writes, and for what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run.npz"
        words = ["run", str(path), "--engine", engine, "--json", "-o", str(out)]
        done = subprocess.run(
            [sys.executable, "-m", "ui", *words],
            cwd=ROOT,
            capture_output=True,
            check=False,
            text=True,
        )
        found = {"printed": sha256(without_place(done.stdout, out).encode()).hexdigest()[:16]}
        if out.exists():
            with np.load(out) as arrays:
                for name in sorted({*arrays.files} - {"summary.json"}):  # that says seconds
                    array = np.ascontiguousarray(arrays[name])
                    found[name] = sha256(array.tobytes()).hexdigest()[:16]
    return found


def without_place(printed: str, out: Path) -> str:
    """Return what a run printed without where and how long it ran."""
    try:
        said = json.loads(printed)
    except ValueError:
        return printed.replace(str(out), "")
    return json.dumps({k: v for k, v in said.items() if k not in ("output", "seconds", "version")})


def bits(folder: Path, only: str) -> Iterator[Path]:
    """Write the digests of all engines; yield the file."""
    found = {
        f"{path.parent.name}/{path.stem} {engine}": digests(path, engine)
        for path in cases()
        for engine in ENGINES
        if only in path.stem and path.stem not in HOURS
    }
    out = folder / "bits.json"
    out.write_text(json.dumps(found, indent=1), encoding="utf-8")
    yield out
