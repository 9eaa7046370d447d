"""The header: a sentence of chips, each of which opens its field, in one row at any width."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLabel

from simulator.problem.filling import capture_names, capture_text
from simulator.problem.scenario import with_values
from simulator.problem.workload import resolve
from tests.helpers.runs import scenario
from ui.look.run_words import scenario_words
from ui.look.theme import TEXT_SCALES
from ui.panels.scenario.fields import FIRST
from ui.window.header import chip_words
from ui.window.search.field_popover import FieldPopover


def with_fault(window):
    """Show a run whose header says most: a fault as a chip and in the badge."""
    changed = with_values(window.session.scenario, {"faults": {"forget_alpha": True}})
    window.session.propose(changed, "fault")
    window.session.settle()


def popover(window):
    """Return the field that is open below a chip."""
    QApplication.processEvents()
    (found,) = (each for each in window.findChildren(FieldPopover) if each.isVisible())
    return found


def said(window):
    """Return what the chips in sight say, from left to right."""
    chips = [chip for chip in window.header.chips.chips.values() if chip.isVisible()]
    return [chip.text().removesuffix("\u2002▾") for chip in sorted(chips, key=lambda c: c.x())]


@pytest.mark.parametrize(
    ("heads", "kv_heads", "head", "words", "chips"),
    [
        (12, 4, [3], "GQA 12:4 · head 3", ("head 3 of 12", "GQA 12:4")),
        (12, 4, [0, 3, 11], "GQA 12:4 · heads 0, 3, 11", ("heads 0, 3, 11 of 12", "GQA 12:4")),
        (12, 1, [0, 1, 2, 3, 4], "MQA 12:1 · 5 of the heads", ("5 of 12 heads", "MQA 12:1")),
        (12, 4, None, "GQA 12:4", ("12 heads", "GQA 12:4")),
        (12, 12, [0], "MHA 12:12 · head 0", ("head 0 of 12",)),
        (1, 1, None, "MHA 1:1", ("1 head",)),
    ],
)
def test_chips_tell_how_the_heads_share_whichever_of_them_run(heads, kv_heads, head, words, chips):
    w = resolve(scenario(heads=heads, kv_heads=kv_heads, head=head))
    assert words in scenario_words(w)
    said = {chip.field: chip.words[0] for chip in chip_words(w)}
    assert tuple(said[key] for key in ("input.head", "attention.kv_heads") if key in said) == chips


def test_the_header_is_a_sentence_about_the_run(open_window):
    window = open_window("flash2", (1920, 1080))
    assert said(window)[:5] == [
        "FlashAttention-2", "“the cat sat on the mat because it was tired .”", "head 3 of 12",
        "fp16", "H100-SXM",
    ]  # fmt: skip
    assert len(said(window)) == 5  # tile, causal, N and d stand in the strip
    words = window.header.chips.accessibleDescription()
    assert words.startswith("FlashAttention-2, reads “the cat sat")
    assert "cat-because" not in words


@pytest.mark.parametrize("name", capture_names())
def test_what_ships_is_called_by_its_text(name):
    w = resolve(with_values(scenario(heads=1), {
        "input": {"source": "capture", "name": name},
        "attention": {"heads": None, "seqlen_q": None, "head_dim": None, "kv_heads": None,
                      "seqlen_k": None, "value_dim": None, "dtype": None},
        "mask": {"causal": None}, "tiling": {"rows": 4, "cols": 4},
    }))  # fmt: skip
    (chip,) = (chip for chip in chip_words(w) if chip.field == "input.name")
    start = chip.words[0].strip("“”").removesuffix(" …")
    assert len(start) > 20
    assert capture_text(name).words.startswith(start)


def test_a_chip_opens_its_field_below_itself_and_a_change_runs(open_window):
    window = open_window("flash2", (1920, 1080))
    for field in FIRST:
        chip = window.header.chips.chips.get(field)
        if chip is None:  # Bc is with Br
            continue
        QTest.mouseClick(chip, Qt.MouseButton.LeftButton)
        box = popover(window)
        spec = box.page.field.spec
        assert spec.name == field
        told = [each.text() for each in box.findChildren(QLabel) if each.isVisible()]
        assert len([each for each in told if spec.brief in each]) == 1, told
        below = chip.mapToGlobal(chip.rect().bottomLeft())
        assert 0 <= box.y() - below.y() < 20
        assert window.frameGeometry().contains(QRect(box.pos(), box.size()))
        QTest.keyClick(box, Qt.Key.Key_Escape)
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    QTest.mouseClick(window.header.chips.chips["attention.algorithm"], Qt.MouseButton.LeftButton)
    box = popover(window)
    editor = box.page.field.editor
    assert isinstance(editor, QComboBox)
    assert editor.currentData() == "flash2"
    QTest.keyClick(editor, Qt.Key.Key_Up)
    window.session.settle()
    assert window.session.scenario.attention.algorithm == "flash1"
    assert said(window)[0] == "FlashAttention-1"
    QTest.keyClick(editor, Qt.Key.Key_Return)
    QTest.keyClick(box, Qt.Key.Key_Escape)


def test_what_cannot_be_used_is_said_in_the_popover_and_the_run_stays(open_window):
    window = open_window("grouped-heads", (1920, 1080))
    run = window.session.trace
    QTest.mouseClick(window.header.chips.chips["attention.kv_heads"], Qt.MouseButton.LeftButton)
    box = popover(window)
    editor = box.page.field.editor
    editor.selectAll()
    QTest.keyClicks(editor, "5")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    window.session.settle()
    assert box.page.field.message.text.startswith("expected a divisor of attention.heads")
    assert window.session.trace is run
    assert box.isVisible()
    QTest.keyClick(box, Qt.Key.Key_Escape)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("scale", TEXT_SCALES)
def test_chips_are_in_one_row_and_what_does_not_fit_is_in_the_menu(
    open_window, settings, qapp, scale
):
    settings.text_scale = scale
    window = open_window("window-sinks", (1024, 800))
    row, left_out = window.header.chips, []
    for width in (1024, 1280, 1920, 3840):
        window.resize(width, 800)
        qapp.processEvents()
        places = [chip.geometry() for chip in row.chips.values() if chip.isVisible()]
        places += [before.geometry() for before in row._before.values() if before.isVisible()]
        places.append(row.more.geometry())
        assert len({place.top() for place in places}) == 1
        assert all(row.rect().contains(place) for place in places)
        for number, place in enumerate(places):
            assert not any(place.intersects(other) for other in places[:number])
        hidden = [chip.field for chip in row.left_out]
        assert hidden == [field for field, chip in row.chips.items() if not chip.isVisible()]
        assert all(chip.whole in row.more.toolTip() for chip in row.left_out)
        left_out.append(len(hidden))
    assert left_out == sorted(left_out, reverse=True)


def test_the_last_button_opens_the_form_or_lists_what_has_no_room(open_window, settings, qapp):
    settings.text_scale = 2.0
    window = open_window("window-sinks", (3840, 1080))
    window.docks["scenario"].hide()
    row = window.header.chips
    assert not row.left_out
    row.more.click()
    assert window.docks["scenario"].isVisible()
    window.resize(1024, 720)
    qapp.processEvents()
    assert row.left_out
    row.more.click()
    menu = qapp.activePopupWidget()
    texts = [action.text() for action in menu.actions() if action.text()]
    assert texts == [*(chip.words[0] for chip in row.left_out), "All fields"]
    first = row.left_out[0].field
    menu.actions()[0].trigger()
    menu.close()
    box = popover(window)
    assert box.page.field.spec.name == first
    QTest.keyClick(box, Qt.Key.Key_Escape)


def test_the_form_opens_by_the_menu_and_its_search_by_a_key(open_window, qapp):
    window = open_window("flash2", (1440, 900))
    window.docks["scenario"].hide()
    assert window.actions_by_name["edit_scenario"] in window.menus["Edit"].actions()
    window.actions_by_name["edit_scenario"].trigger()
    assert window.docks["scenario"].isVisible()
    window.activateWindow()
    window.actions_by_name["find_field"].trigger()
    assert qapp.focusWidget() is window.docks.panel("scenario").query


@pytest.mark.long
@pytest.mark.parametrize("scale", TEXT_SCALES)
def test_a_fault_and_long_work_make_no_window_wider(open_window, settings, qapp, qtbot, scale):
    settings.text_scale = scale
    width = 1024 if scale == 1 else 1280
    window = open_window("flash2", (width, 720))
    with_fault(window)
    qapp.processEvents()
    assert window.header.minimumSizeHint().width() <= width
    assert window.width() == width
    assert "faults on" in window.header.engine.toolTip()
    assert "FAULT" in said(window)[0]
    window.header.progress.show_progress("random vectors", 0.2, 12.0)
    qtbot.waitUntil(window.header.progress.isVisible)
    qapp.processEvents()
    assert window.width() == width


def test_a_window_with_large_text_gets_as_small_as_a_small_screen(open_window, settings, qapp):
    settings.text_scale = 2.0
    window = open_window("flash2", (1280, 720))
    window.resize(1024, 720)
    qapp.processEvents()
    assert window.width() == 1024
