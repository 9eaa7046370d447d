"""The search finds everything by its name and by another, goes there, and says so."""

import subprocess
import sys

import pytest
from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QAccessible, QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog

from simulator.base.glossary import glossary
from simulator.base.references import reference_called, references
from simulator.base.tables import read_toml
from simulator.exercises.made import lesson_name, raw_exercises
from simulator.lesson.course import list_lessons
from simulator.lesson.reader import load_lesson
from simulator.problem.hardware import gpus
from simulator.problem.models import models
from tests.helpers.waiting import settle, wait_until
from ui.kit.boxes import scene
from ui.look.layouts import LAYOUT_PANELS, LAYOUTS
from ui.look.theme import THEMES, Style
from ui.panels.scenario.fields import FIELDS
from ui.talk.exercises_dialog import ExercisesDialog
from ui.widgets.matching import find, lit
from ui.window.actions import ACTIONS
from ui.window.file_menu import demo_paths
from ui.window.panel_specs import GROUPED, GROUPS, PANELS
from ui.window.search.dialog import AT_MOST, open_search
from ui.window.search.entries import SYNONYMS, Kind, SearchEntry, entries
from ui.window.search.rows import AT_ONCE, LitText, SearchRows, broken, told

ALL = entries()
BY_ID = {entry.id: entry for entry in ALL}


def first_lines(query):
    return find(query, ALL).entries[:AT_MOST]


def titles(query):
    return [entry.title for entry in first_lines(query)]


@pytest.fixture
def searching(open_window):
    """A window with the search open over it."""
    window = open_window()
    window.actions_by_name["search"].trigger()
    return window, window.findChild(QDialog, "search")


def press(dialog, key, modifiers=Qt.KeyboardModifier.NoModifier):
    QTest.keyClick(dialog.query, key, modifiers)
    QApplication.processEvents()


def closed(window):
    dialog = window.findChild(QDialog, "search")
    return dialog is None or not dialog.isVisible()


def ask(dialog, query):
    dialog.query.setText(query)
    QApplication.processEvents()


# --- finding -----------------------------------------------------------------------------


def test_everything_that_there_is_can_be_found():
    wanted = {
        Kind.ACTION: [spec.name for spec in ACTIONS],
        Kind.FIELD: [spec.name for spec in FIELDS],
        Kind.WORD: [word.name for word in glossary()],
        Kind.DEMO: [path.stem for path in demo_paths()],
        Kind.PANEL: [spec.name for spec in sorted(PANELS, key=lambda s: s.name in GROUPED)],
        Kind.GROUP: [group.name for group in GROUPS],
        Kind.LAYOUT: [spec.name for spec in LAYOUTS],
        Kind.MODEL: list(models()),
        Kind.GPU: list(gpus()),
        Kind.PAPER: [paper.name for paper in references()],
        Kind.LESSON: [lesson.path.stem for lesson in list_lessons()],
        Kind.EXERCISE: [
            f"{lesson.path.stem}/{exercise['name']}"
            for lesson in list_lessons()
            for exercise in raw_exercises(lesson_name(lesson.path))
        ],
    }
    for kind, names in wanted.items():
        assert [entry.name for entry in ALL if entry.kind is kind] == names, kind
    assert len(BY_ID) == len(ALL)


@pytest.mark.long
def test_the_steps_that_are_found_are_those_of_the_lessons():
    for title in list_lessons():
        steps = tuple(step.title for step in load_lesson(title.path, LAYOUT_PANELS).steps)
        assert title.steps == steps, title.path


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("kind", Kind)
def test_a_thing_is_in_the_first_nine_lines_for_its_name_and_for_a_synonym(kind):
    for entry in ALL:
        if entry.kind is kind:
            assert entry in first_lines(entry.title), entry.id
            named = [other for other in entry.also if entry in first_lines(other)]
            assert named, f"{entry.id}: assets/search.toml says what else things are called"
            assert entry.does, entry.id


def test_synonyms_are_of_things_that_exist():
    called = read_toml(SYNONYMS)
    assert called.keys() == {kind.table for kind in Kind} - {
        "steps", "exercises", "words", "papers",
    }  # fmt: skip
    for table, rows in called.items():
        assert {f"{table}:{name}" for name in rows} <= BY_ID.keys(), table


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("play", "actions:play"),
        ("explain a row", "panels:softmax"),
        ("larger tile", "fields:tiling.rows"),
        ("causal mask", "fields:mask.causal"),
        ("other sentence", "fields:input.name"),
        ("export a film", "actions:export"),
        ("other gpu", "fields:hardware.preset"),
        ("give a talk", "actions:present"),
        ("how much memory", "panels:cache"),
    ],
)
def test_what_newcomers_look_for_comes_first_or_nearly(query, found):
    assert found in [entry.id for entry in first_lines(query)][:3]


