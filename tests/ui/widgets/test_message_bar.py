"""Messages over the board: they move nothing, and each goes when its kind says so."""

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest

from simulator.base.assets import SCENARIOS
from tests.helpers.changes import choose_algorithm
from ui.look.layouts import LAYOUTS
from ui.look.theme import THEMES
from ui.widgets.message_bar import MessageKind, reading_ms

LONG = "seqlen_q = 10000000: expected a size of which every row block fits in memory, " * 3


@pytest.fixture
def window(open_window):
    return open_window("causal", (1280, 720))


def places(window):
    """Return where everything else lies."""
    parts = [window.board, window.header, window.transport]
    parts += [dock for _, dock in window.docks if dock.isVisible()]
    return [QRect(part.mapTo(window, QPoint()), part.size()) for part in parts]


def arrange(qapp):
    """Let docks take their places, and the message after them."""
    for _ in range(4):
        qapp.processEvents()


def field(window, name):
    return window.docks.panel("scenario").fields[name].editor


def retype(window, name, text):
    editor = field(window, name)
    editor.setFocus()
    editor.selectAll()
    QTest.keyClicks(editor, text)
    editor.commit()
    window.session.settle()
    return editor


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("kind", MessageKind)
def test_a_message_moves_nothing_and_its_button_dismisses_it(window, qapp, kind):
    before = places(window)
    window.say(LONG, kind)
    qapp.processEvents()
    assert window.messages.isVisible()
    assert places(window) == before
    QTest.mouseClick(window.messages.close_button, Qt.MouseButton.LeftButton)
    qapp.processEvents()
    assert not window.messages.isVisible()
    assert places(window) == before


def test_hints_go_by_themselves_the_longer_the_text_the_later(window, qapp):
    bar = window.messages
    window.actions_by_name["next_breakpoint"].trigger()
    assert bar.kind is MessageKind.HINT
    assert bar.life.isActive()
    assert bar.life.interval() == reading_ms(bar.text())
    assert reading_ms(LONG) > reading_ms(bar.text())
    bar.life.timeout.emit()
    assert not bar.isVisible()
    for kind in (MessageKind.REFUSAL, MessageKind.FAILURE):
        window.say(LONG, kind)
        assert not bar.life.isActive()


def test_escape_takes_a_refusal_before_it_selects_no_cell(window, session):
    bar = window.messages
    window.actions_by_name["cell_right"].trigger()
    session.settle()
    assert session.view.cell is not None
    window.say("no", MessageKind.REFUSAL)
    QTest.keyClick(window, Qt.Key.Key_Escape)
    session.settle()
    assert not bar.isVisible()
    assert session.view.cell is not None
    QTest.keyClick(window, Qt.Key.Key_Escape)
    session.settle()
    assert session.view.cell is None


def test_a_refusal_goes_when_the_value_is_put_back(window):
    window.docks["scenario"].show()
    editor = retype(window, "attention.seqlen_q", "10000000")
    assert window.messages.isVisible()
    assert "10000000" in window.messages.text()
    QTest.keyClick(editor, Qt.Key.Key_Escape)
    assert not window.messages.isVisible()


def test_a_refusal_goes_when_the_value_is_typed_anew(window):
    window.docks["scenario"].show()
    retype(window, "attention.seqlen_q", "10000000")
    assert window.messages.isVisible()
    retype(window, "attention.seqlen_q", "24")
    assert window.session.scenario.attention.seqlen_q == 24
    assert not window.messages.isVisible()


def test_a_refusal_goes_with_another_scenario_and_a_failure_stays(window, session, tmp_path):
    for kind in (MessageKind.REFUSAL, MessageKind.FAILURE):
        window.say("no", kind)
        choose_algorithm(window, "naive" if kind is MessageKind.REFUSAL else "flash1")
        session.settle()
        assert window.messages.isVisible() is (kind is MessageKind.FAILURE)
    QTest.keyClick(window, Qt.Key.Key_Escape)
    assert window.messages.isVisible()
    window.files.save_to(tmp_path / "no" / "such" / "folder.toml")
    window.files.open_path(SCENARIOS / "causal.toml")
    session.settle()
    assert "folder.toml" in window.messages.text()
    assert window.messages.isVisible()


def test_a_failure_comes_back_after_a_hint(window):
    bar = window.messages
    window.say("the file cannot be written", MessageKind.FAILURE)
    window.say("nothing to stop at")
    assert bar.text() == "nothing to stop at"
    bar.life.timeout.emit()
    assert (bar.isVisible(), bar.text()) == (True, "the file cannot be written")
    bar.close_button.click()
    assert not bar.isVisible()


def test_a_message_lies_where_nothing_has_to_be_repaired(open_window, qapp):
    """In every layout, over the board or the largest dock, and never over the form."""
    window = open_window("causal", (1280, 720))
    for spec in LAYOUTS:
        window.desk.take(spec.name)
        window.docks["scenario"].show()
        window.say(LONG, MessageKind.REFUSAL)
        arrange(qapp)
        form = window.docks["scenario"]
        taken = QRect(form.mapTo(window, QPoint()), form.size())
        if form.visibleRegion().isEmpty():
            continue
        assert not window.messages.geometry().intersects(taken), spec.name
        assert window.rect().contains(window.messages.geometry()), spec.name


def test_a_message_goes_along_when_the_window_gets_another_size(window, qapp):
    window.say(LONG, MessageKind.REFUSAL)
    for size in ((1920, 1080), (1280, 720)):
        window.resize(*size)
        arrange(qapp)
        board = QRect(window.board.mapTo(window, QPoint()), window.board.size())
        assert board.contains(window.messages.geometry())


def test_a_narrow_board_leaves_the_words_of_a_message_room(open_window, settings, qapp):
    settings.text_scale = 2.0
    window = open_window("causal", (1280, 720))
    window.docks["scenario"].show()
    window.say(LONG, MessageKind.REFUSAL)
    arrange(qapp)
    form = window.docks["scenario"]
    taken = QRect(form.mapTo(window, QPoint()), form.size())
    assert window.board.width() < 600
    assert window.messages.width() >= 600
    assert not window.messages.geometry().intersects(taken)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("theme", THEMES)
def test_a_message_is_read_aloud_and_shows_all_its_words(window, qapp, theme):
    window.settings.theme = theme
    window.apply_style()
    window.say(LONG, MessageKind.REFUSAL)
    qapp.processEvents()
    bar = window.messages
    assert bar.accessibleName() == LONG
    assert bar.close_button.accessibleName()
    assert bar.height() >= bar.heightForWidth(bar.width())
    ground = bar.grab().toImage().pixelColor(bar.width() // 2, bar.height() - 4)
    assert ground.name().upper() == THEMES[theme].panel


def test_a_blank_screen_stays_blank(window):
    window.blank(True)
    window.say("no", MessageKind.FAILURE)
    image = window.grab().toImage()
    at = window.messages.geometry().center()
    assert image.pixelColor(at).name() == "#000000"
    window.blank(False)
    assert window.messages.isVisible()
