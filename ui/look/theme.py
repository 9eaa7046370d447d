"""Colours, fonts and sizes: only this module decides how anything looks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache, lru_cache

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontMetricsF, QPalette, QPen

from simulator.base.assets import ASSETS
from simulator.program.algorithms import TENSORS
from ui.look.curves import LOOKS

TEXT_FAMILY = "Inter Tabular"
CODE_FAMILY = "JetBrains Mono"
SYMBOL_FAMILY = "Tilescope Symbols"
"""Glyphs that the other two fonts lack, such as the transpose sign."""

_SAME_COLOUR = {"phi_Q": "Q", "phi_K": "K", "C": "K", "state": "S"}
TENSOR_COLOURS = {
    "Q": "#56B4E9",
    "K": "#E69F00",
    "V": "#009E73",
    "O": "#CC79A7",
    "S": "#B8A4F5",
    "P": "#35B779",
    "m": "#FFD24A",
    "l": "#8FB8E8",
    "LSE": "#9CC3F5",
}
"""One meaning for each colour, everywhere (Okabe and Ito's set for Q, K, V, O)."""


@dataclass(frozen=True, slots=True)
class Theme:
    """A set of colours, as ``#rrggbb``."""

    name: str  # ``dark``, ``light`` or ``contrast``
    dark: bool  # whether text is light on dark
    window: str  # window, panel, field: backgrounds: behind the docks, of a dock, of an input field
    panel: str
    field: str
    border: str  # border, grid: outlines of panels; lines between tiles
    grid: str
    # text, muted, faint: important text, text that explains, faint marks and controls that are off
    text: str
    muted: str
    faint: str
    accent: str  # selected controls
    current: str  # the current tile, op and visit
    good: str  # good, bad: within and beyond a limit
    bad: str
    hbm_ground: str  # hbm_ground, hbm_line, sram_ground, sram_line: the two memories
    hbm_line: str
    sram_ground: str
    sram_line: str
    amber: str  # numbers in HBM, as a filled bar
    empty: str  # empty, used: pending tiles; veil over tiles that were used and dropped
    used: str
    hatch: str  # lines over skipped tiles, which a projector must not wash out
    # colours that tell the heads of a layer apart; their numbers stand beside them
    heads: tuple[str, ...]
    # colour of each tensor and statistic as it is written in text: readable on `panel`
    tensors: dict[str, str] = dataclasses.field(hash=False)

    def head(self, number: int) -> QColor:
        """Return the colour of a head; with many heads the colours repeat."""
        return QColor(self.heads[number % len(self.heads)])

    def tensor(self, name: str) -> QColor:
        """Return the colour of a tensor or statistic; a partial one has the colour of the whole.

        φ(Q) and φ(K) have the colours of Q and K. A state has the colour of S, whose place it
        takes; a tensor seen beside another has the other's colour.
        """
        while name in TENSORS and TENSORS[name].at:
            name = TENSORS[name].at
        name = _SAME_COLOUR.get(name, name.removesuffix("_partial"))
        return QColor(self.tensors.get(name, self.text))

    def role(self, name: str) -> QColor:
        """Return the colour of an algorithm, a tensor or a role of the theme, by its name.

        ``head 3`` is the colour of head 3.
        """
        if name in LOOKS:
            name = LOOKS[name].colour
        if name.startswith("head "):
            return self.head(int(name.removeprefix("head ")))
        return self.tensor(name) if name in self.tensors else QColor(getattr(self, name))


DARK = Theme(
    name="dark", dark=True,
    window="#0D1117", panel="#161B22", field="#0D1117",
    border="#30363D", grid="#3A424D",
    text="#F0F3F6", muted="#9DA7B3", faint="#636D79",
    accent="#182D4A", current="#FFD24A", good="#3FB950", bad="#FF6B63",
    hbm_ground="#1D140C", hbm_line="#9A6324", sram_ground="#0D1A13", sram_line="#2E8B57",
    amber="#D9A04E", empty="#0D1117", used="#0D1117", hatch="#6B7683",
    tensors={**TENSOR_COLOURS, "V": "#1FBF92"},
    heads=("#FF8A65", "#4DD0E1", "#C6D94A", "#B388FF", "#F48FB1", "#81C784", "#D7A86E", "#90A4AE"),
)  # fmt: skip

LIGHT = Theme(
    name="light", dark=False,
    window="#EEF1F4", panel="#FFFFFF", field="#FFFFFF",
    border="#C4CCD4", grid="#B4BDC7",
    text="#14181D", muted="#4A5561", faint="#8A949F",
    accent="#D6E8FB", current="#B84400", good="#177432", bad="#B01030",
    hbm_ground="#FFF4E2", hbm_line="#B7791F", sram_ground="#E9F7EF", sram_line="#2F855A",
    amber="#D99A3A", empty="#F6F8FA", used="#FFFFFF", hatch="#7F8A96",
    tensors={
        "Q": "#186A9F", "K": "#8F5A00", "V": "#00704F", "O": "#A03C78", "S": "#5B3FC4",
        "P": "#1A7246", "m": "#6B6400", "l": "#2E5F99", "LSE": "#2E5F99",
    },
    heads=("#C2410C", "#00748A", "#6B7A00", "#6D28D9", "#BE185D", "#2E7D32", "#8D5A24", "#546E7A"),
)  # fmt: skip

CONTRAST = Theme(
    name="contrast", dark=True,
    window="#000000", panel="#000000", field="#000000",
    border="#FFFFFF", grid="#8A8A8A",
    text="#FFFFFF", muted="#E6E6E6", faint="#9A9A9A",
    accent="#003C8F", current="#FFE600", good="#5CFF7A", bad="#FF7A70",
    hbm_ground="#241500", hbm_line="#FFB000", sram_ground="#00210F", sram_line="#4DFF9A",
    amber="#FFB000", empty="#000000", used="#000000", hatch="#9A9A9A",
    tensors={
        "Q": "#7CCBFF", "K": "#FFB833", "V": "#2BE3AE", "O": "#FF9FD6", "S": "#D3C4FF",
        "P": "#6BE6A0", "m": "#FFE600", "l": "#B5D6FF", "LSE": "#B5D6FF",
    },
    heads=("#FF9E80", "#6FE7F5", "#DFF25A", "#C9A8FF", "#FF9CC2", "#9BE6A0", "#F0C38A", "#B8CBD4"),
)  # fmt: skip

THEMES = {theme.name: theme for theme in (DARK, LIGHT, CONTRAST)}


def on_stage(theme: Theme) -> Theme:
    """Return a theme with one ground for everything: a slide has no frames, and white is white."""
    ground = theme.window if theme.dark else theme.panel
    return dataclasses.replace(theme, window=ground, panel=ground, field=ground)


TEXT_SCALES = (1.0, 1.25, 1.5, 1.75, 2.0)
LABEL = 11.0
"""Size of the smallest labels, in pixels at scale 1."""
STAGE_LABEL = 0.025
"""Least size of labels on the stage, a share of the picture's height: the last row reads them."""
HALL = (1280, 720)
"""Size of a picture that can be read in a lecture hall at scale 1; in a larger one, text is
larger."""


def growth(width: int, height: int) -> float:
    """Return how much larger all text is in a window of more than 1920 × 1080, in quarters."""
    return max(1.0, int(4 * min(width / 1920, height / 1080)) / 4)


def hall_scale(width: int, height: int) -> float:
    """Return the text scale, beside `growth`, that a lecture hall needs in a picture."""
    room = min(width / HALL[0], height / HALL[1]) / growth(width, height)
    return max((scale for scale in TEXT_SCALES if scale <= room), default=TEXT_SCALES[0])


def stage_label(width: int, height: int) -> float:
    """Return the least size of letters, in pixels, that the last row can read."""
    return STAGE_LABEL * min(height, width * HALL[1] / HALL[0])


def stage_scale(width: int, height: int) -> float:
    """Return the text scale, beside `growth`, with which the last row can read every label."""
    return stage_label(width, height) / LABEL / growth(width, height)


@dataclass(frozen=True, slots=True)
class Style:
    """Theme and sizes that a painter needs in addition to its snapshot."""

    theme: Theme  # colours
    scale: float = 1.0  # text scale times picture scale: a 13 px text is ``13 * scale`` pixels high
    # least size of letters in pixels, which the last row reads; 0 if text may be smaller where
    # room is short
    least: float = 0.0

    def px(self, size: float) -> float:
        """Return a length given at scale 1."""
        return size * self.scale

    def inset(self, rect: QRectF, left: float, top: float, right: float, bottom: float) -> QRectF:
        """Return the rest of a place inside edges given at scale 1."""
        px = self.px
        return rect.adjusted(px(left), px(top), -px(right), -px(bottom))

    def pen(
        self, colour: QColor | str, width: float, line: Qt.PenStyle = Qt.PenStyle.SolidLine
    ) -> QPen:
        """Return a pen of a width given at scale 1."""
        return QPen(QColor(colour), self.px(width), line)

    def text_font(self, size: float, *, bold: bool = False, italic: bool = False) -> QFont:
        """Return the text font at `size` pixels (scale 1); digits are equally wide."""
        return _font(TEXT_FAMILY, round(size * self.scale), bold, italic)

    def code_font(self, size: float, *, bold: bool = False) -> QFont:
        """Return the font for numbers and code at `size` pixels (scale 1)."""
        return _font(CODE_FAMILY, round(size * self.scale), bold)


class _Font(QFont):
    """A font that keeps its key; Qt needs microseconds to make the key each time."""

    known_key = ""


_MOST_FONTS = 96
"""Some three times as many as a window uses at one size; with each font Qt keeps all letters drawn
in that font."""


@lru_cache(maxsize=_MOST_FONTS)
def _font(family: str, pixels: int, bold: bool, italic: bool = False) -> QFont:
    font = _Font()
    font.setFamilies([family, SYMBOL_FAMILY])
    font.setPixelSize(max(pixels, 6))
    font.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
    font.setItalic(italic)  # slanted, because there are no italics
    # Pictures must be equal on all machines.
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    font.setStyleStrategy(QFont.StyleStrategy.PreferAntialias)
    font.known_key = font.key()
    return font


def font_key(font: QFont) -> str:
    """Return a key of a font."""
    return font.known_key if type(font) is _Font else font.key()


@cache
def load_fonts() -> tuple[str, ...]:
    """Register the shipped fonts with Qt once, and open them; return the families found."""
    families: list[str] = []
    for file in sorted((ASSETS / "fonts").iterdir()):
        if file.suffix in (".ttf", ".otf"):
            number = QFontDatabase.addApplicationFont(str(file))
            families += QFontDatabase.applicationFontFamilies(number)
    found = tuple(dict.fromkeys(families))
    _OPEN.extend(_opened(family, weight) for family in (*found, "") for weight in _WEIGHTS)
    return found


_WEIGHTS = QFont.Weight.Normal, QFont.Weight.DemiBold, QFont.Weight.Bold
"""Weights of our text, and of text that Qt sets in bold by itself."""
_OPEN: list[QFont] = []
"""One font of each file that text is set in, kept for good.

When the last font of a file goes, Qt 6.10 opens all other files anew for the next size of text, and
open files stay open with the text that uses them: after an hour each file is open twenty times,
some 20 MiB in all.
"""


def _opened(family: str, weight: QFont.Weight) -> QFont:
    """Return a font whose file Qt has opened; a font of the system if `family` is empty."""
    font = QFont()
    if family:
        font.setFamilies([family])
    font.setWeight(weight)
    QFontMetricsF(font).horizontalAdvance("0")
    return font


def palette(theme: Theme) -> QPalette:
    """Return the Qt palette of a theme, for the Fusion style."""
    out = QPalette()
    roles = {
        QPalette.ColorRole.Window: theme.window,
        QPalette.ColorRole.WindowText: theme.text,
        QPalette.ColorRole.Base: theme.field,
        QPalette.ColorRole.AlternateBase: theme.panel,
        QPalette.ColorRole.Text: theme.text,
        QPalette.ColorRole.Button: theme.panel,
        QPalette.ColorRole.ButtonText: theme.text,
        QPalette.ColorRole.BrightText: theme.bad,
        QPalette.ColorRole.ToolTipBase: theme.panel,
        QPalette.ColorRole.ToolTipText: theme.text,
        QPalette.ColorRole.Highlight: theme.accent,
        QPalette.ColorRole.HighlightedText: theme.text,
        QPalette.ColorRole.PlaceholderText: theme.muted,
        QPalette.ColorRole.Link: theme.tensors["Q"],
        QPalette.ColorRole.Light: theme.border,
        QPalette.ColorRole.Midlight: theme.border,
        QPalette.ColorRole.Mid: theme.border,
        QPalette.ColorRole.Dark: theme.border,
        QPalette.ColorRole.Shadow: theme.window,
    }
    for role, colour in roles.items():
        out.setColor(role, QColor(colour))
    for role in (
        QPalette.ColorRole.WindowText,
        QPalette.ColorRole.Text,
        QPalette.ColorRole.ButtonText,
    ):
        out.setColor(QPalette.ColorGroup.Disabled, role, QColor(theme.faint))
    return out


def frame_palette(theme: Theme) -> QPalette:
    """Return the palette of fields with a visible frame: Fusion's frame is a shade off Window."""
    out = palette(theme)
    out.setColor(QPalette.ColorRole.Window, QColor(theme.muted))
    return out


def stylesheet(style: Style, *, stage: bool = False) -> str:
    """Return the style sheet of the whole window, for looks that the palette cannot express.

    stage: whether an audience sees the window: lines between docks and tabs are then hidden.
    """
    t = style.theme

    def px(size: float) -> str:
        return f"{style.px(size):.0f}px"

    line = t.panel if stage else t.window
    chosen = t.accent if t.panel == t.window else t.panel  # it has to stand out from the others
    # A tab is 1 px wide, because Qt divides by its width when a dragged tab is let go.
    tabs = "#window > QTabBar::tab { width: 1px; height: 0; padding: 0; border: none; }"
    return f"""
    QMainWindow::separator {{ background: {line}; width: {px(6)}; height: {px(6)}; }}
    QDockWidget {{
        color: {t.muted}; font-family: "{TEXT_FAMILY}"; font-size: {px(13)};
        titlebar-close-icon: none;
    }}
    QDockWidget::title {{
        background: {t.panel}; border-bottom: 1px solid {t.border};
        padding: {px(5)} {px(10)} {px(3)} {px(10)};  /* as deep below as above: letters cut */
    }}
    QToolBar {{ background: {t.panel}; border: none; spacing: {px(4)}; padding: 0; }}
    QMenuBar, QMenu {{ background: {t.panel}; color: {t.text}; }}
    QMenu {{ border: 1px solid {t.muted}; }}
    QMenuBar::item {{ padding: {px(4)} {px(8)}; }}
    QMenuBar::item:selected, QMenu::item:selected {{ background: {t.accent}; }}
    QMenu::item:disabled {{ color: {t.faint}; }}
    QToolTip {{ background: {t.panel}; color: {t.text}; border: 1px solid {t.border}; }}
    QCheckBox::indicator {{ width: {px(13)}; height: {px(13)}; }}
    QScrollBar {{ background: {t.panel}; border: none; }}
    QScrollBar:vertical {{ width: {px(11)}; }}
    QScrollBar:horizontal {{ height: {px(11)}; }}
    QScrollBar::handle {{
        background: {t.faint}; border: {px(2)} solid {t.panel}; border-radius: {px(5)};
    }}
    QScrollBar::handle:vertical {{ min-height: {px(24)}; }}
    QScrollBar::handle:horizontal {{ min-width: {px(24)}; }}
    QScrollBar::handle:hover {{ background: {t.muted}; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ width: 0; height: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: none; }}
    QSlider::groove:horizontal {{
        height: {px(4)}; background: {t.grid}; border-radius: {px(2)};
    }}
    QSlider::sub-page:horizontal {{ background: {t.muted}; border-radius: {px(2)}; }}
    QSlider::handle:horizontal {{
        width: {px(12)}; margin: -{px(6)} 0; border-radius: {px(8)}; background: {t.muted};
        border: {px(2)} solid {t.panel};
    }}
    QSlider::handle:horizontal:focus, QSlider::handle:horizontal:hover {{
        background: {t.text};
    }}
    QSlider::handle:horizontal:disabled {{ background: {t.faint}; }}
    QScrollArea {{ border: none; background: {t.panel}; }}
    #algorithm {{
        border: 1px solid {t.border}; border-radius: {px(5)}; color: {t.text};
        padding: {px(4)} {px(10)}; background: {t.field};
    }}
    #algorithm:checked {{
        background: {t.accent}; border: 2px solid {t.current};
        padding: {style.px(4) - 1:.0f}px {style.px(10) - 1:.0f}px;  /* as large as the others */
    }}
    #algorithm[ring="true"] {{ border-color: {t.text}; }}
    #dock_title QToolButton {{ border: none; border-radius: {px(4)}; }}
    #dock_title QToolButton:hover {{ background: {t.accent}; }}
    QTabBar {{ qproperty-elideMode: ElideNone; }}
    QTabBar::tab {{
        background: {t.window}; color: {t.muted}; padding: {px(4)} {px(12)};
        border: 1px solid {t.border}; border-bottom: none;
    }}
    QTabBar::tab:selected {{
        background: {chosen}; color: {t.text}; border-top-color: {t.current};
    }}
    #engine {{
        border: 1px solid {t.sram_line}; border-radius: {px(5)}; color: {t.text};
        background: {t.sram_ground}; padding: {px(3)} {px(8)};
    }}
    #brand {{ color: {t.text}; padding: 0 {px(8)}; }}
    {tabs if stage else ""}
    """
