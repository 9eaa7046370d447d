"""The themes: words are readable on their grounds, and colours of different things differ."""

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QTabBar
from pytestqt.qtbot import QtBot

from simulator.program.algorithms import ALGORITHMS
from ui.look.curves import LOOKS
from ui.look.theme import THEMES, Style, Theme, stylesheet

ROOT = Path(__file__).resolve().parents[3]
READABLE = 4.5
"""Contrast of small text, at least: WCAG 2.2, success criterion 1.4.3."""
SEEN = 3.0
"""Contrast of controls, at least: success criterion 1.4.11."""
GROUNDS = ("window", "panel", "field", "hbm_ground", "sram_ground")


def luminance(colour: str | QColor) -> float:
    """Return the relative luminance of WCAG."""
    parts = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in
             (QColor(colour).redF(), QColor(colour).greenF(), QColor(colour).blueF()))  # fmt: skip
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def contrast(one: str | QColor, other: str | QColor) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def inks(theme: Theme) -> dict[str, str]:
    """Return what words are written in."""
    names = ("text", "muted", "current", "good", "bad")
    return {name: getattr(theme, name) for name in names} | theme.tensors


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_words_are_readable(theme: Theme) -> None:
    for name, ink in inks(theme).items():
        for ground in GROUNDS:
            assert contrast(ink, getattr(theme, ground)) >= READABLE, (name, ground)
    for name in ("text", "muted"):
        assert contrast(getattr(theme, name), theme.accent) >= READABLE, name


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_tensors_are_readable_on_the_line_that_runs_now(theme: Theme) -> None:
    for name, ink in theme.tensors.items():
        assert contrast(ink, theme.accent) >= READABLE, name


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_controls_that_are_off_are_seen_and_differ_from_words(theme: Theme) -> None:
    for ground in ("panel", "field"):
        off = contrast(theme.faint, getattr(theme, ground))
        assert SEEN <= off < 0.7 * contrast(theme.muted, getattr(theme, ground)), ground


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_colours_that_stand_side_by_side_differ(theme: Theme) -> None:
    t = theme.tensors
    for one, other in combinations((t["Q"], t["K"], t["V"], t["O"], t["S"], theme.current), 2):
        apart = [abs(a - b) for a, b in zip(QColor(one).getRgb(), QColor(other).getRgb(),
                                           strict=True)]  # fmt: skip
        assert sum(apart) >= 60, (one, other)


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_heads_are_seen_and_differ_from_each_other(theme: Theme) -> None:
    assert len(set(theme.heads)) == 8
    for one in theme.heads:
        assert contrast(one, theme.panel) >= SEEN, one
    for one, other in combinations(theme.heads, 2):
        apart = [abs(a - b) for a, b in zip(QColor(one).getRgb(), QColor(other).getRgb(),
                                           strict=True)]  # fmt: skip
        assert sum(apart) >= 60, (one, other)
    assert theme.head(8) == theme.head(0) == QColor(theme.heads[0])


def test_no_two_algorithms_are_drawn_alike() -> None:
    assert LOOKS.keys() == ALGORITHMS.keys()
    assert len({*LOOKS.values()}) == len(LOOKS)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_files_of_fonts_are_open_from_the_beginning() -> None:
    """So none is the first that Qt closes, after which it opens all others again."""
    script = (
        "from ui.widgets.application import application; app = application();"
        "print(open('/proc/self/maps').read())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = [Path(line.split()[-1]).stem for line in done.stdout.splitlines() if "ttf" in line]
    for name in (
        "Inter-Regular", "Inter-SemiBold", "Inter-Bold", "JetBrainsMono-Regular",
        "JetBrainsMono-Bold", "TilescopeSymbols-Regular", "TilescopeSymbols-Bold",
    ):  # fmt: skip
        assert names.count(name) == 1, name


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_the_tab_in_front_has_a_ground_of_its_own(qtbot: QtBot, theme: Theme) -> None:
    bar = QTabBar()
    qtbot.addWidget(bar)
    for name in ("one", "two", "three"):
        bar.addTab(name)
    bar.setStyleSheet(stylesheet(Style(theme)))
    bar.setCurrentIndex(1)
    bar.show()
    picture = bar.grab().toImage()
    corners = [bar.tabRect(n).bottomLeft() + QPoint(4, -3) for n in range(3)]
    one, two, three = (picture.pixelColor(corner).name() for corner in corners)
    assert one == three != two
