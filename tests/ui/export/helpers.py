"""Exports for tests: small, and read back by readers that share no code with the writers."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import av
import numpy as np
from PIL import Image
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from simulator.base.assets import SCENARIOS
from simulator.run.trace import Trace, simulate
from ui.export.job import Export, prepare
from ui.export.options import ExportOptions
from ui.widgets.application import application
from ui.window.main_window import MainWindow

ROOT = Path(__file__).resolve().parent.parent.parent.parent
DEMO = SCENARIOS / "causal.toml"
SMALL = {"size": (480, 320), "fps": 10, "length": 1.2}
"""Twelve frames in which everything changes."""
MOST = 36
"""Levels, 0 to 255, by which readers that smooth edges otherwise may differ in a block's mean."""


def options(target: Path | str, **changes) -> ExportOptions:
    return ExportOptions(str(target), **{**SMALL, **changes})


def still(target: Path | str, **changes) -> ExportOptions:
    return ExportOptions(str(target), **{"size": (480, 320), **changes})


@cache
def demo() -> Trace:
    return simulate(DEMO)


def prepared(wanted: ExportOptions, trace: Trace | None = None) -> Export:
    application()
    return prepare(trace or demo(), wanted, str(DEMO), "0.1.0", MainWindow)


def make(wanted: ExportOptions, trace: Trace | None = None) -> Export:
    export = prepared(wanted, trace)
    export.make(lambda share: None)
    return export


def command(*arguments: str, **changes) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ui", "export", str(DEMO), *arguments],
        capture_output=True, text=True, cwd=ROOT, check=False, **changes,
    )  # fmt: skip


def picture(path: Path) -> np.ndarray:
    """Return (height, width, 3) of a picture."""
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def frames_of(path: Path) -> list[np.ndarray]:
    """Return the frames of a GIF, WebP or APNG, each (height, width, 4)."""
    with Image.open(path) as image:
        out = []
        for k in range(image.n_frames):
            image.seek(k)
            out.append(np.asarray(image.convert("RGBA")).astype(np.int16))
        return out


def decoded(path: Path) -> list[np.ndarray]:
    """Return the frames of an MP4 or WebM as RGB."""
    with av.open(path) as box:
        return [
            frame.reformat(
                format="rgb24", src_colorspace="ITU709", dst_colorspace="ITU709",
                src_color_range="MPEG", dst_color_range="JPEG",
            ).to_ndarray().astype(np.int16)
            for frame in box.decode(video=0)
        ]  # fmt: skip


def rendered_svg(path: Path, size: tuple[int, int] = (480, 320)) -> QImage:
    """Return an SVG in pixels, as Qt reads it."""
    renderer = QSvgRenderer(QByteArray(path.read_bytes()))
    assert renderer.isValid()
    assert (renderer.defaultSize().width(), renderer.defaultSize().height()) == size
    image = QImage(*size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(0)
    painter = QPainter(image)
    renderer.render(painter)
    painter.end()
    return image


def off(ours: np.ndarray, theirs: np.ndarray, side: int) -> np.ndarray:
    """Return by how many levels blocks of side x side pixels differ, in the worst channel."""
    assert ours.shape == theirs.shape
    high, wide = (n // side for n in ours.shape[:2])
    apart = ours[: high * side, : wide * side] - theirs[: high * side, : wide * side].astype(float)
    return np.abs(apart.reshape(high, side, wide, side, 3).mean(axis=(1, 3))).max(axis=2)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())
