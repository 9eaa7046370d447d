"""Layouts of the window as scenes, and what the window makes in a process of its own."""

import threading
from pathlib import Path

import numpy as np
import pypdf
import pytest
from PySide6.QtCore import QObject, QSize, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QMessageBox

from simulator.base.errors import InputError
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.playback import Cursor
from simulator.run.trace import simulate
from tests.helpers.by_hand import choosing, retype
from tests.ui.export.helpers import DEMO, command, frames_of, make, names, options, picture, still
from tests.ui.export.test_lessons import LESSON
from ui.export.dialog import ExportDialog
from ui.export.frames import new_image, paint_frame
from ui.export.options import ExportOptions
from ui.export.pipe import make_beside
from ui.export.unseen_window import picture_size
from ui.export.writers.metadata import read_note, read_scenario
from ui.export.writers.pixels import pixels_of
from ui.look.layouts import LAYOUT_NAMES, LAYOUTS
from ui.look.theme import hall_scale
from ui.session.tasks import Cancelled
from ui.window.main_window import MainWindow

SMALL = (480, 320)


@pytest.fixture(scope="module")
def trace():
    return simulate(DEMO)


@pytest.fixture(scope="module")
def stills(trace, tmp_path_factory):
    """Return the picture of every layout."""
    folder = tmp_path_factory.mktemp("layouts")
    for name in LAYOUT_NAMES:
        make(still(folder / f"{name}.png", scene=name, visits=(4, 5), op=2, row=33), trace)
    return folder


@pytest.mark.long
def test_every_layout_is_a_picture_of_that_size(stills):
    pictures = [picture(stills / f"{name}.png") for name in LAYOUT_NAMES]
    assert len(pictures) == len(LAYOUTS) > 8
    assert {p.shape for p in pictures} == {(320, 480, 3)}
    assert len({p.tobytes() for p in pictures}) == len(pictures)
    assert min(p.std() for p in pictures) > 10  # something is seen


@pytest.mark.long
def test_the_order_of_layouts_makes_no_difference(stills, trace, tmp_path):
    from ui.export.unseen_window import UnseenWindow, WindowPlace

    unseen, place = UnseenWindow(SMALL, "dark", MainWindow, trace=trace), {}
    for name in LAYOUT_NAMES:
        place[name] = WindowPlace(trace.workload.scenario, Cursor(4, 2), 33, name)
    try:
        for name in [*reversed(LAYOUT_NAMES), *LAYOUT_NAMES]:
            unseen.show(place[name], lambda: None)
            source = _Painted(unseen)
            image = paint_frame(source, 0, new_image(source))
            shown = pixels_of(image)[..., 2::-1]
            still = picture(stills / f"{name}.png")
            # Edges of the largest letters differ by up to three shades when the machine is busy.
            off = np.abs(shown.astype(int) - still.astype(int))
            assert off.max() <= 3, name
            assert (off > 0).any(axis=2).sum() < 400, name
    finally:
        unseen.close()


class _Painted:
    """An unseen window as a source of the one frame that it shows."""

    size, transparent, in_gui = SMALL, False, True

    def __init__(self, unseen):
        self.paint = lambda painter, k: unseen.paint(painter)


@pytest.mark.long
def test_a_film_of_a_layout_shows_every_state(trace, tmp_path):
    wanted = options(tmp_path / "a.apng", scene="algorithm", visits=(3, 5), length=2.0)
    export = make(wanted, trace)
    shown = frames_of(tmp_path / "a.apng")
    keys = [export.source.key(k) for k in range(len(export.source))]
    assert len(shown) == len(keys) == 20
    assert len({frame.tobytes() for frame in shown}) == len(set(keys)) > 12
    assert not [t for t in threading.enumerate() if t.name in ("paint", "encode", "engine")]


@pytest.mark.parametrize("theme", ["light", "contrast"])
def test_themes(theme, trace, tmp_path):
    make(still(tmp_path / "a.png", scene="steps", theme=theme), trace)
    corner = picture(tmp_path / "a.png")[316, 4]
    assert corner.mean() > 200 if theme == "light" else corner.mean() < 60


