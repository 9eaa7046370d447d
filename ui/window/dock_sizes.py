"""The sizes of docks: shares of the window, which are kept when the window's size changes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, QTimer
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QTabBar, QToolBar

from ui.look.layouts import AT_MOST, LAYOUTS, LayoutSpec
from ui.look.slide import PANEL
from ui.safety.overrides import guarded
from ui.window.panel_specs import PANELS

_LEFT, _LEFT_SHARE = 270, 0.22
"""Width at scale 1 of the docks at the left, a form, and their least share of the window."""
_LEAST, _LEAST_LARGE = 346, 560
"""Least width in pixels that a layout itself gives its right side, and with a large panel, whose
letters would get too small."""
_OPENED_HEIGHT, _LARGE_HEIGHT = 0.6, 0.75
"""Shares of the height of panels, and of large panels, in another layout than their own."""
_WIDE, _WORDY = 0.44, {"code", "exactness"}
"""Share of the width that panels with long lines need on the stage, and these panels."""
_SUBJECT = 0.5
"""Share of the width from which a panel, and not the board, is the subject of a layout."""
_FILLED = 0.9
"""Part of the height that docks above each other ask for. Qt enlarges them in proportion; if they
asked for too much, each would lose the same number of pixels."""
_LARGE = {spec.name: spec.large for spec in PANELS}
_MOVED_MS = 300
"""Time after which a dock that was dropped elsewhere has its size: Qt moves it there in steps."""
_DIRECT = Qt.FindChildOption.FindDirectChildrenOnly
_RIGHT, _LEFT_AREA, _BOTTOM = (
    Qt.DockWidgetArea.RightDockWidgetArea,
    Qt.DockWidgetArea.LeftDockWidgetArea,
    Qt.DockWidgetArea.BottomDockWidgetArea,
)


@dataclass(frozen=True, slots=True)
class Shares:
    """The sizes that the user has given to a layout."""

    # widths, heights: name of a dock to its share of the window; a dock that is missing has its
    # share in the layout
    widths: Mapping[str, float] = field(default_factory=dict)
    heights: Mapping[str, float] = field(default_factory=dict)
    low: bool = False  # whether the docks at the right were in one place because the window was low

    def to_text(self) -> str:
        """Return the shares as a line for the settings."""
        return json.dumps([dict(self.widths), dict(self.heights), self.low])

    @classmethod
    def from_text(cls, text: str) -> Shares:
        """Read the shares from such a line; a line that cannot be used gives none."""
        try:
            widths, heights, low = json.loads(text)
            return cls(_read(widths), _read(heights), low is True)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return cls()


def _read(shares: Mapping[str, float]) -> dict[str, float]:
    """Return the shares of existing docks, each more than 0 and at most 1."""
    return {name: float(of) for name, of in shares.items() if name in _LARGE and 0 < of <= 1}


@guarded
class DockSizes(QObject):
    """Gives the docks of a window their shares of the window.

    Only the sizes that the user drags are remembered: sizes that a small window forces on docks are
    forgotten when the window grows again.

    layout: the layout whose sizes are used if the user has chosen none.
    own: the sizes that the user has chosen.
    scale: scale of the window's text.
    stage: whether an audience sees the window: a panel beside the board then has a third of it.
    """

    def __init__(self, window: QMainWindow, docks: Mapping[str, QDockWidget]) -> None:
        super().__init__(window)
        self._window = window
        self._docks = docks
        self.layout: LayoutSpec = LAYOUTS[0]
        self.own = Shares()
        self.scale = 1.0
        self.stage = False
        self._pressed: dict[str, QSize] | None = None
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self.fit)
        self._moved = QTimer(self, singleShot=True, interval=_MOVED_MS)
        self._moved.timeout.connect(self._take_moved)
        window.installEventFilter(self)

    # --- giving ---------------------------------------------------------------------------

    def fit_soon(self) -> None:
        """Give shares after Qt has opened or closed docks."""
        self._soon.start()

    def fit(self) -> None:
        """Give every visible dock its share of the window's current size."""
        self._soon.stop()
        window = self._window
        if not window.isVisible():
            return
        docked = self._docked()
        if not docked:
            return
        layout = window.layout()
        assert layout is not None
        layout.activate()  # bars first, because docks share the rest
        wide, high = self._wide(), self._high()
        widths = self._widths(docked, wide)
        heights = {name: self._height(name, high) for name in docked}
        stack = self._stacked(docked, heights)
        for name in docked:
            if self._area(name) is _RIGHT:
                heights[name] *= _FILLED * high / stack
        for sizes, way in ((widths, Qt.Orientation.Horizontal), (heights, Qt.Orientation.Vertical)):
            # If docks share a width or a height, Qt uses the size that the last dock asks for.
            names = sorted(sizes, key=lambda name: sizes[name])
            pixels = [max(1, round(sizes[name])) for name in names]
            window.resizeDocks([self._docks[name] for name in names], pixels, way)
        layout.activate()

    def _widths(self, docked: Iterable[str], wide: int) -> dict[str, float]:
        """Return the widths of docks, in pixels."""
        widths = {name: self._width(name, wide) for name in docked}
        if not self.layout.board:  # the other docks get all width beside the left
            form = max((widths[n] for n in widths if self._area(n) is _LEFT_AREA), default=0.0)
            for name in widths:
                if name not in self.own.widths and self._area(name) is _RIGHT:
                    widths[name] = wide - form
                elif name not in self.own.widths and self._area(name) is _BOTTOM:
                    widths[name] *= 1 - form / wide
        return widths

    def _width(self, name: str, wide: int) -> float:
        """Return the width of a dock, in pixels."""
        layout, share = self.layout, self.own.widths.get(name)
        if share is not None:
            return share * wide
        area = self._area(name)
        if area is _LEFT_AREA:
            return max(_LEFT * self.scale, _LEFT_SHARE * wide)
        if area is _BOTTOM and name in layout.bottom and layout.bottom_widths:
            return layout.bottom_widths[layout.bottom.index(name)] * wide / 100
        if self.stage and layout.width < _SUBJECT:
            return (_WIDE if {*layout.stack} & _WORDY else PANEL) * wide
        if not _LARGE[name]:
            return max(_LEAST, wide * layout.width)
        own = layout.width if name in layout.stack else max(layout.width, AT_MOST)
        return max(_LEAST_LARGE, wide * own)

    def _height(self, name: str, high: int) -> float:
        """Return the height of a dock, in pixels."""
        layout, share = self.layout, self.own.heights.get(name)
        if share is not None:
            return share * high
        if name in layout.bottom:
            return layout.bottom_height * self._window.height()
        place = next((at for at, names in enumerate(layout.right) if name in names), None)
        if place is None:
            return (_LARGE_HEIGHT if _LARGE[name] else _OPENED_HEIGHT) * high
        return layout.heights[place] / 100 * high

    def _stacked(self, docked: Iterable[str], heights: Mapping[str, float]) -> float:
        """Return the share of the height that the places at the right want in all."""
        places: dict[frozenset[str], float] = {}
        for name in docked:
            if self._area(name) is _RIGHT:
                place = frozenset((name, *self._beside(name)))
                places[place] = max(heights[name], places.get(place, 0.0))
        return sum(places.values())

    def _high(self) -> int:
        """Return the height between the bars."""
        bars = [self._window.menuBar(), *self._bars(Qt.Orientation.Horizontal)]
        bars = [bar for bar in bars if not bar.isHidden()]
        return max(1, self._window.height() - sum(bar.height() for bar in bars))

    def _wide(self) -> int:
        """Return the width beside the rail."""
        rails = self._bars(Qt.Orientation.Vertical)
        return max(1, self._window.contentsRect().width() - sum(rail.width() for rail in rails))

    def _bars(self, way: Qt.Orientation) -> list[QToolBar]:
        bars = self._window.findChildren(QToolBar, options=_DIRECT)
        return [bar for bar in bars if bar.orientation() is way]

    def _docked(self) -> list[str]:
        return [
            name
            for name, dock in self._docks.items()
            if not (dock.isHidden() or dock.isFloating())
            and self._area(name) is not Qt.DockWidgetArea.NoDockWidgetArea
        ]

    def _area(self, name: str) -> Qt.DockWidgetArea:
        return self._window.dockWidgetArea(self._docks[name])

    def _beside(self, name: str) -> list[str]:
        """Return the open docks that share the place of a dock as tabs."""
        others = self._window.tabifiedDockWidgets(self._docks[name])
        return [other.objectName() for other in others if not other.isHidden()]

    def _tabs_above(self, name: str) -> int:
        """Return the height of the tabs above a dock, which belong to the dock's place."""
        at = self._docks[name].geometry()
        # If its parent were asked, Python would keep each tab bar that Qt makes and deletes.
        for bar in QApplication.allWidgets():
            if isinstance(bar, QTabBar) and bar.isVisible() and bar.window() is self._window:
                place = bar.mapTo(self._window, QPoint())
                if at.left() <= place.x() <= at.right() and place.y() + bar.height() == at.top():
                    return bar.height()
        return 0

    # --- taking over ----------------------------------------------------------------------

    def moved(self) -> None:
        """Remember the sizes of docks if the user has moved a dock to another place."""
        self._moved.start()

    def _take_moved(self) -> None:
        self._take(self._sizes())

    def _sizes(self) -> dict[str, QSize]:
        """Return the sizes of the visible docks."""
        docks = self._docks
        seen = (name for name in self._docked() if not docks[name].visibleRegion().isEmpty())
        return {name: docks[name].size() for name in seen}

    def _take(self, sizes: Mapping[str, QSize], before: Mapping[str, QSize] | None = None) -> None:
        """Remember sizes that have changed."""
        wide, high = self._wide(), self._high()
        widths, heights = dict(self.own.widths), dict(self.own.heights)
        for name, size in sizes.items():
            old = before.get(name) if before is not None else None
            high_with_tabs = size.height() + self._tabs_above(name)
            for each in (name, *self._beside(name)):
                if old is None or old.width() != size.width():
                    widths[each] = min(1.0, size.width() / wide)
                if old is None or old.height() != size.height():
                    heights[each] = min(1.0, high_with_tabs / high)
        self.own = Shares(widths, heights, self.own.low)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Notice when the user drags the line between docks: the window itself is pressed there."""
        kind = event.type()
        if kind is QEvent.Type.MouseButtonPress:
            self._pressed = self._sizes()
        elif kind is QEvent.Type.MouseButtonRelease and self._pressed is not None:
            QTimer.singleShot(0, self, self._let_go)  # Qt moves the line in the next turn
        return False

    def _let_go(self) -> None:
        before, self._pressed = self._pressed, None
        if before is not None:
            self._take(self._sizes(), before)
