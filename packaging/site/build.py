"""`make site`: docs, all lessons and demos as pages that step, and a gallery, as files to serve.

    python packaging/site/build.py [--only NAME...] [--keep] [--jobs N | --cluster ADDRESS]

The command `export` makes pages and pictures, each a part of the work, and MkDocs the rest.
The last step looks at every link of every page and fails if one leads nowhere.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from ui.session.shards import Shards

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD, SITE = ROOT / "build" / "site", ROOT / "dist" / "site"
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
LINK = re.compile(r"(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")


def main() -> None:
    """Build the site into dist/site."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="of lessons and demos, these")
    parser.add_argument(
        "--keep", action="store_true", help="make no page or picture that is there from before"
    )
    sys.path.insert(0, str(ROOT))
    from ui.session import shards

    shards.add_options(parser)
    asked = parser.parse_args()
    if asked.jobs is None and asked.cluster is None:
        asked.jobs = min(os.cpu_count() or 1, 16)
    pages = BUILD / "pages"
    if not asked.keep:
        shutil.rmtree(BUILD, ignore_errors=True)
    write_pages(pages)
    write_lists(pages, asked.only)
    with shards.asked_for(asked) as places:
        assert places is not None
        make_exports(exports(pages, asked.only), places)
    shutil.copy(HERE / "mkdocs.yml", BUILD / "mkdocs.yml")
    for name in ("site.css", "site.js"):
        shutil.copy(HERE / name, pages / name)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--clean"]
    subprocess.run(command, cwd=BUILD, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    broken = broken_links(SITE)
    for line in broken:
        print(line, file=sys.stderr)
    files = [path for path in SITE.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    print(f"{SITE}: {len(files)} files, {size / 1e6:.1f} MB, {len(broken)} broken links")
    sys.exit(bool(broken))


def write_pages(pages: Path) -> None:
    """Copy the pages of the checkout, and the files that they link to, to the same places."""
    nowhere = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "docs", pages / "docs", ignore=nowhere, dirs_exist_ok=True)
    for name in PAGES:
        shutil.copy(ROOT / name, pages / name)
    shutil.copy(ROOT / "README.md", pages / "index.md")
    for page in sorted(pages.rglob("*.md")):
        text = LINK.sub(
            lambda found, page=page: _linked(found, page, pages), page.read_text("utf-8")
        )
        page.write_text(text, encoding="utf-8")


def _linked(found: re.Match[str], page: Path, pages: Path) -> str:
    """Return a link as it is, after copying what it leads to; a folder gets a list of its files."""
    link, anchor = found[1], found[2] or ""
    if urlsplit(link).scheme:
        return found[0]
    there = (page.parent / link).resolve()
    source = ROOT / there.relative_to(pages)
    if source == ROOT / "README.md":
        return os.path.relpath(pages / "index.md", page.parent) + anchor
    if source.is_dir():
        there.mkdir(parents=True, exist_ok=True)
        names = sorted(path.name for path in source.iterdir() if path.is_file())
        for name in names:
            shutil.copy(source / name, there / name)
        lines = [f"# {source.name}", "", *(f"- [{name}]({name})" for name in names), ""]
        (there / "index.md").write_text("\n".join(lines), encoding="utf-8")
        return f"{link}/index.md"
    if not there.exists() and source.exists():
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, there)
    return found[0]


def write_lists(pages: Path, only: Sequence[str] | None = None) -> None:
    """Write the page with all lessons, by part, and the one with pictures of all demos."""
    from simulator.base.assets import SCENARIOS
    from simulator.lesson.course import parts
    from simulator.problem.scenario import load_scenario

    lines = ["# Lessons", "", "Each page steps by the arrow keys, and works without a network.", ""]
    for part in parts():
        lessons = [each for each in part.lessons if only is None or each.path.stem in only]
        rows = [f"- [{each.title}]({each.path.stem}.html): {each.summary}" for each in lessons]
        lines += [f"## {part.title}", "", *rows, ""] if rows else []
    (pages / "lessons").mkdir(parents=True, exist_ok=True)
    (pages / "lessons" / "index.md").write_text("\n".join(lines), encoding="utf-8")
    lines = ["# Runs that step", "", "A page for each demo.", "", '<ul class="runs">']
    for path in sorted(SCENARIOS.glob("*.toml")):
        if only is None or path.stem in only:
            picture = f'<img src="{path.stem}.png" alt="" loading="lazy">'  # the title says it
            title = escape(load_scenario(path).title)
            lines.append(f'<li><a href="{path.stem}.html">{picture}{title}</a></li>')
    lines += ["</ul>", ""]
    (pages / "runs").mkdir(parents=True, exist_ok=True)
    (pages / "runs" / "index.md").write_text("\n".join(lines), encoding="utf-8")


def exports(pages: Path, only: Sequence[str] | None = None) -> list[list[str]]:
    """Return the words of `export` for the pages of lessons and demos, and a picture of a demo.

    What is there already is not made again.
    """
    from simulator.base.assets import LESSONS, SCENARIOS

    made = []
    for folder, sources, ends in (
        ("lessons", LESSONS.glob("*.md"), ("html",)),
        ("runs", SCENARIOS.glob("*.toml"), ("html", "png")),
    ):
        for path in sorted(sources):
            for end in ends:
                target = pages / folder / f"{path.stem}.{end}"
                if (only is None or path.stem in only) and not target.exists():
                    out = _short(target)
                    size = ["--size", "640x360"] if end == "png" else []
                    made.append([_short(path), "-o", out, *size])
    return made


def _short(path: Path) -> str:
    """Return a path as it is called from the checkout: pages show the command that made them."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def make_exports(every: Sequence[Sequence[str]], places: Shards) -> None:
    """Write the files that commands of `export` ask for, made in places."""
    from ui.app.export_shards import made_by
    from ui.session.shards import mapped

    for words, (data, said) in zip(every, mapped(places, made_by, every), strict=True):
        (ROOT / words[words.index("-o") + 1]).write_bytes(data)
        print(said, flush=True)


class _Links(HTMLParser):
    """What a page links to or shows."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {"a": "href", "link": "href", "img": "src", "script": "src"}
        self.found += [value for name, value in attrs if value and name == names.get(tag)]


def broken_links(site: Path) -> list[str]:
    """Return the links of all pages that lead to no file, with their pages."""
    wrong = []
    for page in sorted(site.rglob("*.html")):
        links = _Links()
        links.feed(page.read_text("utf-8"))
        for link in dict.fromkeys(links.found):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or not parts.path:
                continue
            base = site if parts.path.startswith("/") else page.parent
            there = base / unquote(parts.path).lstrip("/")
            if not (there.is_file() or (there / "index.html").is_file()):
                wrong.append(f"{page.relative_to(site)}: {link}")
    return wrong


if __name__ == "__main__":
    main()