@pytest.mark.long
def test_a_paper_shows_its_link_and_opens_the_browser(searching, monkeypatch):
    window, dialog = searching
    opened = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    paper = reference_called("Dao et al. 2022")
    dialog.show_word(paper.name)
    assert paper.title in dialog.page.text()
    assert paper.link in dialog.page.text()
    dialog.page.linkActivated.emit(paper.link)
    assert first_lines("Exact Attention with IO-Awareness")[0].name == paper.name
    first_lines(paper.title)[0].go(window)
    assert opened == [paper.link] * 2


def test_a_wrong_letter_a_missing_one_and_another_order_do_no_harm():
    assert titles("sofmax onlin")[0] == "Online softmax"
    assert not find("sofmax onlin", ALL).nearest
    assert "Llama-3-70B" in titles("llamma 70")
    assert titles("llama 3 70b")[0] == "Llama-3-70B"
    assert "Larger text" in titles("text larger")


def test_a_title_comes_before_a_synonym_and_that_before_a_sentence():
    told = SearchEntry(Kind.WORD, "1", "x", "the gauge of it", ())
    named = SearchEntry(Kind.WORD, "2", "x", "y", ("gauge",))
    titled = SearchEntry(Kind.WORD, "3", "gauge", "y", ())
    assert find("gauge", (told, named, titled)).entries == (titled, named, told)


def test_of_equally_good_ones_the_kinds_have_an_order():
    kinds = [entry.kind for entry in first_lines("causal")[:2]]
    assert kinds == [Kind.FIELD, Kind.WORD]
    kinds = [entry.kind for entry in first_lines("online softmax")[:3]]
    assert kinds == [Kind.LESSON, Kind.WORD, Kind.PANEL]


def test_nothing_found_names_the_three_nearest():
    found = find("xqzy", ALL)
    assert found.nearest
    assert len(found.entries) == 3


def test_the_parts_that_were_found_are_lit():
    assert lit("causal", "The causal mask") == [(4, 10)]
    assert lit("mask the", "The causal mask") == [(0, 3), (11, 15)]
    assert lit("sofmax", "Online softmax") == [(7, 14)]
    assert lit("as", "a mask as") == [(7, 9)]  # at the beginning of a word, if it can
    assert lit("", "The causal mask") == []


@pytest.mark.long
def test_a_line_says_by_which_other_name_it_was_found(searching):
    _, dialog = searching
    ask(dialog, "bigger font")
    row = scene(dialog.rows.box(dialog.current), dialog.style_now, QRectF(0, 0, 900, 90))
    said = [box.words for box, _ in row.placed if isinstance(box, LitText)]
    assert said[1].endswith("(bigger font)")
    larger = BY_ID["actions:larger_text"]
    assert told(larger, "bigger font") == f"{larger.does} (bigger font)"
    assert told(larger, "larger") == larger.does


def test_a_text_is_broken_into_two_lines_that_keep_what_is_lit(qapp):
    font = Style(THEMES["dark"]).text_font(15)
    text = "alpha beta gamma delta epsilon zeta eta theta iota kappa"
    lines = broken(text, font, 140)
    assert len(lines) == 2
    assert lines[1].text.endswith("…")
    for word in ("alpha", "gamma"):
        at = text.index(word)
        inside = [line.text[a:b] for line in lines for a, b in line.lit([(at, at + 5)])]
        assert inside == [word]
    beyond = text.index("kappa")
    assert not any(line.lit([(beyond, beyond + 5)]) for line in lines)


# --- the box -----------------------------------------------------------------------------


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("key", "modifiers"),
    [
        (Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier),
        (Qt.Key.Key_F1, Qt.KeyboardModifier.NoModifier),
        (Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier),
    ],
)
def test_its_keys_open_it_and_close_it(window, key, modifiers):
    QTest.keyClick(window, key, modifiers)
    dialog = window.findChild(QDialog, "search")
    assert dialog.isVisible()
    press(dialog, key, modifiers)
    assert closed(window)


def test_with_nothing_typed_it_shows_what_was_taken_last_then_the_groups(searching):
    window, dialog = searching
    assert [entry.id for entry in dialog.model.shown] == [
        f"groups:{group.name}" for group in GROUPS
    ]
    for name in ("actions:about", "words:ulp"):
        window.settings.add_searched(name)
    dialog.search("")
    assert [entry.id for entry in dialog.model.shown][:3] == [
        "words:ulp",
        "actions:about",
        "groups:steps",
    ]
    for number in range(9):
        window.settings.add_searched(f"steps:01-soft-lookup/{number}")
    assert len(window.settings.searched) == 6


def test_enter_goes_there_and_closes(searching):
    window, dialog = searching
    ask(dialog, "intensity plot")
    assert dialog.current.id == "panels:roofline"
    press(dialog, Qt.Key.Key_Return)
    assert closed(window)
    assert window.docks["roofline"].isVisible()
    assert window.settings.searched == ["panels:roofline"]