@pytest.mark.long
def test_an_svg_of_a_layout_has_outlines_with_their_words(trace, tmp_path):
    make(still(tmp_path / "a.svg", scene="steps"), trace)
    text = (tmp_path / "a.svg").read_text()
    assert "<text" not in text
    assert 'aria-label="CPU · NumPy"' in text


def test_a_pdf_of_a_layout_has_letters(trace, tmp_path):
    make(still(tmp_path / "a.pdf", scene="steps", size=(960, 540)), trace)
    (page,) = pypdf.PdfReader(tmp_path / "a.pdf").pages
    assert "FlashAttention-2" in page.extract_text()
    assert (float(page.mediabox.width), float(page.mediabox.height)) == (480, 270)


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    ("size", "window", "scale"),
    [
        ((480, 320), (1280, 853), 1.0),
        ((1280, 720), (1280, 720), 1.0),
        ((1600, 900), (1600, 900), 1.25),
        ((1920, 1080), (1920, 1080), 1.5),
        ((3840, 2160), (3840, 2160), 1.5),  # twice as large by itself
        ((7680, 4320), (7680, 4320), 1.5),
        ((720, 1280), (1280, 2276), 1.0),
    ],
)
def test_text_keeps_its_share_of_the_picture(size, window, scale):
    found = picture_size(size)
    assert (found, hall_scale(found.width(), found.height())) == (QSize(*window), scale)


# --- from the window -------------------------------------------------------------------------


@pytest.fixture
def window(open_window):
    out = open_window("causal")
    out.session.go_to_tile(2, 1)
    out.session.settle()
    out.session.choose_row(35)
    out.session.settle()
    out.session.step(False)
    out.session.settle()
    yield out
    out.session.tasks.cancel()


def written(window, qtbot, path: Path) -> None:
    qtbot.waitUntil(lambda: path.exists() and window.session.tasks.settled, timeout=60000)


@pytest.mark.long
def test_this_layout_is_the_picture_of_the_command(window, qtbot, tmp_path):
    layout = "compare"
    window.desk.take(layout)
    target = tmp_path / "a.png"

    choosing(window.actions_by_name["export_picture"].trigger, target, kind=1)
    written(window, qtbot, target)
    cursor = window.session.view.snapshot.cursor
    done = command("-o", str(tmp_path / "b.png"), "--scene", layout, "--row", "35",
                   "--visits", str(cursor.visit), "--op", str(cursor.op))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert np.array_equal(picture(target), picture(tmp_path / "b.png"))
    assert picture(target).shape == (1080, 1920, 3)


@pytest.mark.long
def test_a_scenario_that_is_not_saved_goes_along(window, session, qtbot, tmp_path):
    changed = with_values(session.scenario, {"mask": {"causal": False}, "hardware": {}})
    session.propose(changed, "no mask")
    session.settle()
    dialog = opened(window, tmp_path / "a.png")
    dialog.scene_box.setCurrentIndex(dialog.scene_box.findData("memory"))
    dialog.export_button.click()
    qtbot.waitUntil(lambda: dialog.running is None, timeout=60000)
    assert dialog.words.text().startswith("Written")
    assert session.scenario.mask == changed.mask
    assert read_scenario(tmp_path / "a.png") == session.scenario
    assert str(DEMO) in read_note(tmp_path / "a.png").command
    assert "--token" not in read_note(tmp_path / "a.png").command
    dialog.close()


def opened(window, target) -> ExportDialog:
    window.actions_by_name["export"].trigger()
    dialog = window.findChild(ExportDialog)
    dialog.size_box.setCurrentText("480x320")
    retype(dialog.target_edit, str(target))
    return dialog


