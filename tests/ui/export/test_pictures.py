"""Pieces of a picture in what is exported: as many colours in SVG and PDF as on the screen."""

import re
from pathlib import Path

import numpy as np
import pypdfium2
import pytest

from simulator.engines.numpy_engine import numpy_engine
from simulator.run.trace import Trace, trace_of
from tests.helpers.painted import channels
from tests.helpers.pictures import colours, picture_file, texts_of
from tests.helpers.written_files import read
from tests.ui.export.helpers import make, picture, rendered_svg, still

SIZE = (1280, 720)
KNOWN = colours(49)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    path = picture_file(tmp_path / "a.safetensors", 7, 32)
    return trace_of(*read(path, tiling={"rows": 16, "cols": 16}), numpy_engine)


def areas(pixels: np.ndarray) -> np.ndarray:
    """Return how many pixels have each colour of the picture."""
    words, counts = np.unique(pixels.astype(np.int32) @ (1 << 16, 1 << 8, 1), return_counts=True)
    apart = np.abs((words[:, None, None] >> (16, 8, 0) & 255) - KNOWN.astype(np.int32)).max(axis=-1)
    return counts @ (apart <= 10)


def test_a_drawing_and_a_page_have_the_pieces_of_the_screen(trace: Trace, tmp_path: Path) -> None:
    drawn = {}
    for ending in ("png", "svg", "pdf"):
        target = tmp_path / f"a.{ending}"
        make(still(target, size=SIZE, visits=(0, 1), theme="light"), trace)
    drawn["png"] = picture(tmp_path / "a.png")
    drawn["svg"] = channels(rendered_svg(tmp_path / "a.svg", SIZE))
    document = pypdfium2.PdfDocument((tmp_path / "a.pdf").read_bytes())
    page = document[0].render(scale=SIZE[0] / document[0].get_width()).to_numpy()
    drawn["pdf"] = page[..., 2::-1].copy()
    document.close()
    screen = areas(drawn["png"])
    assert screen.min() > 80  # the picture has about 12 x 12 of each, a piece as many
    for ending in ("svg", "pdf"):
        assert areas(drawn[ending]) == pytest.approx(screen, rel=0.35), ending


def test_a_label_has_all_of_its_text_or_none(trace: Trace, tmp_path: Path) -> None:
    for size in ((640, 400), SIZE, (1920, 1080)):
        make(still(tmp_path / "a.svg", size=size, visits=(0, 1), scene="board"), trace)
        written = re.findall(r'aria-label="([^"]*)"', (tmp_path / "a.svg").read_text("utf-8"))
        labels = [text for text in written if text.startswith(("pat", "CLS"))]
        assert labels
        assert set(labels) <= set(texts_of(7))
        assert any("in the picture" in text for text in written)
