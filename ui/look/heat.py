"""Numbers as coloured pixels: maps from values to colours, and images that are kept."""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPen

from simulator.base.dtypes import F32
from ui.look.draw import mixed
from ui.look.theme import Theme

U32 = NDArray[np.uint32]
T = TypeVar("T")

HIDDEN, NOTHING = 256, 257
"""Places in a map after its 256 shades: for pairs that the mask hides, and for what does not
exist."""
_AT_ONCE = 2**15
"""Numbers that become pixels together: intermediate results stay in the processor's cache."""
DIMMED = 0.62
"""Share of the theme's veil over tiles that were used and are no longer kept."""

_VIRIDIS = (
    "#440154", "#482475", "#414487", "#355F8D", "#2A788E", "#21918C",
    "#22A884", "#44BF70", "#7AD151", "#BDDF26", "#FDE725",
)  # fmt: skip
_PALE = (0.55, 0.4, 0.2)
"""Shares of white at its bright end on a light background, where pure yellow would attract the
eye."""
# There are few themes and they live as long as the program, so their names are used as keys.
_MAPS: dict[tuple[str, str, bool], U32] = {}


def colour_map(theme: Theme, name: str, *, dim: bool = False) -> U32:
    """Return a map as 258 premultiplied ARGB words: 256 shades, `HIDDEN`, `NOTHING`.

    theme: more is darker in light themes and brighter in dark ones.
    name: ``P`` viridis, from its pale end in light themes; ``S`` violet; a tensor or statistic:
        from the background (most negative) to its own colour (most positive), so that the sign is
        visible.
    dim: whether the map is for tiles that were used and are no longer kept.
    """
    key = (theme.name, name, dim)
    if key not in _MAPS:
        shades = _between(_anchors(theme, name))
        if dim:
            veil = _rgb(theme.used)
            shades = shades + (veil - shades) * DIMMED
        words = np.zeros(258, dtype=np.uint32)
        words[:256] = _words(shades)
        words[HIDDEN] = QColor(theme.empty).rgba()
        _MAPS[key] = words
    return _MAPS[key]


def _anchors(theme: Theme, name: str) -> list[QColor]:
    if name == "P" and theme.dark:
        return [QColor(colour) for colour in _VIRIDIS]
    if name == "P":
        pale = (*_PALE, *[0.0] * (len(_VIRIDIS) - len(_PALE)))
        return [mixed(c, "#FFFFFF", s) for c, s in zip(reversed(_VIRIDIS), pale, strict=True)]
    ground, colour = theme.empty, theme.tensor(name)
    far = QColor("#FFFFFF" if theme.dark else "#000000")
    if name == "S":
        return [mixed(ground, colour, 0.14), mixed(colour, ground, 0.25), mixed(colour, far, 0.55)]
    return [mixed(ground, colour, 0.08), mixed(ground, colour, 0.34), colour]


def _between(colours: list[QColor]) -> NDArray[np.float64]:
    """Return 256 shades, (256, 3), through evenly spread colours."""
    rows = np.array([_rgb(colour) for colour in colours])
    at = np.linspace(0, len(rows) - 1, 256)
    return np.stack([np.interp(at, np.arange(len(rows)), rows[:, n]) for n in range(3)], axis=1)


def _rgb(colour: QColor | str) -> NDArray[np.float64]:
    shade = QColor(colour)
    return np.array([shade.red(), shade.green(), shade.blue()], dtype=np.float64)


def _words(shades: NDArray[np.float64]) -> U32:
    r, g, b = np.rint(shades).astype(np.uint32).T
    return np.asarray(np.uint32(0xFF000000) | r << 16 | g << 8 | b, dtype=np.uint32)


def indices(values: F32, low: float, high: float) -> NDArray[np.uint16]:
    """Return the places of `values` in a map that spans ``low .. high``; same shape."""
    span = high - low if high > low else 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        shade = np.clip((values - np.float32(low)) * np.float32(255 / span), 0, 255)
        out: NDArray[np.uint16] = shade.astype(np.uint16)
    np.copyto(out, HIDDEN, where=values == -np.inf)
    np.copyto(out, NOTHING, where=np.isnan(values))
    return out


def diverging(theme: Theme) -> U32:
    """Return a map from red (most negative) over the background to blue (most positive)."""
    low, high, ground = QColor(theme.bad), theme.tensor("Q"), QColor(theme.empty)
    if not theme.dark:
        ground = QColor("#FFFFFF")
    shades = [mixed(ground, low, (127 - n) / 127) for n in range(128)]
    shades += [mixed(ground, high, n / 127) for n in range(128)]
    words = [shade.rgba() for shade in shades]
    return np.array([*words, 0, 0], dtype=np.uint32)


def rooted(values: F32) -> F32:
    """Return the places of weights in a map from 0 to 1: roots keep small weights apart."""
    out = np.sign(values) * np.sqrt(np.abs(values))
    return np.asarray(np.where(np.isneginf(values), values, out), dtype=np.float32)


