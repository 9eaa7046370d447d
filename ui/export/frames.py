"""Sources of frames: they give an export one picture at a time.

A source knows nothing about files, and the encoders know nothing about runs. Anything that can
paint its frame number `k` (a run, a layout of the window, a lesson) can be written in every format.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Protocol

from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPainter

from simulator.program.op import Gesture
from simulator.program.playback import Cursor, moved, played
from simulator.run.motion import Motion
from simulator.run.row_report import RowReport, row_report
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from ui.export.scenes import SceneMoment, scene_moment
from ui.export.timeline import FrameMoment, Still, Timeline
from ui.look.theme import Theme


class FrameSource(Protocol):
    """Pictures with numbers from 0; picture `k` is always the same."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""

    @property
    def transparent(self) -> bool:
        """Whether the pictures have no background."""

    @property
    def in_gui(self) -> bool:
        """Whether widgets draw the pictures: then these are painted in the widgets' thread."""

    def __len__(self) -> int:
        """Return the number of pictures."""

    def key(self, k: int) -> Hashable:
        """Return a key of picture `k`: equal keys mean equal pictures."""

    def make_ready(self, k: int, look: Callable[[], None]) -> None:
        """Do the slow work for picture `k`, and often call `look`, which may raise to end it."""

    def paint(self, painter: QPainter, k: int) -> None:
        """Draw picture `k` from the painter's corner; called in one thread at a time."""

    def close(self) -> None:
        """Release all memory and threads; the source can be used again."""


def shown_row(rows: range, row: int | None) -> int:
    """Return the row that is explained: by default the middle row of the row block."""
    return rows.start + len(rows) // 2 if row is None else row


class RunStates:
    """The states of a run that pictures show; the last two are kept."""

    def __init__(self, trace: Trace, row: int | None) -> None:
        self._trace, self._row = trace, row
        self._kept: dict[Cursor, tuple[Snapshot, RowReport]] = {}

    def __call__(self, cursor: Cursor) -> tuple[Snapshot, RowReport]:
        if cursor not in self._kept:
            while len(self._kept) > 1:  # the state before is the beginning of the next op
                self._kept.pop(next(iter(self._kept)))
            snapshot = self._trace.snapshot(cursor.visit, cursor.op)
            report = row_report(snapshot, shown_row(snapshot.visit.rows, self._row))
            self._kept[cursor] = snapshot, report
        return self._kept[cursor]

    def clear(self) -> None:
        """Forget the states."""
        self._kept.clear()


class RunFrames:
    """The frames of a run; nobody else may use its trace in the meantime."""

    in_gui = False

    def __init__(
        self,
        trace: Trace,
        moments: Timeline | Still,
        scene: str,
        theme: Theme,
        size: tuple[int, int],
        *,
        transparent: bool = False,
        row: int | None = None,
    ) -> None:
        self._trace = trace
        self._moments = moments
        self._scene = scene
        self._theme = theme
        self._state = RunStates(trace, row)
        self._still: tuple[Cursor, QImage] | None = None
        self._motion: Motion | None = None
        self.size = size
        self.transparent = transparent

    def __len__(self) -> int:
        return self._moments.frames

    def _moment(self, k: int) -> FrameMoment:
        """Return the moment of a frame; its phase is the share of the motion that has been done."""
        moment = self._moments.moment(k)
        op = self._trace.program.ops(moment.cursor.visit)[moment.cursor.op]
        rescales = op.gesture is Gesture.SHRINK and moment.before is not None
        share = played(moment.phase, moment.seconds) if rescales else moment.phase
        return replace(moment, phase=moved(share))

    def key(self, k: int) -> Hashable:
        """Return the cursor, and how much of its op has been done."""
        moment = self._moment(k)
        return moment.cursor, moment.phase if moment.before is not None else 1.0

    def make_ready(self, k: int, look: Callable[[], None]) -> None:
        """Do nothing, because a frame takes little time."""

    def _shown(self, cursor: Cursor) -> SceneMoment:
        return scene_moment(self._scene, *self._state(cursor), self._theme, self.size)

    def close(self) -> None:
        """Forget the picture of the still parts."""
        self._still = self._motion = None

    def paint(self, painter: QPainter, k: int) -> None:
        """Draw frame `k`."""
        moment, ground = self._moment(k), not self.transparent
        if moment.before is None or not 0 < moment.phase < 1:
            self._shown(moment.cursor).paint(painter, ground=ground)
            return
        before, _ = self._state(moment.before)
        shown = self._shown(moment.cursor)
        if self._motion is None or self._motion.after is not shown.snapshot:
            self._motion = Motion(before, shown.snapshot)
        if self._still is None or self._still[0] != moment.cursor:
            image = new_image(self)
            image.fill(Qt.GlobalColor.transparent)
            with QPainter(image) as inner:
                shown.paint_kept(inner, ground=ground)
            self._still = moment.cursor, image
        painter.drawImage(0, 0, self._still[1])
        shown.paint_moving(painter, self._motion, moment.phase, ground=ground)


class Excerpt:
    """Some of the pictures of a source, one after another."""

    def __init__(self, source: FrameSource, frames: range) -> None:
        self._source, self._first, self._count = source, frames.start, len(frames)
        self.size, self.transparent, self.in_gui = source.size, source.transparent, source.in_gui

    def __len__(self) -> int:
        return self._count

    def key(self, k: int) -> Hashable:
        """Return the key of the source's picture."""
        return self._source.key(self._first + k)

    def make_ready(self, k: int, look: Callable[[], None]) -> None:
        """Do the slow work for picture `k`."""
        self._source.make_ready(self._first + k, look)

    def paint(self, painter: QPainter, k: int) -> None:
        """Draw picture `k`."""
        self._source.paint(painter, self._first + k)

    def close(self) -> None:
        """Release nothing: the source belongs to another object."""


def new_image(source: FrameSource) -> QImage:
    """Return an image for painting frames of a source."""
    alpha = QImage.Format.Format_ARGB32_Premultiplied
    return QImage(*source.size, alpha if source.transparent else QImage.Format.Format_RGB32)


def paint_frame(source: FrameSource, k: int, image: QImage) -> QImage:
    """Paint frame `k` on an image of `new_image`, and return the image."""
    if source.transparent:
        image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    try:
        source.paint(painter, k)
    finally:
        painter.end()
    return image
