"""A page that steps, as one file of HTML: it loads nothing from elsewhere."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from html import escape
from typing import Any

from PySide6.QtCore import QSize

from simulator.base.assets import ASSETS
from simulator.lesson.predict import Prediction
from ui.export.stepping import PageSource, PageStep, Values
from ui.export.writers.fragments import Edits, Fragments, edits
from ui.export.writers.metadata import Note
from ui.export.writers.vector import commands
from ui.look.flow import Face, FlowWord
from ui.look.formula import formula
from ui.look.theme import CODE_FAMILY, SYMBOL_FAMILY, TEXT_FAMILY, THEMES
from ui.session.tasks import Report
from ui.talk.caption_text import blocks, plain_text
from ui.talk.prediction import wanted
from ui.talk.prediction import written as said

FONTS = (
    (TEXT_FAMILY, 400, "Inter-Regular"),
    (TEXT_FAMILY, 600, "Inter-SemiBold"),
    (CODE_FAMILY, 400, "JetBrainsMono-Regular"),
    (SYMBOL_FAMILY, 400, "TilescopeSymbols-Regular"),
)
COLOURS = ("window", "panel", "field", "border", "text", "muted", "faint", "current")
_FORMULA = 19.0  # letters of a formula in a caption, in pixels
_FORMULA_PATH = re.compile(r'(?<=">)<path d="([^"]*)"/>(?=</svg>)')
_POLICY = (
    "default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'"
)
_BUTTONS = (
    ("first", "|&lt;", "First step (Home)"),
    ("back", "&lt;", "Step back (left arrow)"),
    ("play", "Play", "Play or pause (P)"),
    ("forth", "&gt;", "Step forward (right arrow, space)"),
    ("last", "&gt;|", "Last step (End)"),
)


def html_bytes(
    source: PageSource,
    note: Note,
    report: Report,
    theme: str = "dark",
    *,
    both: bool = True,
    start: int = 0,
) -> bytes:
    """Return a page of all steps, beginning with step `start` in the colours of `theme`."""
    other = "light" if THEMES[theme].dark else "dark"
    themes = (theme, other) if both else (theme,)
    steps: list[PageStep] = []
    values: list[Values | None] = []
    seen: list[str] = []
    total = len(source)
    fragments = Fragments()
    drawings: dict[str, list[list[Edits]]] = {}
    for t, name in enumerate(themes):
        before: list[int] = []
        drawings[name] = []
        for n in range(total):
            share = (t + n / total) / len(themes)
            row: list[Edits] = []
            if t == 0:
                steps.append(source.step(n, name, partial(report, share)))
            for k in range(steps[n].pictures):
                report(share)
                source.make_ready(n, k, name, partial(report, share))
                layers = source.layers(n, k, name)
                drawing = fragments.drawing(layers, QSize(*source.size))
                row.append(edits(before, drawing))
                before = drawing
            drawings[name].append(row)
            if t == 0:
                values.append(source.values(n))
                about = plain_text(steps[n].title), source.description(n)
                seen.append(". ".join(filter(None, about)))
    data = _data(source, steps, values, fragments, drawings)
    data |= {"seen": seen, "start": start}
    return "".join(_written(source, steps, data, note, themes)).encode("utf-8")


def _data(
    source: PageSource,
    steps: list[PageStep],
    values: list[Values | None],
    fragments: Fragments,
    drawings: dict[str, list[list[Edits]]],
) -> dict[str, Any]:
    """Return the data that the script reads."""
    places: list[Any] = []
    found: list[list[int] | None] = []
    for each in values:
        if each is None:
            found.append(None)
            continue
        if each.place not in places:
            places.append(each.place)
        found.append([places.index(each.place), each.run, each.sheet])
    return {
        "pieces": fragments.parts,
        "shared": "".join(fragments.shared.values()),
        "pictures": drawings,
        "seconds": [step.seconds for step in steps],
        "view": source.view,
        "places": places,
        "runs": [sheets.told() for sheets in source.sheets],
        "values": found,
    }


def _written(
    source: PageSource,
    steps: list[PageStep],
    data: dict[str, Any],
    note: Note,
    themes: tuple[str, ...],
) -> Iterator[str]:
    view = " ".join(f"{side:g}" for side in source.view)
    yield f'<!DOCTYPE html>\n<html lang="en" data-theme="{themes[0]}">\n<head>\n'
    yield '<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
    yield f'<meta name="generator" content="Tilescope {escape(note.version)}">\n'
    yield f'<meta name="tilescope" content="{escape(note.text)}">\n'
    yield f"<title>{escape(source.title)}</title>\n<style>\n"
    yield from map(_font_face, FONTS)
    for name in themes:
        theme = THEMES[name]
        colours = "".join(f"--{each}:{getattr(theme, each)};" for each in COLOURS)
        scheme = "dark" if theme.dark else "light"
        yield f'[data-theme="{name}"]{{color-scheme:{scheme};{colours}}}\n'
    yield (ASSETS / "page" / "page.css").read_text("utf-8")
    yield "</style>\n</head>\n<body>\n"
    yield f"<header><h1>{escape(source.title)}</h1>"
    yield f"<p>{escape(source.summary)}</p></header>\n"
    paths: dict[str, str] = {}
    articles = "".join(_article(n, step, view) for n, step in enumerate(steps))
    articles = _FORMULA_PATH.sub(partial(_used, paths), articles)
    yield '<svg id="formulas" aria-hidden="true">'
    yield from (f'<path id="{name}" d="{path}"/>' for path, name in paths.items())
    yield '</svg>\n<svg id="shared" aria-hidden="true"></svg>\n<main>\n'
    yield f'<figure><svg id="picture" role="img" viewBox="{view}"></svg></figure>\n'
    yield '<nav aria-label="Steps">'
    for name, words, told in _BUTTONS:
        yield f'<button id="{name}" title="{told}" aria-label="{told}">{words}</button>'
    yield f'<input id="place" type="range" min="1" max="{len(steps)}" value="1" aria-label="Step">'
    yield '<span id="count"></span>'
    yield '<button id="notes" title="Notes (N)" aria-pressed="false">Notes</button>'
    yield '<button id="theme" title="Other colours (T)"></button></nav>\n'
    yield '<div id="live" role="status" aria-live="polite"></div>\n'
    yield articles
    yield '</main>\n<div id="value" hidden></div>\n'
    yield "<noscript>The pictures and the steps need JavaScript; the words do not.</noscript>\n"
    yield f"<footer>{escape(source.words)}. Made by Tilescope {escape(note.version)}"
    yield f" with <code>{escape(note.command)}</code>. Arrows, space, Home and End step; N shows"
    colours = ", T changes the colours" if len(themes) > 1 else ""
    yield f" the notes, P plays{colours}.</footer>\n"
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    yield f'<script type="application/json" id="data">{packed}</script>\n<script>\n'
    yield (ASSETS / "page" / "page.js").read_text("utf-8")
    yield "</script>\n</body>\n</html>\n"


def _used(paths: dict[str, str], found: re.Match[str]) -> str:
    """Return a reference to a formula's outlines, which are stored once."""
    return f'<use href="#{paths.setdefault(found[1], f"f{len(paths)}")}"/>'


