"""Slides for PowerPoint, by python-pptx: native text, pictures, films and notes."""

from __future__ import annotations

import importlib
import io
import re
from typing import Any

from simulator.base.errors import refuse
from ui.export.slides import FilmedPages, Slide, slides_of
from ui.export.writers.metadata import Note
from ui.look.flow import Face
from ui.look.theme import TEXT_FAMILY, THEMES, Theme
from ui.safety.program import with_extra
from ui.session.tasks import Report
from ui.talk.caption_text import blocks, plain_text

MOST_FILMS = 29  # films of a file: with more, PowerPoint stalls
_INCH = 914_400
_WIDE, _HIGH = 13.333, 7.5  # a slide of 16 : 9, in inches
_MARGIN, _TITLE, _TEXT = 0.4, 0.8, 1.35
_SIGNS = {
    "leftarrow": "←", "rightarrow": "→", "top": "ᵀ", "ell": "ℓ", "alpha": "α", "cdot": "·",
    "times": "×", "infty": "∞", "Sigma": "Σ", "sum": "Σ", "le": "≤", "ge": "≥",
    "approx": "≈", "phi": "φ", "theta": "θ", "pi": "π", "beta": "β", "gamma": "γ", "odot": "⊙",
    "in": "∈", "dots": "…", "ldots": "…", "cdots": "…", "Delta": "Δ", "delta": "δ", "lambda": "λ",
    "circ": "∘", "Theta": "Θ", "lceil": "⌈", "rceil": "⌉", "lfloor": "⌊", "rfloor": "⌋",
}  # fmt: skip
_SPACES = re.compile(r"\\[;,:! ]|\\quad|\\qquad|~")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_BRACES = re.compile(r"\\(?:left|right)(?![a-z])")
_NAMED = re.compile(r"\\(?:mathrm|text|operatorname|mathbf|mathit)\{([^{}]*)\}")
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\{([^{}]*)\}")
_SCRIPT = re.compile(r"([_^])(?:\{([^{}]*)\}|(\d))")
_HIGH_SIGNS = str.maketrans("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ")


def written(markdown: str) -> str:
    """Return a text as a slide has it: formulas in signs of Unicode, on one line."""
    out = ""
    for block in blocks(markdown):
        out += " " if out else ""
        for word in block.words:
            text = formula_text(word.text) if word.face is Face.MATHS else word.text
            out += text if word.glued or not out else f" {text}"
    return " ".join(out.split())


def formula_text(latex: str) -> str:
    """Return a formula on one line, with parentheses in place of braces."""
    text = _BRACES.sub("", _SPACES.sub(" ", latex)).replace("\\|", "‖")
    text = _COMMAND.sub(lambda found: _SIGNS.get(found[1], found[0]), text)
    text = text.replace("^{ᵀ}", "ᵀ").replace("^ᵀ", "ᵀ")
    before = ""
    while before != text:  # the innermost braces first
        before = text
        text = _ROOT.sub(lambda found: f"√{_held(found[1])}", _NAMED.sub(r"\1", text))
        text = _SCRIPT.sub(_script, text)
        text = _FRACTION.sub(lambda found: f"{_held(found[1])}/{_held(found[2])}", text)
    return " ".join(re.sub(r"[{}\\]", "", text).split())


def _held(text: str) -> str:
    """Return a text under a root or in a fraction: in parentheses unless it is one word."""
    return text if re.fullmatch(r"√?\w+", text) else f"({text})"


def _script(found: re.Match[str]) -> str:
    sign, text = found[1], found[2] or found[3] or ""
    if sign == "^" and all(ord(letter) in _HIGH_SIGNS for letter in text):
        return text.translate(_HIGH_SIGNS)
    whole = r"\w+" if sign == "_" else r"[^\W_]+"
    return sign + (text if re.fullmatch(whole, text) else f"({text})")


def pptx_bytes(source: FilmedPages, note: Note, report: Report, theme: str, target: str) -> bytes:
    """Return a file of slides."""
    deck = _Deck(THEMES[theme], target)
    for slide in slides_of(source, note, report, theme, MOST_FILMS):
        deck.add(slide)
    return deck.bytes(note)


class _Deck:
    """A file of slides that is being made."""

    def __init__(self, theme: Theme, target: str) -> None:
        try:
            self._library: Any = importlib.import_module("pptx")
            self._colour: Any = importlib.import_module("pptx.dml.color")
        except ImportError:
            wanted = f"the library python-pptx: {with_extra('slides')}"
            raise refuse("export", "-o", target, wanted) from None
        self._theme = theme
        self._deck = self._library.Presentation()
        self._deck.slide_width, self._deck.slide_height = _emu(_WIDE), _emu(_HIGH)
        self._title_only = self._deck.slide_layouts[5]

    def add(self, step: Slide) -> None:
        """Add a slide."""
        slide = self._deck.slides.add_slide(self._title_only)
        slide.background.fill.solid()
        slide.background.fill.fore_color.rgb = self._rgb(self._theme.window)
        wide = _WIDE - 2 * _MARGIN
        title = slide.shapes.title
        title.left, title.top = _emu(_MARGIN), _emu(0.15)
        title.width, title.height = _emu(wide), _emu(_TITLE)
        self._write(title.text_frame, [written(step.title)], 28, bold=True)
        room = _HIGH - 0.15 - _TITLE - _TEXT - _MARGIN
        scale = min(wide / step.size[0], room / step.size[1])
        w, h = step.size[0] * scale, step.size[1] * scale
        place = [_emu(side) for side in ((_WIDE - w) / 2, 0.15 + _TITLE, w, h)]
        if step.film is None:
            picture = slide.shapes.add_picture(io.BytesIO(step.picture), *place)
        else:
            picture = slide.shapes.add_movie(
                io.BytesIO(step.film), *place,
                poster_frame_image=io.BytesIO(step.picture), mime_type="video/mp4",
            )  # fmt: skip
        # The words of screen readers for the picture.
        picture._element._nvXxPr.cNvPr.set("descr", f"{written(step.title)}: the run at this step")
        box = slide.shapes.add_textbox(
            _emu(_MARGIN), _emu(_HIGH - _TEXT - _MARGIN / 2), _emu(wide), _emu(_TEXT)
        )
        box.text_frame.word_wrap = True
        lines = [written(part) for part in step.text.split("\n\n") if part.strip()]
        self._write(box.text_frame, [*lines, *([written(step.asked)] if step.asked else [])], 16)
        notes = [plain_text(part) for part in step.notes.split("\n\n") if part.strip()]
        slide.notes_slide.notes_text_frame.text = "\n".join(
            [*notes, *([step.told] if step.told else [])]
        )

    def _write(self, frame: Any, lines: list[str], points: int, *, bold: bool = False) -> None:
        for n, line in enumerate(lines):
            paragraph = frame.paragraphs[0] if n == 0 else frame.add_paragraph()
            run = paragraph.add_run()
            run.text = line
            run.font.size, run.font.bold, run.font.name = _emu(points / 72), bold, _FONT
            run.font.color.rgb = self._rgb(self._theme.text)

    def _rgb(self, colour: str) -> Any:
        return self._colour.RGBColor.from_string(colour.lstrip("#").upper())

    def bytes(self, note: Note) -> bytes:
        """Return the file."""
        about = self._deck.core_properties
        about.title, about.author = note.title[:255], f"Tilescope {note.version}"
        about.comments = note.command[:255]
        out = io.BytesIO()
        self._deck.save(out)
        return out.getvalue()


_FONT = TEXT_FAMILY.removesuffix(" Tabular")


def _emu(inches: float) -> int:
    return round(inches * _INCH)
