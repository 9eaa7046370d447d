"""Nothing in the window is written smaller than can be read: 11 pixels at scale 1."""

from collections.abc import Callable

import pytest
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QApplication, QWidget

from simulator.base.assets import LESSONS
from tests.helpers.shown_lessons import some_steps
from ui.look.layouts import LAYOUT_NAMES
from ui.look.theme import TEXT_SCALES, Style
from ui.window.main_window import MainWindow

LEAST = 11


def watch_fonts(monkeypatch: pytest.MonkeyPatch, told: Callable[[int], object]) -> None:
    """Tell the size of each font that is asked for, in pixels."""
    for kind in ("text_font", "code_font"):
        make = getattr(Style, kind)

        def note(style: Style, points: float, _make: Callable = make, **more: bool) -> QFont:
            font = _make(style, points, **more)
            told(font.pixelSize())
            return font

        monkeypatch.setattr(Style, kind, note)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("demo", "size", "scale"),
    [
        ("flash1", (1280, 720), 1.0),
        ("causal", (1920, 1080), 1.0),
        ("real-scale", (1280, 720), 1.0),
        # Larger text in a low window leaves panels less room: it may not become smaller by that.
        *(("causal", (1280, 720), scale) for scale in TEXT_SCALES[1::2]),
        ("flash1", (1920, 1080), 2.0),
    ],
)
def test_no_text_is_too_small(qtbot, open_window, settings, monkeypatch, demo, size, scale):
    settings.text_scale = scale
    found: dict[str, set[int]] = {}
    window = open_window(demo, size)
    shown = ""
    watch_fonts(monkeypatch, lambda size: found.setdefault(shown, set()).add(size))
    for shown in LAYOUT_NAMES:
        window.desk.take(shown)
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


@pytest.mark.long
@pytest.mark.parametrize(("stem", "steps"), some_steps().items())
def test_no_step_of_a_lesson_writes_too_small_in_a_low_window(
    open_window: Callable[..., MainWindow],
    qapp: QApplication,
    monkeypatch: pytest.MonkeyPatch,
    stem: str,
    steps: list[int],
) -> None:
    window = open_window("flash2", (1280, 720))
    window.lessons.open(LESSONS / f"{stem}.md")
    sizes: set[int] = set()
    watch_fonts(monkeypatch, sizes.add)
    small, bare = {}, 0
    for number in steps:
        window.lessons.player.go(number)
        window.session.settle()
        qapp.processEvents()
        bare += window.desk.current == "plain"  # the board alone
        for _, dock in window.docks:
            if not dock.visibleRegion().isEmpty():
                sizes.clear()  # from before everything had its size
                dock.grab()
                small[number + 1, dock.objectName()] = sorted(s for s in sizes if s < LEAST)
    assert len({number for number, _ in small}) == len(steps) - bare
    assert not any(small.values()), small