@pytest.mark.long
def test_shift_enter_does_it_and_stays(searching):
    _, dialog = searching
    ask(dialog, "normalised weights")
    assert dialog.current.id == "actions:weights"
    press(dialog, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert dialog.isVisible()
    assert dialog.model.value(dialog.current) == "now on"
    press(dialog, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert dialog.model.value(dialog.current) == "now off"


@pytest.mark.long
def test_the_box_has_the_letters_of_the_window_that_it_changes(searching):
    window, dialog = searching
    for scale in (1.25, 1.5):
        ask(dialog, "larger text")
        before = dialog.style_now.scale
        press(dialog, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
        boxes = [each for each in window.findChildren(QDialog, "search") if each.isVisible()]
        (dialog,) = boxes
        assert dialog.query.text() == "larger text"
        assert dialog.style_now.scale > before
        assert window.settings.text_scale == scale


def test_escape_changes_nothing(searching):
    window, dialog = searching
    before = window.session.scenario
    ask(dialog, "larger text")
    press(dialog, Qt.Key.Key_Escape)
    assert closed(window)
    assert (window.settings.text_scale, window.session.scenario) == (1.0, before)


def test_arrows_choose_and_go_round(searching):
    _, dialog = searching
    ask(dialog, "softmax")
    rows = dialog.model.rowCount()
    press(dialog, Qt.Key.Key_Down)
    assert dialog.current is dialog.model.shown[1]
    press(dialog, Qt.Key.Key_Up)
    press(dialog, Qt.Key.Key_Up)
    assert dialog.list.currentIndex().row() == rows - 1
    press(dialog, Qt.Key.Key_PageUp)
    assert dialog.list.currentIndex().row() == rows - 1 - AT_MOST


@pytest.mark.long
def test_a_long_list_gets_its_rows_as_one_goes_down(searching):
    _, dialog = searching
    ask(dialog, "s")
    everything = dialog.model.shown
    assert len(everything) > 3 * AT_ONCE
    assert dialog.model.rowCount() == AT_ONCE
    first = dialog.list.visualRect(dialog.model.index(0))
    assert first.height() > 10  # at once, not after a blank list
    pages = (len(everything) - 1) // AT_MOST
    for _ in range(pages):
        press(dialog, Qt.Key.Key_PageDown)
    assert dialog.list.currentIndex().row() == pages * AT_MOST
    press(dialog, Qt.Key.Key_PageDown)
    assert dialog.current is everything[-1]


@pytest.mark.long
def test_tab_shows_one_kind_only(searching):
    _, dialog = searching
    ask(dialog, "softmax")
    every = dialog.model.shown
    press(dialog, Qt.Key.Key_Tab)
    kinds = {entry.kind for entry in dialog.model.shown}
    assert len(kinds) == 1
    assert len(dialog.model.shown) < len(every)
    press(dialog, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
    assert dialog.model.shown == every


@pytest.mark.long
def test_a_step_opens_its_lesson_there(searching):
    window, dialog = searching
    ask(dialog, "online softmax 5")
    press(dialog, Qt.Key.Key_Return)
    player = window.lessons.player
    wait_until(lambda: player.step is not None, QTest.qWait)
    assert (player.lesson.title, player.step.number) == ("Online softmax", 4)


def test_an_exercise_opens_the_box_of_its_lesson_there(searching):
    window, dialog = searching
    for query, lesson, name in (
        ("soft lookup: which key", "soft-lookup", "which-key"),
        ("soft lookup exercise 2", "soft-lookup", "blend"),
        ("kv cache: per token", "kv-cache", "per-token"),
    ):
        entry = first_lines(query)[0]
        assert (entry.kind, "{{" in entry.does, "<" in entry.does) == (Kind.EXERCISE, False, False)
        ask(dialog, query)
        assert dialog.current is entry
        dialog.take(stay=True)
        box = window.findChild(ExercisesDialog)
        wait_until(
            lambda box=box, name=name: box.exercise and box.exercise.name == name, QTest.qWait
        )
        assert (box.exercise.lesson, box.isVisible()) == (lesson, True)


@pytest.mark.long
def test_a_demo_a_model_and_a_gpu_are_gone_to(searching):
    window, dialog = searching
    ask(dialog, "h200")
    press(dialog, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    settle(window)
    assert window.session.scenario.hardware.preset == "H200"
    ask(dialog, "llama-3-70b")
    press(dialog, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert window.session.model_choice.model.name == "Llama-3-70B"
    assert window.docks["cache"].isVisible()
    window.unsaved.set_asking(False)
    ask(dialog, "multi-query: eight query heads")
    press(dialog, Qt.Key.Key_Return)
    settle(window)
    assert window.session.path.stem == "multi-query"


@pytest.mark.long
def test_a_field_opens_in_the_box_with_its_value_and_runs_at_once(searching):
    window, dialog = searching
    ask(dialog, "tiling.rows")
    press(dialog, Qt.Key.Key_Return)
    editor = dialog.page.field.editor
    assert dialog.isVisible()
    assert editor.text() == "4"
    editor.setText("6")
    editor.commit()
    settle(window)
    assert window.session.trace.workload.rows == 6
    QTest.keyClick(editor, Qt.Key.Key_Return)
    assert closed(window)


def test_a_value_that_cannot_be_used_is_told_below_the_field(searching):
    window, dialog = searching
    before = window.session.scenario
    ask(dialog, "tiling.rows")
    press(dialog, Qt.Key.Key_Return)
    editor = dialog.page.field.editor
    editor.setText("0")
    editor.commit()
    assert "at least 1" in dialog.page.field.message.text
    QTest.keyClick(editor, Qt.Key.Key_Return)
    assert dialog.isVisible()
    QTest.keyClick(editor, Qt.Key.Key_Escape)
    assert dialog.page is None
    assert window.session.scenario == before


def test_a_word_shows_its_line_in_the_box(searching):
    _, dialog = searching
    ask(dialog, "unit in the last place")
    press(dialog, Qt.Key.Key_Return)
    ulp = BY_ID["words:ulp"]
    assert ulp.does in dialog.page.text()
    press(dialog, Qt.Key.Key_Escape)
    assert dialog.page is None
    assert dialog.isVisible()


def test_the_query_says_what_is_found(searching):
    _, dialog = searching
    ask(dialog, "ulp")
    assert dialog.count.text() == "1 found"
    ask(dialog, "xqzy")
    assert dialog.count.text() == "Nothing called “xqzy”. Nearest:"
    assert len(dialog.model.shown) == 3


@pytest.mark.long
def test_a_screen_reader_gets_the_words_of_box_and_list(searching):
    _, dialog = searching
    ask(dialog, "larger text")
    query = QAccessible.queryAccessibleInterface(dialog.query)
    assert query.text(QAccessible.Text.Name) == "Search everything"
    found = QAccessible.queryAccessibleInterface(dialog.list)
    assert found.text(QAccessible.Text.Name) == "Found"
    said = found.child(0).text(QAccessible.Text.Name)
    assert said.startswith("Larger text, Action, Makes all letters larger.")
    assert "Ctrl+Shift++" in said


@pytest.mark.long
@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080), (3840, 2160)])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_it_lies_inside_the_window_at_any_size(open_window, size, scale):
    window = open_window(size=size)
    window.settings.text_scale = scale
    window.apply_style()
    dialog = open_search(window)
    ask(dialog, "softmax")
    inside = window.rect().translated(window.mapToGlobal(QPoint()))
    assert inside.contains(dialog.geometry())
    rows = sum(dialog.rows.height(entry) for entry in dialog.model.shown[:AT_MOST])
    assert dialog.list.height() <= rows + 1
    assert dialog.list.height() > 2 * dialog.rows.height(dialog.current)
    dialog.reject()


@pytest.mark.long
def test_the_window_is_dimmed_meanwhile_but_not_in_high_contrast(window):
    for theme, dimmed in (("dark", True), ("light", True), ("contrast", False)):
        window.settings.theme = theme
        window.apply_style()
        dialog = open_search(window)
        QApplication.processEvents()
        veil = dialog._veil
        assert veil.isVisible() == dimmed, theme
        dialog.reject()
        assert not veil.isVisible()


@pytest.mark.long
def test_letters_that_were_found_are_lit_in_the_list(searching):
    _, dialog = searching
    assert isinstance(dialog.list.itemDelegate(), SearchRows)
    lit_pixels = []
    for query in ("ulp", ""):
        ask(dialog, query)
        image = dialog.list.grab().toImage()
        colours = (image.pixelColor(x, y) for x in range(80, 400) for y in range(10, 40))
        lit_pixels.append(sum(c.red() > 200 and c.blue() < 110 for c in colours))
    assert lit_pixels[0] > 20
    assert lit_pixels[1] == 0


@pytest.mark.long
def test_the_program_starts_without_it():
    told = subprocess.run(
        [sys.executable, "-c", "import sys, ui.window.main_window; "
         "print([m for m in sys.modules if m.startswith(('rapidfuzz', 'ui.window.search'))])"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.strip() == "[]"


@pytest.mark.long
def test_a_word_that_is_asked_for_in_a_panel_is_explained(window):
    window.session.word_asked.emit("HBM")
    (dialog,) = window.findChildren(QDialog, "search")
    assert "slow compared with SRAM" in dialog.page.text()
    assert dialog.current.name == "HBM"
    dialog.reject()