def heat_image(values: F32, low: float, high: float, words: U32) -> QImage:
    """Return an image with one pixel for each value of a (rows, columns) array.

    The image is made a few rows at a time: intermediate results for a whole tile of millions of
    numbers would be four times as large as the image, and would take twice the time.
    """
    rows, columns = values.shape
    if not values.size:
        return QImage()
    image = QImage(columns, rows, QImage.Format.Format_ARGB32_Premultiplied)
    pixels = np.frombuffer(image.bits(), np.uint32).reshape(rows, columns)
    step = max(1, _AT_ONCE // max(columns, 1))
    for top in range(0, rows, step):
        part = slice(top, top + step)
        np.take(words, indices(values[part], low, high), out=pixels[part], mode="clip")
    return image


def word_image(words: U32) -> QImage:
    """Return an image of premultiplied ARGB words, (rows, columns)."""
    pixels = np.ascontiguousarray(words)
    rows, columns = pixels.shape
    form = QImage.Format.Format_ARGB32_Premultiplied
    # A copy, because Qt would not keep the array alive for the image.
    return QImage(pixels.data, columns, rows, 4 * columns, form).copy()


def finite_range(values: F32) -> tuple[float, float]:
    """Return the least and largest finite value; (0, 1) if there is none."""
    low, high = np.inf, -np.inf
    # In parts, because a copy of all finite values of a large tile would be as large as the tile.
    for part in np.array_split(values, max(1, min(len(values), values.size // _AT_ONCE))):
        real = part[np.isfinite(part)]
        if real.size:
            low, high = min(low, float(real.min())), max(high, float(real.max()))
    return (low, high) if low <= high else (0.0, 1.0)


def signed_limit(values: F32) -> float:
    """Return a magnitude that one finite value in 50 exceeds: few values must not hide the rest."""
    sample = np.abs(values.ravel()[:: max(values.size // 100_000, 1)])
    sample = sample[np.isfinite(sample)]
    if not sample.size:
        return 1.0
    # np.quantile gives the same, but imports masked arrays first: a tenth of the start.
    place = 0.98 * (sample.size - 1)
    low = int(place)
    high = min(low + 1, sample.size - 1)
    ordered = np.partition(sample, (low, high))
    return float(ordered[low] + (ordered[high] - ordered[low]) * (place - low)) or 1.0


def pooled(values: F32, rows: int) -> F32:
    """Return means over runs of rows: at most about `rows` means."""
    run = values.shape[0] // rows
    if run <= 1:
        return values
    whole = values.shape[0] // run * run
    means = [values[:whole].reshape(-1, run, values.shape[1]).mean(axis=1)]
    if whole < values.shape[0]:
        means.append(values[whole:].mean(axis=0, keepdims=True))
    return np.concatenate(means)


class ResultCache:
    """A few results computed from arrays or from other objects, kept as long as these live.

    An array is identified by its memory, because every snapshot makes a new view of the same
    inputs. So only arrays that nothing writes to, and objects that do not change, may be used here.

    most, most_bytes: most results kept, and most bytes of all but the largest: the picture of a
        large tile is larger than all else, and later results would drive it out in every frame.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._items: OrderedDict[Any, tuple[weakref.ref[Any], Any, int]] = OrderedDict()
        self._gone: deque[object] = deque()
        """Places of owners that died since the last call: they may die anywhere, even in a call."""
        self._lock = Lock()
        self.bytes = 0
        """About how many bytes the kept results take."""

    def get(self, array: NDArray[Any], key: object, make: Callable[[], T]) -> T:
        """Return what `make` gave for this array and key, now or earlier."""
        owner: Any = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        address = array.__array_interface__["data"][0]
        return self._found(owner, (address, array.shape, array.strides, key), make)

    def of(self, owner: object, key: object, make: Callable[[], T]) -> T:
        """Return what `make` gave for this object and key, now or earlier."""
        return self._found(owner, (id(owner), key), make)

    def _found(self, owner: Any, place: object, make: Callable[[], T]) -> T:
        with self._lock:
            self._forget()
            found = self._items.get(place)
            if found is not None and found[0]() is owner:
                self._items.move_to_end(place)
                value: T = found[1]
                return value
        value = make()
        with self._lock:
            self._forget()
            if place in self._items:
                self.bytes -= self._items.pop(place)[2]
            size = _bytes_of(value)
            self._items[place] = (weakref.ref(owner, partial(self._note, place)), value, size)
            self.bytes += size
            largest = max(each for *_, each in self._items.values())
            while len(self._items) > self._most or self.bytes - largest > self._most_bytes:
                gone = self._items.popitem(last=False)[1][2]
                self.bytes -= gone
                if gone == largest:
                    largest = max(each for *_, each in self._items.values())
        return value

    def _note(self, place: object, dead: object) -> None:
        self._gone.append(place)

    def _forget(self) -> None:
        """Forget the results of dead owners; a new result may be in the same place by now."""
        while self._gone:
            place = self._gone.popleft()
            if place in self._items and self._items[place][0]() is None:
                self.bytes -= self._items.pop(place)[2]


def _bytes_of(value: object) -> int:
    """Return about how much memory a kept result takes."""
    if isinstance(value, Sheet):
        return 2 * value.image.sizeInBytes()  # and its copies in shown sizes
    if isinstance(value, QImage):
        return value.sizeInBytes()
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, list | tuple) and value:  # lines of texts all take about the same
        return 64 + len(value) * _bytes_of(value[0])
    return 64


KEPT = ResultCache(64, 80 * 2**20)
"""Images and ranges of inputs and of a head's S and P, shared by all boards; also of a tile of
4096 x 4096 numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """An image of a whole matrix; boxes show parts of it."""

    image: QImage
    _small: dict[tuple[int, int], QImage] = field(default_factory=dict, repr=False)
    """Copies in the latest sizes on show; they are forgotten with the sheet."""

    def draw(self, painter: QPainter, box: QRectF, source: QRectF) -> None:
        """Draw the part `source`, in shares of the matrix (0 to 1), over `box`."""
        width, height = self.image.width(), self.image.height()
        # Nearest neighbours would drop pixels if several of them share one on the screen.
        ratio = painter.device().devicePixelRatioF()
        full_w, full_h = (
            box.width() * ratio / source.width(), box.height() * ratio / source.height()
        )  # fmt: skip
        image = self.image
        if width > 1.3 * full_w or height > 1.3 * full_h:
            image = self._shrunk(min(width, round(full_w)), min(height, round(full_h)))
            width, height = image.width(), image.height()
        part = QRectF(
            source.x() * width, source.y() * height, source.width() * width,
            source.height() * height,
        )  # fmt: skip
        painter.drawImage(box, image, part)

    def _shrunk(self, width: int, height: int) -> QImage:
        size = max(width, 1), max(height, 1)
        found = self._small.get(size)
        if found is None:
            found = self.image.scaled(
                *size, Qt.AspectRatioMode.IgnoreAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )  # fmt: skip
            if len(self._small) >= _SIZES:
                self._small.clear()
            self._small[size] = found
        return found


_SIZES = 3
"""Most smaller copies of a sheet: for the window, for a corner, for a film."""


@lru_cache(maxsize=16)
def hatching(ground: str, line: str, scale: float) -> QBrush:
    """Return slanted lines on a background, for tiles that are skipped."""
    step = max(round(9 * scale), 5)
    image = QImage(step, step, QImage.Format.Format_RGB32)
    image.fill(QColor(ground))
    with QPainter(image) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        # A thinner line would be smoothed over its neighbours, and no pixel would have its colour.
        painter.setPen(QPen(QColor(line), 1.4 * max(scale, 1.0)))
        for shift in (-step, 0, step):  # the neighbours' lines, so that the pattern has no seams
            painter.drawLine(shift, step, shift + step, 0)
    return QBrush(image)


READABLE = 4.5
"""Least contrast of a number with its cell, as the guidelines for accessible text ask for."""
_FADED = (0.45, 0.3, 0.15, 0.0)
"""Shares of grey in the digits of old numbers: the first that can be read is used."""


def inks(words: U32, *, faded: bool = False) -> tuple[QColor, QColor]:
    """Return the dark and the light ink for numbers on the colours of a map.

    faded: whether the digits are paler, as far as they can still be read on every shade.
    """
    return KEPT.get(words, ("inks", faded), lambda: _inks(words, faded))


def _inks(words: U32, faded: bool) -> tuple[QColor, QColor]:
    ground, white = luminance(words[:NOTHING]), prefers_white(words[:NOTHING])

    def ink(colour: str, under: NDArray[np.float64]) -> QColor:
        shades = [mixed(colour, "#808080", share) for share in _FADED if faded or not share]
        return next((shade for shade in shades if _least_contrast(shade, under) >= READABLE),
                    QColor(colour))  # fmt: skip

    return ink("#000000", ground[~white]), ink("#FFFFFF", ground[white])


def _least_contrast(ink: QColor, under: NDArray[np.float64]) -> float:
    own = float(luminance(np.array([ink.rgba()], dtype=np.uint32))[0])
    pairs = (np.maximum(under, own) + 0.05) / (np.minimum(under, own) + 0.05)
    return float(pairs.min(initial=np.inf))


def prefers_white(words: U32) -> NDArray[np.bool_]:
    """Return where white is easier to read than black on colours."""
    return luminance(words) < 0.18


def luminance(words: U32) -> NDArray[np.float64]:
    """Return how bright colours look, 0 (black) to 1 (white), as sRGB defines it."""
    parts = np.stack([words >> 16 & 255, words >> 8 & 255, words & 255]) / 255
    light = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.tensordot([0.2126, 0.7152, 0.0722], light, 1))
