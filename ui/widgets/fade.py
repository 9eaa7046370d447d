"""A change of picture in the window: the old picture stays until the new one is there."""

from __future__ import annotations

from PySide6.QtCore import QEasingCurve, QEvent, QObject, QRectF, Qt, QVariantAnimation, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPixmap, QTransform
from PySide6.QtWidgets import QWidget

from ui.look.draw import RIGHT, draw_text, text_width
from ui.look.theme import DARK, Style
from ui.safety.overrides import guarded
from ui.safety.painting import painting

FADE_MS = 260
SIGN = "computing…"
"""Words over a picture that takes a while."""
_SIGN, _SIGN_HIGH = 15.0, 20.0


@guarded
class Fade(QWidget):
    """Lies above a widget: shows the widget's last picture until the next one is whole.

    over: the widget, whose picture is taken by `take`.
    under: the widget's child that stays above the picture.
    """

    _covered = Signal()
    """Another child may lie above the picture."""

    def __init__(self, over: QWidget, under: QWidget | None = None) -> None:
        super().__init__(over)
        self._over, self._under = over, under
        self.picture = QPixmap()
        self.style_now = Style(DARK)
        self.sign: QRectF | None = None
        """The place of the words which say that the next picture is being computed."""
        self._left = QVariantAnimation(self)
        self._left.setDuration(FADE_MS)
        self._left.setStartValue(1.0)
        self._left.setEndValue(0.0)
        self._left.setEasingCurve(QEasingCurve.Type.InOutQuad)
        self._left.valueChanged.connect(self.update)
        self._left.finished.connect(self.end)
        self._low = False
        """Whether `_covered` waits for its turn."""
        # Not at once, because Qt is still busy with the children.
        self._covered.connect(self._rise, Qt.ConnectionType.QueuedConnection)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()

    @property
    def holds(self) -> bool:
        """Whether nothing is seen but the last picture."""
        running = self._left.state() is QVariantAnimation.State.Running
        return not self.isHidden() and not running

    def take(self) -> None:
        """Take a picture of the widget and put it above the widget, unless one is there."""
        if self.holds:
            self._rise()
            return
        self.end()
        self.picture = self._over.grab()
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # widgets below are not painted
        self.setGeometry(self._over.rect())
        self.show()
        self._rise()
        self._watch()

    def _neighbours(self) -> list[QWidget]:
        """Return the widget and its other children, but for the one that stays above."""
        direct = Qt.FindChildOption.FindDirectChildrenOnly
        children = self._over.findChildren(QWidget, options=direct)
        return [self._over, *(each for each in children if each not in (self, self._under))]

    def _watch(self) -> None:
        for each in self._neighbours():
            each.installEventFilter(self)

    def _cover_later(self) -> None:
        self._low = True
        self._covered.emit()

    def _rise(self) -> None:
        self._low = False
        self.raise_()
        if self._under is not None:
            self._under.raise_()

    def say(self, place: QRectF) -> None:
        """Write over a place that the next picture is being computed."""
        self.sign = place
        self.update()

    def start(self) -> None:
        """Let the picture fade."""
        if self.holds:
            self.sign = None
            self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent, on=False)
            self._left.start()

    def end(self) -> None:
        """Hide, and keep no picture: a picture is as large as the window."""
        self._left.stop()
        for each in self._neighbours():
            each.removeEventFilter(self)
        self.hide()
        self.picture, self.sign = QPixmap(), None

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay as large as the widget, and above its other children: a dock may be raised."""
        kind = event.type()
        if watched is not self._over:
            if kind is QEvent.Type.ZOrderChange:
                self._cover_later()
        elif kind is QEvent.Type.UpdateRequest:
            if self._low:  # otherwise the children would be painted first
                self._rise()
        elif kind is QEvent.Type.Resize:
            was = self.size()
            self.setGeometry(self._over.rect())
            if self.sign is not None:  # the words stay where they are in the picture
                stretch = self.width() / was.width(), self.height() / was.height()
                self.sign = QTransform.fromScale(*stretch).mapRect(self.sign)
        elif kind is QEvent.Type.ChildPolished:
            self._watch()
            self._cover_later()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the picture, and the sign over it."""
        with painting(self, covers=False) as painter:
            painter.setOpacity(1.0 if self.holds else float(self._left.currentValue()))
            painter.drawPixmap(self.rect(), self.picture)
            if self.sign is not None:
                self._paint_sign(painter, self.sign)

    def _paint_sign(self, painter: QPainter, place: QRectF) -> None:
        style, theme = self.style_now, self.style_now.theme
        wide = text_width(style.text_font(_SIGN), SIGN) + style.px(18)
        inside = place | QRectF(place.right() - wide, place.top(), wide, style.px(_SIGN_HIGH))
        painter.fillRect(inside, QColor(theme.panel))
        draw_text(painter, inside, SIGN, style.text_font(_SIGN), theme.muted, RIGHT)