def test_the_dialog_offers_every_layout(window):
    dialog = opened(window, "a.png")
    offered = [dialog.scene_box.itemData(n) for n in range(dialog.scene_box.count())]
    assert offered == ["scene", "board", "race", *(spec.name for spec in LAYOUTS)]
    for n, name in enumerate(offered):
        dialog.scene_box.setCurrentIndex(n)
        assert dialog.clear_box.isEnabled() is (name in ("scene", "board", "race"))
    dialog.close()


@pytest.fixture
def taught(window, tmp_path, qtbot):
    """Return a window that shows the second step of a lesson."""
    path = tmp_path / "three-steps.md"
    path.write_text(LESSON, encoding="utf-8")
    window.lessons.open(path)
    window.session.settle()
    window.lessons.player.next()
    window.session.settle()
    assert window.lessons.player.step.number == 1
    return window


@pytest.mark.long
def test_a_lesson_is_exported_from_the_window(taught, qtbot, tmp_path):
    dialog = opened(taught, tmp_path / "a.pdf")
    assert dialog.scene_box.currentText() == "The whole lesson"
    assert "3 pages" in dialog.words.text()
    for box in (dialog.range_box, dialog.step_box, dialog.clear_box):
        assert not box.isEnabled()
    dialog.export_button.click()
    qtbot.waitUntil(lambda: dialog.running is None, timeout=60000)
    assert "3 pages" in dialog.words.text()
    lesson = str(tmp_path / "three-steps.md")
    assert lesson in read_note(tmp_path / "a.pdf").command
    retype(dialog.target_edit, str(tmp_path / "b.png"))
    assert "Step 2" in dialog.words.text()
    dialog.export_button.click()
    qtbot.waitUntil(lambda: dialog.running is None, timeout=60000)
    assert "--steps 1:2" in read_note(tmp_path / "b.png").command
    dialog.close()


@pytest.mark.long
def test_a_handout_is_light_and_has_the_lesson_s_name_unless_the_user_says_otherwise(
    taught, tmp_path
):
    (tmp_path / "07-my-talk.md").write_text(LESSON, encoding="utf-8")
    taught.lessons.open(tmp_path / "07-my-talk.md")
    taught.session.settle()
    taught.actions_by_name["export"].trigger()
    dialog = taught.findChild(ExportDialog)
    told = {}
    for box, choices in (
        (dialog.format_box, ("PDF page", "MP4 film (H.264)", "PDF page")),
        (dialog.scene_box, ("Layout “Memory”", "The whole lesson")),
        (dialog.theme_box, ("Contrast",)),
        (dialog.format_box, ("PNG picture", "PDF page")),
    ):
        for choice in choices:
            box.setCurrentText(choice)
            file = dialog.target_edit.text().rpartition("/")[2]
            told[f"{len(told)} {choice}"] = dialog.theme_box.currentText(), file
    assert told == {
        "0 PDF page": ("Light", "my-talk.pdf"),
        "1 MP4 film (H.264)": ("Dark", "my-talk.mp4"),
        "2 PDF page": ("Light", "my-talk.pdf"),
        "3 Layout “Memory”": ("Dark", "causal.pdf"),
        "4 The whole lesson": ("Light", "my-talk.pdf"),
        "5 Contrast": ("Contrast", "my-talk.pdf"),
        "6 PNG picture": ("Contrast", "my-talk.png"),
        "7 PDF page": ("Contrast", "my-talk.pdf"),
    }
    dialog.close()


@pytest.mark.long
def test_answers_and_notes_are_chosen_for_handouts_alone(taught, tmp_path):
    dialog = opened(taught, tmp_path / "a.pdf")
    fields = dialog.answers_box, dialog.per_page_box, dialog.notes_box
    assert all(field.isVisible() and field.isEnabled() for field in fields)
    dialog.answers_box.setCurrentText("no answers")
    dialog.per_page_box.setCurrentText("2 steps a page")
    dialog.notes_box.setChecked(True)
    wanted = ["--answers", "none", "--notes", "--per-page", "2"]
    assert dialog.options().words("x")[-5:] == wanted
    assert dialog.words.text() == "2 pages of A4."
    retype(dialog.target_edit, str(tmp_path / "a.mp4"))
    assert not any(field.isEnabled() for field in fields)
    assert not {*wanted} & {*dialog.options().words("x")}
    dialog.close()


