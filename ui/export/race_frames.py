"""The race of the whole runs as a still or a film: simulated time, scaled to the film's length."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property

from PySide6.QtCore import QRectF, QSizeF
from PySide6.QtGui import QColor, QPainter

from simulator.program.tile_program import TileProgram
from simulator.study.compare import comparison_of
from simulator.study.race import (
    FILM_SECONDS,
    RUN_SECONDS,
    START_SECONDS,
    Race,
    race_of,
    seconds_after,
)
from ui.board.fault_marks import paint_fault_label
from ui.export.timeline import frames_in
from ui.kit.boxes import scene
from ui.look.draw import card
from ui.look.names import fitting
from ui.look.theme import HALL, Style, Theme
from ui.look.units import plural
from ui.panels.compare.study import COMPARE, CompareFound, CompareState
from ui.panels.study_panel import whole

_TEXT = 1.64  # text scale in a picture of `HALL`'s size: the smallest words are 2.5 % of its height


@dataclass(frozen=True, eq=False)
class RaceTimes:
    """The times of a race's film; a still shows the finish."""

    program: TileProgram  # the program of the run that is shown
    frames: int  # number of frames; a single frame is a still
    fps: int  # frames a second

    @cached_property
    def race(self) -> Race:
        """The race; computing it takes seconds, so it is made with the first frame."""
        return race_of(self.program)

    @property
    def watched(self) -> float:
        """Seconds for which the last run is seen to run."""
        return self.frames / self.fps * RUN_SECONDS / FILM_SECONDS

    def seconds(self, k: int) -> float:
        """Return the simulated time that frame `k` shows: the first the start, the last the end."""
        passed = FILM_SECONDS * (k / (self.frames - 1) if self.frames > 1 else 1.0)
        return seconds_after(self.race, passed - START_SECONDS)

    @property
    def words(self) -> str:
        """Length of the film, for users."""
        gpu = self.program.workload.gpu.name
        if self.frames == 1:
            return f"the finish of the race on {gpu}"
        long = self.frames / self.fps
        return f"{plural(self.frames, 'frame')}, {long:.1f} s at {self.fps} fps, on {gpu}"


def race_times(
    program: TileProgram, *, film: bool, fps: int, length: float | None = None
) -> RaceTimes:
    """Return the times of a still or a film, of `length` or `FILM_SECONDS` seconds."""
    frames = (
        frames_in(length or FILM_SECONDS, fps, "--length", length or FILM_SECONDS) if film else 1
    )
    return RaceTimes(program, frames, fps)


class RaceFrames:
    """The frames of a race."""

    in_gui = False

    def __init__(
        self,
        program: TileProgram,
        times: RaceTimes,
        theme: Theme,
        size: tuple[int, int],
        *,
        transparent: bool = False,
    ) -> None:
        self._program, self._times, self._theme = program, times, theme
        self.size = size
        self.transparent = transparent

    def __len__(self) -> int:
        return self._times.frames

    def key(self, k: int) -> Hashable:
        """Return the simulated time."""
        return self._times.seconds(k)

    def make_ready(self, k: int, look: Callable[[], None]) -> None:
        """Do nothing, because a frame takes little time."""

    def close(self) -> None:
        """Do nothing: nothing is kept."""

    def paint(self, painter: QPainter, k: int) -> None:
        """Draw frame `k`."""
        times, rect = self._times, QRectF(0, 0, *self.size)
        style = race_style(self._theme, rect.size())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        gap = style.px(6)
        box = rect.adjusted(gap, gap, -gap, -gap)
        if not self.transparent:
            painter.fillRect(rect, QColor(self._theme.window))
        card(painter, box, self._theme.panel, self._theme.border, style.px(4))
        inner = box.adjusted(gap, gap, -gap, -gap)
        strip = QRectF(inner.x(), inner.y(), inner.width(), style.px(18))
        if paint_fault_label(painter, self._program.workload.scenario, style, strip):
            inner.setTop(strip.bottom() + gap / 2)
        found = CompareFound(comparison_of(self._program), times.race)
        shown = CompareState(
            found, chosen="race", started=1, share=times.seconds(k) / times.race.seconds,
            pace=times.watched, where="of the film" if times.frames > 1 else "here",
        )  # fmt: skip
        scene(whole(COMPARE, shown), fitting(style, inner, COMPARE.room), inner).paint(painter)


def race_style(theme: Theme, size: QSizeF) -> Style:
    """Return the style of a picture of that size, for a lecture hall."""
    return Style(theme, _TEXT * min(size.width() / HALL[0], size.height() / HALL[1]))
