"""The bibliography: every citation has its paper, every paper is cited, and links are whole."""

import re

import pytest

from simulator.base.assets import ASSETS, LESSONS
from simulator.base.references import REFERENCES, citations, reference_called, references
from tests.docs_tables import DOCS
from ui.window.search.entries import SYNONYMS

CITED = re.compile(r"\b([A-Z][\w-]+(?: Team| et al\.| & [A-Z]\w+)? (?:19[5-9]|20[0-2])\d)\b(?!-\d)")
"""What looks like a citation."""
NO_PAPERS = {"January", "February", "March", "April", "June", "July", "August", "September",
             "October", "November", "December", "May", "In", "Of", "Since"}  # fmt: skip


def places():
    """Yield the files that have texts of the window, with those texts."""
    root = ASSETS.parent
    tables = [file for file in ASSETS.glob("*.toml") if file not in (REFERENCES, SYNONYMS)]
    for file in [*LESSONS.glob("*.md"), *tables, *(root / "ui").rglob("*.py")]:
        # A text of a panel may go on in the next line of the program.
        yield file, re.sub(r'"\s*\n\s*"', "", file.read_text(encoding="utf-8"))


def test_every_citation_has_its_paper_and_every_paper_is_cited():
    found = {}
    for file, text in places():
        for name in CITED.findall(text):
            if name.split()[0] not in NO_PAPERS:
                found.setdefault(name, file)
    unknown = {name: str(file) for name, file in found.items() if reference_called(name) is None}
    assert not unknown, "assets/references.toml lacks them"
    cited = {reference_called(name).name for name in found}
    assert cited == {paper.name for paper in references()}


def test_papers_have_a_link_a_year_and_a_place_of_their_own():
    assert len({paper.link for paper in references()}) == len(references())
    for paper in references():
        assert re.fullmatch(r"https://[\w.-]+/\S+", paper.link), paper
        if number := re.search(r"arXiv (\d{4}\.\d{5})", paper.venue):
            assert paper.link == f"https://arxiv.org/abs/{number[1]}"
        if found := re.search(r"/abs/(\d\d)\d\d\.\d{5}$", paper.link):
            # A paper is in arXiv in the year of its citation, or up to two years before.
            assert 0 <= int(paper.name[-2:]) - int(found[1]) <= 2, paper
        surname = re.split(r" et al| & |-| Team| \d", paper.name)[0]
        assert surname in paper.authors


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("As in (Dao et al. 2022, Dao 2023).", ["Dao et al. 2022", "Dao 2023"]),
        ("Milakov & Gimelshein 2018 and Liu et al. 2024.",
         ["Milakov & Gimelshein 2018", "DeepSeek-AI 2024"]),
        ("Dao et al. 2022 and Dao et al. 2022", ["Dao et al. 2022"]),
        ("in 2017, Vaswani 2017, Xiao et al. 20231", []),
    ],
)  # fmt: skip
def test_papers_are_found_where_they_are_cited(text, names):
    found = citations(text)
    assert [cited.paper.name for cited in found] == names
    for cited in found:
        assert text[cited.start : cited.stop] in (cited.paper.name, *cited.paper.also)


def test_the_page_has_every_link():
    page = (DOCS / "bibliography.md").read_text(encoding="utf-8")
    for paper in references():
        assert f"<{paper.link}>" in page
