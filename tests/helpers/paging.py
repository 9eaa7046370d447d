"""Judges what an audience sees while a lesson is paged through faster than it is computed."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize
from PySide6.QtGui import QColor, QImage, QPainter

from ui.talk.caption import caption_of, end_caption
from ui.window.main_window import MainWindow

_SIGN = 0.6, 48
"""Where it may be said, at the upper right of the caption, that a step is being computed: share of
its width, and height in pixels."""


class Judge(QObject):
    """Looks at the pictures of a window on the stage, whose motion is off, one after another.

    Each must be the first, or the last, or one of which every part belongs to the same step, now
    or when the next page was asked for.

    window: the window.
    grab: returns what is seen now.
    """

    def __init__(self, window: MainWindow, grab: Callable[[], QImage]) -> None:
        super().__init__()
        self._window, self._grab = window, grab
        self._painted = True
        """Whether the window has been painted since it was looked at."""
        self._strange = self._strangers()
        """Which parts were not of the step when it was painted."""
        self.pictures: list[tuple[QImage, str]] = []
        """The pictures that differ from the one before, and which parts are not of the step."""
        self._left: list[QImage] = []
        """Whole pictures, as they were when another page was asked for."""
        window.lessons.player.asked.connect(self._leave)
        for each in (window, window.windowHandle()):
            each.installEventFilter(self)
        self.look()

    def end(self) -> None:
        """Look no longer."""
        self._window.lessons.player.asked.disconnect(self._leave)
        for each in (self._window, self._window.windowHandle()):
            each.removeEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note that the window is painted."""
        if event.type() is QEvent.Type.UpdateRequest:  # not where a picture of it is taken
            self._painted, self._strange = True, self._strangers()
        return False

    def _leave(self) -> None:
        if not self._strangers():
            self._left.append(self._masked(self._window.grab().toImage()))

    def look(self) -> None:
        """Look at what is seen now, if it has been painted."""
        if not self._painted:
            return
        self._painted = False
        picture = self._masked(self._grab())
        if not self.pictures or picture != self.pictures[-1][0]:
            self.pictures.append((picture, self._strange))

    def rested(self) -> bool:
        """Look, and return whether all of the last picture is of one step.

        A part that is computed last may change nothing in the picture, so nothing is painted then.
        """
        self.look()
        last, strange = self.pictures[-1]
        if strange and not self._strangers() and self._masked(self._grab()) == last:
            self.pictures[-1] = last, ""
        return not self.pictures[-1][1]

    def _masked(self, picture: QImage) -> QImage:
        """Return a picture without the place where it may be said that a step is computed."""
        picture = picture.convertToFormat(QImage.Format.Format_RGB32)
        caption = self._window.lessons.bar.caption
        place = QRect(caption.mapTo(self._window, QPoint()), caption.size())
        box = QRect(QPoint(), QSize(round(_SIGN[0] * place.width()), _SIGN[1]))
        box.moveTopRight(place.topRight())
        with QPainter(picture) as painter:
            painter.fillRect(box, QColor("black"))
        return picture

    def _strangers(self) -> str:
        """Return which parts of the window show another step than the player's."""
        window, player = self._window, self._window.lessons.player
        step, view, end = player.step, window.session.view, player.end
        assert view is not None
        if step is None:
            return "the next lesson is being read"
        said = caption_of(step, player.revealed)
        if player.ended and end is not None:
            said = end_caption(end)
        snapshot, top = view.snapshot, window.stage.title
        number = step.count if player.ended else step.number
        right = {
            "an older picture lies over it": not window.lessons.fade.isVisible(),
            "a panel is being computed": window.session.shown,
            "caption": window.lessons.bar.caption.shown == said,
            "run": snapshot.program.workload.scenario == step.scenario,
            "place": snapshot.cursor == step.cursor,
            "header": (top.title, top.number, top.count) == (step.lesson, number, step.count),
            "layout": window.desk.lent == (step.layout, step.panel),
        }
        return ", ".join(part for part, good in right.items() if not good)

    @property
    def faults(self) -> list[str]:
        """What was wrong with the pictures between the first and the last."""
        good = [self.pictures[0][0], self.pictures[-1][0], *self._left]
        return [
            f"picture {n} of {len(self.pictures)} mixes steps: {strangers}"
            for n, (picture, strangers) in enumerate(self.pictures)
            if strangers and picture not in good
        ] + [f"the last picture: {self.pictures[-1][1]}"] * bool(self.pictures[-1][1])