def _font_face(font: tuple[str, int, str]) -> str:
    family, weight, file = font
    packed = base64.b64encode((ASSETS / "fonts" / f"{file}.ttf").read_bytes()).decode()
    return (
        f'@font-face{{font-family:"{family}";font-weight:{weight};'
        f'src:url("data:font/ttf;base64,{packed}") format("truetype")}}\n'
    )


def _article(n: int, step: PageStep, view: str) -> str:
    out = [f'<article class="step" id="{n + 1}"><div class="said">']
    out.append(f'<h2><a href="#{n + 1}">{inline_html(step.title)}</a></h2>')
    out.append(text_html(step.text))
    if step.question:
        out.append(f'<div class="question">{text_html(step.question)}')
        out.append('<button class="ask">Show the answer</button>')
        out.append(f'<div class="answer" hidden>{text_html(step.answer)}</div></div>')
    if step.prediction is not None:
        out.append(_asked(step.prediction))
    out.append("</div>")
    if step.notes:
        out.append(f'<aside class="note" aria-label="Notes">{text_html(step.notes)}</aside>')
    out.append(f'<svg class="paper" viewBox="{view}" role="img" aria-hidden="true"></svg>')
    out.append("</article>\n")
    return "".join(out)


def _asked(asked: Prediction) -> str:
    """Return the fields for the answer to a question, and the true answer, which is hidden."""
    truth = asked.truth
    out = [f'<div class="question" data-truth="{truth!r}" data-within="{asked.within!r}">']
    if asked.choices:
        for n, choice in enumerate(asked.choices):
            out.append(f'<button class="choice" value="{n}">{inline_html(choice)}</button> ')
    else:
        out.append(f'<label>{escape(wanted(asked))} <input class="guess" inputmode="decimal">')
        out.append('</label> <button class="check">Check</button> ')
    out.append('<button class="ask">Show the answer</button>')
    out.append(f'<div class="answer" hidden><span class="verdict"></span> Computed: '
               f'{escape(said(asked, truth))}.</div></div>')  # fmt: skip
    return "".join(out)


# --- texts ------------------------------------------------------------------------------------


def text_html(markdown: str) -> str:
    """Return a text as paragraphs; items of lists keep their marks."""
    out = []
    for block in blocks(markdown):
        mark = f"{escape(block.mark)} " if block.mark else ""
        inset = f' style="margin-left:{1.2 * block.level:g}em"' if block.level else ""
        out.append(f"<p{inset}>{mark}{_words(block.words)}</p>")
    return "".join(out)


def inline_html(markdown: str) -> str:
    """Return a text as one line."""
    return " ".join(_words(block.words) for block in blocks(markdown))


def _words(words: tuple[FlowWord, ...]) -> str:
    out = ""
    for word in words:
        out += ("" if word.glued or not out else " ") + _FACES[word.face](word.text)
    return out


@lru_cache(maxsize=512)
def _formula(latex: str) -> str:
    """Return a formula as a drawing that is read aloud as LaTeX."""
    drawn = formula(latex, _FORMULA)
    path = drawn.path
    wide, high = drawn.width + 1, drawn.ascent + drawn.descent + 1
    return (
        f'<svg class="formula" role="img" aria-label="{escape(latex)}" '
        f'style="width:{wide / 18:.3f}em;height:{high / 18:.3f}em;'
        f'vertical-align:{-drawn.descent / 18:.3f}em" '
        f'viewBox="0 {-drawn.ascent:.2f} {wide:.2f} {high:.2f}"><path d="{commands(path)}"/></svg>'
    )


_FACES: dict[Face, Callable[[str], str]] = {
    Face.TEXT: lambda text: escape(text, quote=False),
    Face.BOLD: lambda text: f"<strong>{escape(text, quote=False)}</strong>",
    Face.ITALIC: lambda text: f"<em>{escape(text, quote=False)}</em>",
    Face.CODE: lambda text: f"<code>{escape(text, quote=False)}</code>",
    Face.MATHS: _formula,
}
