"""Compiles the kernels that a bundle ships, by NVRTC and with no GPU; `make package` calls it.

Every demo and every step of a lesson has its kernel as cubins and as PTX; so have those that
Compare runs beside a demo. What it runs beside a step, other algorithms and some more tilings are
there as PTX alone, which the driver compiles when they are first used. It is the trace build: a
bundle runs no other.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from kernels.build import shipped  # noqa: E402
from kernels.build.nvrtc import compile_cubin, compile_ptx, nvrtc_version  # noqa: E402
from kernels.build.sources import whole_source  # noqa: E402
from kernels.cuda.launch import build_options  # noqa: E402
from kernels.cuda.specs import most_shared_bytes  # noqa: E402
from simulator.base.assets import SCENARIOS  # noqa: E402
from simulator.base.errors import InputError  # noqa: E402
from simulator.lesson.course import list_lessons  # noqa: E402
from simulator.lesson.reader import load_lesson  # noqa: E402
from simulator.problem.hardware import gpus  # noqa: E402
from simulator.problem.scenario import load_scenario, parse_scenario  # noqa: E402
from simulator.problem.workload import Workload, resolve  # noqa: E402
from simulator.program.algorithms import ALGORITHMS, beside  # noqa: E402

KEPT = ROOT / "build" / "cubins" / nvrtc_version()
"""What earlier runs have compiled."""

TILES = ((16, 16), (16, 32), (32, 16), (32, 32), (32, 64), (64, 32), (64, 64), (64, 128),
         (128, 32), (128, 64), (128, 128))  # fmt: skip
HEAD_DIMS = (32, 64, 128)
OWN_TILES = (64, 64)
DTYPES = ("float16", "bfloat16", "float32")
"""More tilings for PTX: what FlashAttention-2 ships, and what a lecture may choose.

An algorithm that others are not compared with has `OWN_TILES` alone: each kernel takes some 20 KB.
"""


def main(folder: Path) -> None:
    """Write the files and their index."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    KEPT.mkdir(parents=True, exist_ok=True)
    wanted: dict[str, shipped.ShippedKernel] = {}
    for entry in (*_shown(), *_more()):
        kept = wanted.setdefault(entry.key, entry)
        if len(entry.targets) > len(kept.targets):
            wanted[entry.key] = entry
    # First what is several times the work of another, so that all processors end together.
    wanted = dict(sorted(wanted.items(), key=lambda item: -len(item[1].targets)))
    # Processes: threads take turns inside NVRTC (CuPy 14.2: two took as long as one).
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        for path in pool.map(_made, wanted.values()):
            shutil.copy(path, folder / f"{path.stem.partition('-')[0]}.tar.xz")
    shipped.write_index(folder, list(wanted.values()))
    wrong = shipped.faults(folder)
    if wrong:
        raise SystemExit("\n".join(wrong))
    for path in set(KEPT.iterdir()) - {_kept(entry) for entry in wanted.values()}:
        path.unlink()


def _shown() -> Iterator[shipped.ShippedKernel]:
    """Yield the kernels of demos and lessons, with cubins."""
    workloads = [resolve(load_scenario(path)) for path in sorted(SCENARIOS.glob("*.toml"))]
    demos = len(workloads)
    for title in list_lessons():
        workloads += [resolve(step.scenario) for step in load_lesson(title.path).steps]
    for number, workload in enumerate(workloads):
        compared = beside(workload.algorithm)
        own = compared if number < demos else (workload.algorithm,)
        # What makes gradients is shown in demos of its own: other runs are seldom turned into it.
        others = [name for name in ALGORITHMS if name in compared or not ALGORITHMS[name].backward]
        yield from _entries(workload, own, (*shipped.ARCHITECTURES, shipped.PTX))
        yield from _entries(workload, others, (shipped.PTX,))


def _more() -> Iterator[shipped.ShippedKernel]:
    """Yield the kernels of further tilings, as PTX."""
    for (rows, cols), d, dtype in product(TILES, HEAD_DIMS, DTYPES):
        asked = {
            "attention": {"head_dim": d, "seqlen_q": cols, "dtype": dtype},
            "tiling": {"rows": rows, "cols": cols},
        }
        names = [
            name for name, of in ALGORITHMS.items() if of.compared or (rows, cols) == OWN_TILES
        ]
        yield from _entries(resolve(parse_scenario(asked)), names, (shipped.PTX,))


def _entries(
    workload: Workload, algorithms: Iterable[str], targets: tuple[str, ...]
) -> Iterator[shipped.ShippedKernel]:
    most = max(gpu.smem_bytes for gpu in gpus().values())
    for name in algorithms:
        try:
            w = workload.as_algorithm(ALGORITHMS[name].name)
        except InputError:
            continue  # the heads that were picked cannot be packed: it does not run here
        if most_shared_bytes(w) <= most:
            yield shipped.ShippedKernel(name, build_options(w, trace=True), targets)


def _kept(entry: shipped.ShippedKernel) -> Path:
    """Return where the code of a kernel is kept: by its source, its options and its targets."""
    targets = hashlib.sha256(repr(entry.targets).encode()).hexdigest()[:8]
    return KEPT / f"{entry.key}-{targets}.tar.xz"


def _made(entry: shipped.ShippedKernel) -> Path:
    """Return the file of a kernel, compiled now or by an earlier run."""
    path = _kept(entry)
    if not path.exists():
        beside = path.with_suffix(".part")
        beside.write_bytes(shipped.packed(_compiled(entry)))
        beside.replace(path)
    return path


def _compiled(entry: shipped.ShippedKernel) -> dict[str, bytes]:
    """Return the code of a kernel by its target."""
    code, name = whole_source(entry.source), f"{entry.source}.cu"
    found: dict[str, bytes] = {}
    for target in entry.targets:
        if target.startswith("sm_"):
            ptx = target.replace("sm_", "compute_")
            made = compile_cubin(code, name, target, entry.options, with_ptx=ptx in entry.targets)
            found[target] = made.code
            if made.ptx:
                found[ptx] = made.ptx.encode()
        elif target not in found:
            found[target] = compile_ptx(code, name, target, entry.options).encode()
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
