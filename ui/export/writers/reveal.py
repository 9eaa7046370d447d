"""Slides as a folder that a browser shows, by reveal.js, which ships in assets/reveal."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

from simulator.base.assets import ASSETS
from ui.export.slides import FilmedPages, Slide, slides_of
from ui.export.writers.html import COLOURS, FONTS, inline_html, text_html
from ui.export.writers.metadata import Note
from ui.look.theme import THEMES
from ui.session.tasks import Report

_BROUGHT = ("reveal.js", "reveal.css", "notes.js", "MIT-reveal.txt", "MIT-marked.txt")


def write_reveal(source: FilmedPages, note: Note, report: Report, theme: str, folder: Path) -> None:
    """Write slides into a folder: its `index.html` shows them, and loads nothing from elsewhere."""
    for name, files in (("reveal", _BROUGHT), ("fonts", [f"{each[2]}.ttf" for each in FONTS])):
        (folder / name).mkdir()
        for file in files:
            shutil.copyfile(ASSETS / name / file, folder / name / file)
    shutil.copyfile(ASSETS / "page" / "slides.css", folder / "reveal" / "slides.css")
    shutil.copyfile(ASSETS / "page" / "slides.js", folder / "reveal" / "slides.js")
    (folder / "media").mkdir()
    every = slides_of(source, note, report, theme, sys.maxsize)
    shown = [_section(slide, folder) for slide in every]
    page = "".join(_page(source.title, shown, note, theme))
    (folder / "index.html").write_text(page, encoding="utf-8", newline="\n")
    report(1.0)


def _section(slide: Slide, folder: Path) -> str:
    """Return a slide as HTML, and write its picture and film beside the page."""
    picture = _stored(folder, slide.picture, "png")
    about = escape(f"{slide.title}: the run at this step")
    size = 'width="{}" height="{}"'.format(*slide.size)
    shown = f'<img src="{picture}" alt="{about}" {size}>'
    if slide.film is not None:
        film = _stored(folder, slide.film, "mp4")
        shown = (
            f'<video data-src="{film}" poster="{picture}" {size} aria-label="{about}" '
            'data-autoplay muted playsinline preload="auto"></video>'  # once its slide is near
        )
    asked = f'<div class="asked">{text_html(slide.asked)}</div>' if slide.asked else ""
    told = f"<pre>{escape(slide.told)}</pre>" if slide.told else ""
    still = f'<img src="{picture}" alt="" style="max-width:100%">'
    return (
        f"<section><h2>{inline_html(slide.title)}</h2><figure>{shown}</figure>"
        f'<div class="said">{text_html(slide.text)}{asked}</div>'
        f'<aside class="notes">{text_html(slide.notes)}{still}{told}</aside></section>\n'
    )


def _stored(folder: Path, data: bytes, ending: str) -> str:
    """Return the name of a file with these contents; the file is written only once."""
    name = f"media/{hashlib.sha256(data).hexdigest()[:16]}.{ending}"
    if not (folder / name).exists():
        (folder / name).write_bytes(data)
    return name


def _page(title: str, sections: list[str], note: Note, theme: str) -> Iterator[str]:
    colours = "".join(f"--{each}:{getattr(THEMES[theme], each)};" for each in COLOURS)
    scheme = "dark" if THEMES[theme].dark else "light"
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width">\n'
    yield f'<meta name="generator" content="Tilescope {escape(note.version)}">\n'
    yield f'<meta name="tilescope" content="{escape(note.text)}">\n'
    yield f"<title>{escape(title)}</title>\n"
    yield '<link rel="icon" href="data:,">\n'
    yield '<link rel="stylesheet" href="reveal/reveal.css">\n<style>\n'
    for family, weight, file in FONTS:
        yield f'@font-face{{font-family:"{family}";font-weight:{weight};'
        yield f'src:url("fonts/{file}.ttf") format("truetype")}}\n'
    yield f":root{{color-scheme:{scheme};{colours}}}\n</style>\n"
    yield '<link rel="stylesheet" href="reveal/slides.css">\n</head>\n<body>\n'
    yield '<div class="reveal"><div class="slides">\n'
    yield from sections
    yield "</div></div>\n"
    for script in ("reveal", "notes", "slides"):
        yield f'<script src="reveal/{script}.js"></script>\n'
    yield "</body>\n</html>\n"
