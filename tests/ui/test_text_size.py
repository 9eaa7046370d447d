"""Nothing in the window is written smaller than can be read: 11 pixels at scale 1."""

from collections.abc import Callable

import pytest
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from ui.layouts import LAYOUT_NAMES
from ui.main_window import MainWindow
from ui.settings import Settings
from ui.theme import TEXT_SCALES, Style

LEAST = 11


@pytest.mark.parametrize(
    ("demo", "size", "scale"),
    [
        *((demo, (1280, 720), 1.0) for demo in ("flash1", "causal", "real-scale")),
        *((demo, (1920, 1080), 1.0) for demo in ("flash1", "causal", "real-scale")),
        # Larger text in a low window leaves panels less room: it may not become smaller by that.
        *(("causal", (1280, 720), scale) for scale in TEXT_SCALES[1:]),
        ("flash1", (1280, 720), 2.0),
        ("flash1", (1920, 1080), 2.0),
    ],
)
def test_no_text_is_too_small(
    qtbot: QtBot,
    open_window: Callable[..., MainWindow],
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    demo: str,
    size: tuple[int, int],
    scale: float,
) -> None:
    settings.text_scale = scale
    found: dict[str, set[int]] = {}
    window = open_window(demo, size)
    shown = ""
    for kind in ("text_font", "code_font"):
        make = getattr(Style, kind)

        def note(style: Style, points: float, _make: Callable = make, **more: bool) -> QFont:
            font = _make(style, points, **more)
            found.setdefault(shown, set()).add(font.pixelSize())
            return font

        monkeypatch.setattr(Style, kind, note)
    for shown in LAYOUT_NAMES:
        window.take_layout(shown)
        window.session.settle()
        assert (window.width(), window.height()) == size
        window.grab()
        found.pop(shown, None)  # from before everything had its size
        window.grab()
        found.setdefault(shown, set()).update(
            widget.font().pixelSize()
            for widget in window.findChildren(QWidget)
            if widget.isVisible() and widget.font().pixelSize() > 0
        )
    assert set(found) == set(LAYOUT_NAMES)
    small = {name: sorted(s for s in sizes if s < LEAST) for name, sizes in found.items()}
    assert not any(small.values()), small
