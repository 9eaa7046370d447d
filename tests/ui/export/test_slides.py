"""Slides, read back by python-pptx; films in them by PyAV."""

import io
import re
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from simulator.base.errors import InputError
from simulator.lesson.reader import load_lesson
from simulator.program.playback import Granularity, end_of_visit
from simulator.run.trace import simulate
from tests.ui.export.helpers import DEMO, make, still
from tests.ui.export.test_html_page import LESSON
from ui.export.job import prepare_lesson
from ui.export.options import ExportOptions
from ui.export.stepping import MOST_SLIDES, stops_of
from ui.export.writers import pptx
from ui.export.writers.metadata import read_note
from ui.export.writers.pptx import formula_text, written
from ui.look.layouts import LAYOUT_PANELS
from ui.widgets.application import application
from ui.window.main_window import MainWindow


def opened(path: Path):
    return pytest.importorskip("pptx").Presentation(str(path))


def words(slide) -> str:
    return "\n".join(shape.text_frame.text for shape in slide.shapes if shape.has_text_frame)


def films(slide) -> list[bytes]:
    return [
        part.related_part.blob if hasattr(part, "related_part") else part.target_part.blob
        for part in slide.part.rels.values()
        if part.reltype.endswith("/media")
    ]


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"O \leftarrow \alpha\,O + P V", "O ← α O + P V"),
        (r"S \leftarrow Q K^{\top}\!\cdot \mathrm{scale}", "S ← Q Kᵀ · scale"),
        (r"\mathrm{LSE} \leftarrow m + \ln \ell", "LSE ← m + ln ℓ"),
        (r"\frac{1}{\sqrt{d}}", "1/√d"),
        (r"\frac{a + b}{\sqrt{d + 1}}", "(a + b)/(√(d + 1))"),
        (r"e^{s - m}", "e^(s - m)"),
        (r"p_j = e^{s_j} / \sum_k e^{s_k}", "p_j = e^(s_j) / Σ_k e^(s_k)"),
        (r"P_{ij} \leftarrow e^{S_{ij} - \mathrm{LSE}_i}", "P_ij ← e^(S_ij - LSE_i)"),
        (r"\alpha = e^{m_{\mathrm{old}} - m}", "α = e^(m_old - m)"),
        (r"e^{-\|q - k\|^2 / 2}", "e^(-‖q - k‖² / 2)"),
        (r"\Theta(N^{2} d^2 / M) + 2^{-3}", "Θ(N² d² / M) + 2⁻³"),
    ],
)
def test_a_formula_is_written_on_one_line(latex, text):
    assert formula_text(latex) == text
    assert written(f"So ${latex}$.") == f"So {text}."


def test_slides_of_a_run_go_by_tile_and_of_a_longer_one_by_row_block():
    program = simulate(DEMO).program
    stops, by = stops_of(program, range(len(program)), None, slides=True)
    assert by is Granularity.TILE
    assert [stop.cursor for stop in stops] == [end_of_visit(program, n) for n in range(10)]
    long = simulate(DEMO.with_name("real-scale.toml")).program
    stops, by = stops_of(long, range(len(long)), None, slides=True)
    assert len(stops) <= MOST_SLIDES < len(long)


def test_without_the_library_a_line_says_how_to_get_it(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(pptx.importlib, "import_module", missing)
    target = tmp_path / "run.pptx"
    with pytest.raises(InputError, match="EXTRAS=slides"):
        make(still(target, visits=(0, 1)))
    assert not target.exists()


@pytest.mark.long
def test_a_tile_is_a_slide_with_its_film(tmp_path, monkeypatch):
    pytest.importorskip("pptx")
    monkeypatch.setattr(pptx, "MOST_FILMS", 1)
    target = tmp_path / "run.pptx"
    make(still(target, visits=(8, 10)))
    deck = opened(target)
    first, second = deck.slides
    assert "tile (3, 2)" in words(first)
    assert "Visit 9 of 10" in words(first)
    assert "tile (3, 3)" in words(second)
    (film,) = films(first)[:1]
    assert not films(second), "after so many films there are stills"
    with av.open(io.BytesIO(film)) as box:
        stream = box.streams.video[0]
        assert (stream.width, stream.height) == (480, 320)
        last = list(box.decode(video=0))[-1].to_ndarray(format="rgb24").astype(int)
    blob = next(shape for shape in first.shapes if hasattr(shape, "poster_frame")).poster_frame.blob
    with Image.open(io.BytesIO(blob)) as image:
        shown = np.asarray(image.convert("RGB")).astype(int)
    assert np.abs(last - shown).mean() < 6, "the film ends with its poster"
    assert "python -m ui export" in second.notes_slide.notes_text_frame.text


@pytest.mark.long
def test_a_lesson_has_a_slide_for_each_step_and_each_answer(tmp_path):
    pytest.importorskip("pptx")
    application()
    source, target = tmp_path / "two.md", tmp_path / "two.pptx"
    source.write_text(LESSON, "utf-8")
    wanted = ExportOptions(str(target), size=(960, 540), lesson=True)
    lesson = load_lesson(source, LAYOUT_PANELS)
    prepare_lesson(lesson, wanted, str(source), "0.1.0", MainWindow).make(lambda share: None)
    found = [*opened(target).slides]
    assert [slide.shapes.title.text_frame.text for slide in found] == [
        "The first tile", "The maximum", "The maximum",
    ]  # fmt: skip
    assert "The row sees 21 keys of Kᵀ." in words(found[0])
    assert "Say" in found[0].notes_slide.notes_text_frame.text
    assert "What is it for?" in words(found[1])
    assert "For safety." not in words(found[1])
    assert "For safety." in words(found[2])
    assert films(found[1])
    assert not films(found[2])


@pytest.mark.long
def test_a_folder_of_slides_is_whole_and_asks_nobody_for_anything(tmp_path):
    target = tmp_path / "run.reveal"
    export = make(still(f"{target}/", visits=(8, 10)))
    page = (target / "index.html").read_text("utf-8")
    assert page.count("<section>") == 2
    assert "tile (3, 2)" in page
    named = re.findall(r'(?:src|poster|href)="([^"#]+)"|url\("([^"]+)"\)', page)
    files = {"".join(each) for each in named} - {"data:,"}
    assert all((target / name).is_file() for name in files), "every file is in the folder"
    (first, _) = [name for name in sorted(files) if name.endswith(".mp4")]
    with av.open(target / first) as box:
        assert len(list(box.decode(video=0))) > 10
    assert read_note(target / "index.html") == export.note
    assert page.count('class="notes"') == 2
    make(still(str(target), visits=(9, 10)))  # a folder of ours is replaced whole
    assert len([*(target / "media").glob("*.mp4")]) == 1
    assert [*tmp_path.iterdir()] == [target]


def test_a_folder_of_somebody_else_is_not_replaced(tmp_path):
    target = tmp_path / "mine.reveal"
    target.mkdir()
    (target / "a.txt").write_text("kept")
    with pytest.raises(InputError, match="a new folder"):
        make(still(target, visits=(8, 9)))
    assert (target / "a.txt").read_text() == "kept"