class Opener(QObject):
    """What opens files of the system, for a test."""

    def __init__(self):
        super().__init__()
        self.asked = []

    @Slot(QUrl)
    def open(self, url):
        self.asked.append(url.toLocalFile())


def test_what_was_written_can_be_opened(window, qtbot, tmp_path):
    dialog = opened(window, tmp_path / "a.png")
    assert not dialog.open_button.isVisible()
    dialog.export_button.click()
    qtbot.waitUntil(lambda: dialog.running is None, timeout=60000)
    opener = Opener()
    QDesktopServices.setUrlHandler("file", opener, "open")
    try:
        dialog.open_button.click()
    finally:
        QDesktopServices.unsetUrlHandler("file")
    assert opener.asked == [str(tmp_path / "a.png")]
    dialog.close()


@pytest.mark.long
def test_progress_and_cancel_of_a_process(taught, qtbot, tmp_path):
    target = tmp_path / "a.mp4"
    target.write_bytes(b"old")
    before = names(tmp_path)
    dialog, told = opened(taught, target), []
    dialog.pace_box.setCurrentText("seconds in all")
    dialog.seconds_box.setValue(900)
    taught.session.tasks.progressed.connect(lambda words, share, left: told.append(share))
    dialog.export_button.click()
    (question,) = dialog.findChildren(QMessageBox, "replace")
    next(b for b in question.buttons() if b.text() == "Replace").click()
    qtbot.waitUntil(lambda: max(told, default=0) > 0, timeout=60000)
    assert "of 27\u2009000 frames" in dialog.words.text()
    assert len(names(tmp_path)) == len(before) + 1
    dialog.close_button.click()
    assert "Cancelled" in dialog.words.text()
    qtbot.waitUntil(lambda: taught.session.tasks.settled, timeout=5000)
    assert names(tmp_path) == before
    assert target.read_bytes() == b"old"
    dialog.close()


@pytest.mark.long
@pytest.mark.parametrize("ending", [".webp", "/", "-%02d.png"])
def test_a_process_that_is_ended_leaves_nothing(ending, tmp_path):
    wanted = ExportOptions(f"{tmp_path}/a{ending}", size=SMALL, scene="steps", length=600.0)

    def report(share):
        if share > 0:
            raise Cancelled

    with pytest.raises(Cancelled):
        make_beside(wanted, load_scenario(DEMO), "mine.toml", "numpy", report)
    assert names(tmp_path) == []


@pytest.mark.long
def test_what_a_process_says_is_told(taught, qtbot, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    dialog = opened(taught, folder / "a.pdf")
    folder.rmdir()
    dialog.export_button.click()
    qtbot.waitUntil(lambda: dialog.running is None, timeout=60000)
    assert "exists" in dialog.words.text()
    with pytest.raises(InputError, match="No such file") as told:
        make_beside(ExportOptions(f"{tmp_path}/a.pdf", lesson=True), tmp_path / "none.md",
                    "none.md", "numpy", lambda share: None)  # fmt: skip
    assert "\n" not in str(told.value)
    dialog.close()


@pytest.mark.long
def test_an_input_beside_the_scenario_is_found_by_the_process(tmp_path):
    wanted = ExportOptions(f"{tmp_path}/a.png", size=SMALL, scene="steps", visits=(0, 1))
    q = np.random.default_rng(0).standard_normal((1, 16, 8)).astype(np.float32)
    np.savez(tmp_path / "mine.npz", q=q, k=q, v=q)
    (tmp_path / "mine.toml").write_text('[input]\nsource = "file"\npath = "mine.npz"\n')
    scenario = load_scenario(tmp_path / "mine.toml")
    words = make_beside(wanted, scenario, "mine.toml", "numpy", lambda share: None)
    assert words.startswith("visit 0")
    assert read_scenario(tmp_path / "a.png") == scenario
