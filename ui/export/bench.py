"""Measurements of exports: how much longer than the bare encoder, how much memory, how soon off."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from simulator.base.assets import SCENARIOS
from simulator.program.playback import Granularity
from simulator.run.trace import simulate
from simulator.study.bench import Measurement

ROOT = Path(__file__).resolve().parent.parent.parent
DEMO = SCENARIOS / "grouped-heads.toml"
"""618 ops: each frame shows another state, so every frame is painted."""
FRAMES = 300
READY = 100
"""Frames held ready for the bare encoder; the film beside it shows the same ones again, too."""


def measure_exports() -> Iterator[Measurement]:
    """Yield all measurements of this module; takes about two minutes."""
    size = f"{FRAMES} frames of 1080p"
    short = _child(".mp4", FRAMES)
    yield Measurement(f"{size} to MP4", short["seconds"], "s")
    mp4 = min(_child("ratio", READY)["ratio"] for _ in range(3))
    yield Measurement(f"{size} to MP4 / encoder with ready frames", mp4, "x", 1.4)
    yield Measurement(f"{size} to MP4, peak memory", short["peak"], "MB", 450)
    growth = 100 * (_child(".mp4", 10 * FRAMES)["peak"] / short["peak"] - 1)
    yield Measurement(f"{10 * FRAMES} frames, more peak memory by", growth, "%", 10)
    gif = min((_child(".gif", FRAMES) for _ in range(2)), key=lambda told: told["seconds"])
    yield Measurement(f"{size} to GIF", gif["seconds"], "s", 8)
    yield Measurement(f"{size} to GIF, file", gif["megabytes"], "MB", 8)
    for ending in (".mp4", ".gif", ".webp", ".apng"):
        yield _cancelling(ending)


def _child(what: str, frames: int) -> dict[str, float]:
    """Measure in a process of its own: peaks of memory are of a whole process."""
    asked = [sys.executable, "-m", "ui.export.bench", what, str(frames)]
    done = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def _cancelling(ending: str) -> Measurement:
    told = max(_child(f"cancel{ending}", FRAMES)["seconds"] for _ in range(3))
    return Measurement(f"cancelling {ending} of 3840x2160, longest", 1000 * told, "ms", 200)


# --- in the child ----------------------------------------------------------------------------


def _prepared(target: Path, frames: int, size: tuple[int, int] = (1920, 1080)) -> Any:
    from ui.export.job import prepare
    from ui.export.options import ExportOptions
    from ui.widgets.application import application

    application()
    trace = simulate(DEMO)
    stop = len(trace) // 2 if frames <= FRAMES else None
    options = ExportOptions(
        str(target), size=size, fps=30, length=frames / 30, by=Granularity.OP, visits=(0, stop)
    )
    return prepare(trace, options, str(DEMO), "")


def _whole(target: Path, frames: int) -> dict[str, float]:
    export = _prepared(target, frames)
    started = time.perf_counter()
    export.make(lambda share: None)
    seconds = time.perf_counter() - started
    size = target.stat().st_size / 1e6
    return {"seconds": seconds, "megabytes": size, "peak": _peak_megabytes()}


def _peak_megabytes() -> float:
    import resource  # Windows has none

    if sys.platform == "linux":  # where getrusage counts what the process was before exec, too
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes on macOS


def _ratio(target: Path, frames: int) -> dict[str, float]:
    """Compare a film with the encoder fed with its frames, taken in turns."""
    from ui.export.frames import new_image, paint_frame
    from ui.export.writers.video import VideoWriter

    export = _prepared(target, frames)
    source = export.source
    ready = [paint_frame(source, k, new_image(source)) for k in range(frames)]

    def bare() -> float:
        started = time.perf_counter()
        with target.open("w+b") as out:
            writer = VideoWriter(out, ".mp4", source.size, 30, "")
            for image in ready:
                writer.add(writer.prepare(image))
            writer.close()
        return time.perf_counter() - started

    def film() -> float:
        started = time.perf_counter()
        export.make(lambda share: None)
        return time.perf_counter() - started

    bares, films = zip(*((bare(), film()) for _ in range(3)), strict=True)
    return {"ratio": min(films) / min(bares)}


def _cancel(target: Path, frames: int) -> dict[str, float]:
    """Measure from asking for an end until nothing runs and nothing is left."""
    from ui.session.tasks import Cancelled

    export = _prepared(target, frames, (3840, 2160))
    asked = threading.Event()
    when: list[float] = []

    def ask() -> None:
        asked.set()
        when.append(time.perf_counter())

    def report(share: float) -> None:
        if asked.is_set():
            raise Cancelled
        if share > 0 and not when:
            when.append(0.0)
            threading.Timer(0.37, ask).start()

    with suppress(Cancelled):
        export.make(report)
    seconds = time.perf_counter() - when[-1]
    assert not list(target.parent.iterdir())
    return {"seconds": seconds}


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what")
    parser.add_argument("frames", type=int)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory() as folder:
        if options.what == "ratio":
            told = _ratio(Path(folder) / "a.mp4", options.frames)
        elif options.what.startswith("cancel"):
            told = _cancel(Path(folder) / f"a{options.what.removeprefix('cancel')}", options.frames)
        else:
            told = _whole(Path(folder) / f"a{options.what}", options.frames)
    print(json.dumps(told))


if __name__ == "__main__":
    _main()
