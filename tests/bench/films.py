"""Measurements of exports, each compared with a bare encoder: times, memory, and cancelling.

The bare encoder is PyAV alone with our options, which gets finished pictures: the difference is
painting and the work of our writers. Each pair is measured in turns in another process, because a
peak of memory belongs to a whole process.
"""

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
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from simulator.base.assets import SCENARIOS
from simulator.program.playback import Granularity
from simulator.run.trace import simulate
from tests.bench.numbers import Measurement, measured, turns
from ui.export.writers.x264 import x264_options

ROOT = Path(__file__).resolve().parent.parent.parent
DEMO = SCENARIOS / "grouped-heads.toml"
"""618 ops: each frame shows another state, so every frame is painted."""
HD, SMALL, HUGE = (1920, 1080), (640, 360), (3840, 2160)
READY = {".mp4": 60, ".gif": 60, ".apng": 6, ".webp": 12}
"""Finished frames for each encoder; the film with which it is compared shows the same ones."""
PACED, HELD = 300, 60
"""Frames of a film at speed 1, and how many of them are in memory: the bare encoder gets these
forwards and backwards in turns."""
LONG = 600
"""Frames over which memory may not grow."""
BARE = {
    ".mp4": ("mp4", "libx264", "bgra", x264_options()),
    ".gif": ("gif", "gif", "bgr8", {}),
    ".apng": ("apng", "apng", "rgba", {"pred": "mixed"}),
    ".webp": (
        "webp",
        "libwebp_anim",
        "bgra",
        {"lossless": "1", "compression_level": "1", "quality": "0"},
    ),
}
"""Container, encoder, the pixels that it gets, and options of each bare encoder."""


