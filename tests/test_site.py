"""Pages of the site lead somewhere, and a link that does not is told."""

import importlib.util
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest

from simulator.base.assets import LESSONS, SCENARIOS

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "packaging/site/build.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_link_of_every_page_leads_to_a_file_of_the_site(
    site: ModuleType, tmp_path: Path
) -> None:
    site.write_pages(tmp_path)
    site.write_lists(tmp_path)
    for command in site.exports(tmp_path):
        Path(command[command.index("-o") + 1]).touch()
    pages = sorted(tmp_path.rglob("*.md"))
    assert len(pages) > 20
    for page in pages:
        links = [found[1] for found in site.LINK.finditer(page.read_text("utf-8"))]
        told = [link for link in links if not urlsplit(link).scheme]
        assert [link for link in told if not (page.parent / link).is_file()] == [], page
    listed = {path.stem for path in (tmp_path / "lessons").glob("*.html")}
    assert listed == {path.stem for path in LESSONS.glob("*.md")}
    text = (tmp_path / "lessons" / "index.md").read_text("utf-8")
    assert all(f"({stem}.html)" in text for stem in listed)
    runs = (tmp_path / "runs" / "index.md").read_text("utf-8")
    assert all(f'href="{path.stem}.html"' in runs for path in SCENARIOS.glob("*.toml"))


def test_a_page_in_the_menu_is_a_page_of_the_site(site: ModuleType, tmp_path: Path) -> None:
    import yaml

    site.write_pages(tmp_path)
    site.write_lists(tmp_path)
    menu = yaml.safe_load((ROOT / "packaging/site/mkdocs.yml").read_text("utf-8"))["nav"]
    entries = [below for entry in menu for each in entry.values()
               for below in ([each] if isinstance(each, str) else each)]  # fmt: skip
    pages = [
        page for each in entries for page in ([each] if isinstance(each, str) else each.values())
    ]
    assert len(pages) > 15
    assert [page for page in pages if not (tmp_path / page).is_file()] == []
    shown = {*pages, "docs/beside-others.md"}
    assert [p.name for p in (ROOT / "docs").glob("*.md") if f"docs/{p.name}" not in shown] == []


def test_a_broken_link_is_told_with_its_page(site: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "index.html").write_text('<img src="../a%20b.png"><a href="https://x/y">')
    (tmp_path / "a b.png").touch()
    (tmp_path / "index.html").write_text(
        '<a href="there/">1</a><a href="#up">2</a><a href="gone.html#x">3</a><img src="/no.png">'
    )
    assert site.broken_links(tmp_path) == ["index.html: gone.html#x", "index.html: /no.png"]
