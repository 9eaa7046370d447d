"""Maps from numbers to colours: which way they run, and what can be read on them."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from tests.ui.look.test_theme import READABLE, SEEN, contrast, luminance
from ui.look.heat import (
    HIDDEN,
    NOTHING,
    ResultCache,
    colour_map,
    finite_range,
    hatching,
    heat_image,
    inks,
    prefers_white,
    signed_limit,
)
from ui.look.theme import DARK, THEMES

EVERY_THEME = pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))


@EVERY_THEME
@pytest.mark.parametrize("dim", [False, True])
@pytest.mark.parametrize("name", ["P", "S"])
def test_more_is_darker_on_light_themes_and_brighter_on_dark_ones(theme, name, dim):
    shades = [luminance(QColor(int(word))) for word in colour_map(theme, name, dim=dim)[:256]]
    steps = np.diff(shades) if theme.dark else -np.diff(shades)
    # Whole channels round a step of the dim map to nothing, or a trifle back.
    assert steps.min() > -2e-3
    assert abs(shades[-1] - shades[0]) > 0.07


@pytest.mark.sweep(keep=6)
@EVERY_THEME
@pytest.mark.parametrize("faded", [False, True])
@pytest.mark.parametrize("name", ["P", "S", "m", "l"])
def test_numbers_can_be_read_on_every_shade(theme, name, faded):
    words = colour_map(theme, name, dim=faded)
    both = inks(words, faded=faded)
    for word, white in zip(words[:NOTHING], prefers_white(words[:NOTHING]), strict=True):
        assert contrast(both[int(white)], QColor(int(word))) >= READABLE


@EVERY_THEME
@pytest.mark.parametrize("scale", [1.0, 1.25, 2.0])
def test_hatching_is_seen_from_the_last_row(qapp, theme, scale):
    image = QImage(60, 60, QImage.Format.Format_RGB32)
    with QPainter(image) as painter:
        painter.fillRect(QRectF(0, 0, 60, 60), hatching(theme.empty, theme.hatch, scale))
    seen = {image.pixel(x, y) for x in range(60) for y in range(60)}
    assert max(contrast(QColor(pixel), QColor(theme.empty)) for pixel in seen) >= SEEN
    assert QColor(theme.empty).rgb() in seen


def test_a_colour_scale_is_that_of_finite_numbers():
    """A row that sees no key has m = -inf; the others keep their colours."""
    few = np.array([[1.0, -2.0, 3.0, -np.inf], [np.nan, 0.5, np.inf, -np.inf]], dtype=np.float32)
    assert signed_limit(few) == signed_limit(np.array([1, -2, 3, 0.5], dtype=np.float32))
    assert signed_limit(np.full((2, 2), -np.inf, dtype=np.float32)) == 1.0
    assert 2 < signed_limit(few) <= 3


def test_what_is_kept_takes_a_bounded_number_of_bytes():
    kept = ResultCache(most=100, most_bytes=10_000)
    arrays = [np.zeros(4) for _ in range(50)]
    for array in arrays:
        kept.get(array, "image", lambda: np.zeros(250, np.float32))
    assert 8_000 < kept.bytes <= 11_000  # without one of the largest
    kept.get(arrays[0], "large", lambda: np.zeros(5_000, np.float32))
    assert 28_000 < kept.bytes <= 30_000
    kept.get(arrays[1], "large", lambda: np.zeros(5_000, np.float32))
    assert kept.bytes == 20_000  # two of them are too many
    del arrays[:]
    kept.get(np.zeros(4), "image", lambda: np.zeros(250, np.float32))
    assert kept.bytes == 1_000  # what was kept of arrays that are gone, is gone


def test_what_is_larger_than_the_bound_is_kept_beside_what_is_small():
    kept, made = ResultCache(most=100, most_bytes=10_000), []

    def make(size: int) -> np.ndarray:
        made.append(size)
        return np.zeros(size, np.uint8)

    tile = np.zeros(4)
    for _ in range(3):  # frames, each of which needs all of them
        for size in (50_000, 64, 9_000, 100):
            kept.get(tile, size, lambda size=size: make(size))
    assert made == [50_000, 64, 9_000, 100]


def test_a_pixel_is_the_shade_of_its_number_in_every_part_of_an_image():
    words = colour_map(DARK, "S")
    values = np.random.default_rng(0).uniform(-4, 4, (90, 1000)).astype(np.float32)
    values[::7, ::3], values[::5, ::11] = -np.inf, np.nan
    image = heat_image(values, -3, 3, words)
    for row, column in ((0, 1), (32, 999), (33, 1), (7, 3), (5, 11), (89, 998), (89, 0)):
        value = values[row, column]
        place = (
            int(min(max((value + 3) * np.float32(255 / 6), 0), 255)) if value == value else NOTHING
        )
        if value == -np.inf:
            place = HIDDEN
        assert image.pixel(column, row) == int(words[place]), (row, column)
    real = values[np.isfinite(values)]
    assert finite_range(values) == (real.min(), real.max())
    assert finite_range(values[:1, :1] * np.nan) == (0, 1)
    assert heat_image(values[:0], 0, 1, words).isNull()