def measure_exports() -> Iterator[Measurement]:
    """Yield all measurements of this module; takes about a minute."""
    for ending, frames in READY.items():
        told = _child("beside", ending, frames)
        what = f"{frames} frames of 1080p to {ending[1:].upper()}"
        over = f"PyAV's {BARE[ending][1]}, frames ready"
        # 1.7 where it was measured; over our own writer, fed with ready frames, it was 1.4.
        most = 2.0 if ending == ".mp4" else None
        yield measured(what, "s", told["films"], told["bares"], over, most=most)
        size = told["megabytes"]
        yield Measurement(f"{what}, file", size, "MB", size, told["bare megabytes"], over)
    told = _child("paced", ".mp4", PACED)
    what, over = f"{PACED} frames of 1080p to MP4 at speed 1", f"PyAV's {BARE['.mp4'][1]}"
    # 1.2 to 1.4 where it was measured; what the film takes more is painting.
    yield measured(what, "s", told["films"], told["bares"], f"{over}, frames ready", most=1.6)
    peak, bare = _child("peak", ".mp4", 150)["peak"], _child("bare", ".mp4", 30)["peak"]
    name = "1080p to MP4, peak memory"
    yield Measurement(name, peak, "MB", peak, bare, "PyAV's libx264 in a process", 450)
    short, long = (_child("small", ".mp4", count)["peak"] for count in (LONG // 10, LONG))
    name = f"{LONG} frames of 360p, more peak memory by"
    over = f"the peak of {LONG // 10} frames"
    yield Measurement(name, 100 * (long / short - 1), "%", 100 * long / short, 100, over, 10)
    for ending in READY:
        told = _child("cancel", ending, 300)
        name = f"cancelling {ending} of 3840x2160, longest"
        over = f"a frame in PyAV's {BARE[ending][1]}"
        yield measured(name, "ms", told["cancels"], told["bares"], over, figure=max, target=200)


def _child(what: str, ending: str, frames: int) -> dict[str, Any]:
    """Measure in another process."""
    asked = [sys.executable, "-m", "tests.bench.films", what, ending, str(frames)]
    done = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


# --- in the child ----------------------------------------------------------------------------


def prepared_film(
    target: Path, frames: int, size: tuple[int, int] = HD, visits: int | None = None
) -> Any:
    """Return the job of a film of a demo, op by op; of its first visits, if that is given."""
    from ui.export.job import prepare
    from ui.export.options import ExportOptions
    from ui.widgets.application import application

    application()
    trace = simulate(DEMO)
    stop = visits or (len(trace) // 2 if frames <= 300 else None)
    options = ExportOptions(
        str(target), size=size, fps=30, length=frames / 30, by=Granularity.OP, visits=(0, stop)
    )
    return prepare(trace, options, str(DEMO), "")


def ready_frames(source: Any, ending: str, frames: int) -> list[Any]:
    """Return frames of a source in the pixels that the bare encoder gets."""
    import av

    from ui.export.frames import new_image, paint_frame
    from ui.export.writers.pixels import pixels_of

    image, out = new_image(source), []
    for k in range(frames):
        pixels = pixels_of(paint_frame(source, k, image)).copy()
        pixels[..., 3] = 255
        if BARE[ending][2] == "bgr8":  # the nearest of fixed colours: dithered would be larger
            pixels >>= np.array([6, 5, 5, 8], dtype=np.uint8)
            one = pixels[..., 0] << 6 | pixels[..., 1] << 3 | pixels[..., 2]
            out.append(av.VideoFrame.from_ndarray(one.astype(np.uint8), format="bgr8"))
            continue
        frame = av.VideoFrame.from_ndarray(pixels, format="bgra")
        out.append(frame.reformat(format=BARE[ending][2]))
    return out


def bare_seconds(target: Path, ending: str, ready: list[Any]) -> float:
    """Return how long PyAV alone takes to write frames."""
    import av

    container, codec, pixels, options = BARE[ending]
    if ending == ".mp4":
        pixels = "yuv420p"
    started = time.perf_counter()
    with av.open(target, "w", format=container) as box:
        stream = box.add_stream(codec, rate=30, options=options)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = ready[0].width, ready[0].height, pixels
        stream.thread_count = 0
        for n, frame in enumerate(ready):
            frame.pts, frame.time_base = n, Fraction(1, 30)
            box.mux(stream.encode(frame))
        box.mux(stream.encode(None))
    return time.perf_counter() - started


def _beside(target: Path, ending: str, frames: int, visits: int | None = None) -> dict[str, Any]:
    """Compare a film with the bare encoder, which gets its frames."""
    export = prepared_film(target, frames, visits=visits)
    held = ready_frames(export.source, ending, min(frames, HELD))
    ready = [*held, *held[::-1]] * (frames // len(held) + 1)
    del ready[frames:]
    bare = target.with_name(f"bare{ending}")
    films, bares = [], []
    for _ in turns(3, 8, least=2):
        started = time.perf_counter()
        export.make(lambda share: None)
        films.append(time.perf_counter() - started)
        bares.append(bare_seconds(bare, ending, ready))
    sizes = {name: path.stat().st_size / 1e6
             for name, path in (("megabytes", target), ("bare megabytes", bare))}  # fmt: skip
    return {"films": films, "bares": bares, **sizes}


def _peak(target: Path, frames: int, size: tuple[int, int]) -> dict[str, Any]:
    prepared_film(target, frames, size).make(lambda share: None)
    return {"peak": _peak_megabytes()}


def _bare_peak(target: Path, ending: str, frames: int) -> dict[str, Any]:
    import av

    frame = av.VideoFrame.from_ndarray(np.zeros((HD[1], HD[0], 4), np.uint8), format="bgra")
    bare_seconds(target, ending, [frame] * frames)
    return {"peak": _peak_megabytes()}


def _peak_megabytes() -> float:
    import resource  # Windows has none

    if sys.platform == "linux":  # where getrusage includes the process before exec
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes on macOS


def _cancel(target: Path, ending: str, frames: int) -> dict[str, Any]:
    """Measure from asking for an end until nothing runs and no file is left, three times.

    The floor is the bare encoder's time for one frame, because nothing can stop the encoding of a
    frame.
    """
    export = prepared_film(target, frames, HUGE)
    ready = ready_frames(export.source, ending, 1)
    bare = target.parent.with_name(f"{target.parent.name}-bare{ending}")
    cancels, bares = [], []
    for _ in range(3):
        cancels.append(_cancelled(export))
        assert not list(target.parent.iterdir())
        bares.append(bare_seconds(bare, ending, ready))
        bare.unlink()
    return {"cancels": cancels, "bares": bares}


def _cancelled(export: Any) -> float:
    from ui.session.tasks import Cancelled

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
    return time.perf_counter() - when[-1]


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what")
    parser.add_argument("ending")
    parser.add_argument("frames", type=int)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"a{options.ending}"
        told = {
            "beside": lambda: _beside(target, options.ending, options.frames),
            "paced": lambda: _beside(target, options.ending, options.frames, visits=2),
            "peak": lambda: _peak(target, options.frames, HD),
            "small": lambda: _peak(target, options.frames, SMALL),
            "bare": lambda: _bare_peak(target, options.ending, options.frames),
            "cancel": lambda: _cancel(target, options.ending, options.frames),
        }[options.what]()
    print(json.dumps(told))


if __name__ == "__main__":
    _main()
