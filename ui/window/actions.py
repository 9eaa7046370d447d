"""The actions of the window, one row each: menu, keys, words and functions; and its menus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu

from simulator.program.playback import Granularity
from ui.window.cover import show_course_map, show_welcome
from ui.window.help import about, show_keys, show_page
from ui.window.mnemonics import keep_mnemonics

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow


@dataclass(frozen=True, slots=True)
class ActionSpec:
    """One action."""

    name: str  # object name
    text: str  # words in the menu
    menu: str  # its menu
    # called with the window; a checkable action's function also gets on or off
    run: Callable[..., Any]
    keys: tuple[str, ...] = ()  # shortcuts, the first one shown
    icon: str = ""  # file in ``assets/icons``, without its ending; empty for none
    checkable: bool = False  # whether the action can be on or off
    separated: bool = False  # whether there is a line before the action in the menu


def _step(forward: bool, by: Granularity | None = None) -> Callable[[MainWindow], None]:
    return lambda window: window.session.step(forward, by)


def _select(across: int, down: int) -> Callable[[MainWindow], None]:
    return lambda window: window.session.move_selection(across, down)


def _record(window: MainWindow) -> None:
    from ui.talk.record_dialog import open_record_dialog

    open_record_dialog(window)


def _exercises(window: MainWindow) -> None:
    from ui.talk.exercises_dialog import open_exercises

    open_exercises(window)


def _search(window: MainWindow) -> None:
    from ui.window.search.dialog import open_search

    open_search(window)


def _pin_cell(window: MainWindow) -> None:
    """Pin the cell under the pointer, else the selected one, in the Values panel."""
    from ui.panels.values.panel import ValuesPanel

    view = window.session.view
    cell = window.board.hit or (view.cell if view else None)
    if cell is not None:
        window.docks.open("values")
        window.docks.panel(ValuesPanel).pin(cell)


def _run_until(window: MainWindow) -> None:
    """Choose in the code panel where the run is to stop."""
    from ui.panels.code.panel import CodePanel

    window.docks.open("code")
    window.docks.panel(CodePanel).bar.until.setFocus(Qt.FocusReason.ShortcutFocusReason)


def _play(window: MainWindow, on: bool) -> None:
    """Play the race if it is shown without the board, else the run."""
    panel = window.docks.in_sight("compare")
    if on and panel is not None and panel.view == "race" and not window.board.isVisible():
        panel.play_race()
        window.actions_by_name["play"].setChecked(False)  # the run does not play
    else:
        window.session.play(on)


MENUS = ("File", "Edit", "Run", "Lessons", "View", "Help")

_ROW, _HEAD = Granularity.ROW_BLOCK, Granularity.HEAD

ACTIONS = (
    ActionSpec("open_scenario", "Open…", "File", lambda w: w.files.open_scenario(),
               ("Ctrl+O",), "open"),
    ActionSpec("save_scenario", "Save", "File", lambda w: w.files.save(), ("Ctrl+S",), "save"),
    ActionSpec("save_scenario_as", "Save as…", "File", lambda w: w.files.save_as(),
               ("Ctrl+Shift+S",)),
    ActionSpec("export", "Export…", "File", lambda w: w.files.export(), ("Ctrl+E",), "export",
               separated=True),
    ActionSpec("export_picture", "Export picture…", "File", lambda w: w.files.export_picture(),
               ("Ctrl+Shift+E",)),
    ActionSpec("export_schedule", "Export schedule as a trace…", "File",
               lambda w: w.files.export_schedule()),
    ActionSpec("open_trace", "Open a trace beside the schedule…", "File",
               lambda w: w.files.open_trace()),
    ActionSpec("ask_unsaved", "Ask about unsaved changes", "File",
               lambda w, on: w.unsaved.set_asking(on), checkable=True, separated=True),
    ActionSpec("quit", "Quit", "File", lambda w: w.quit(), ("Ctrl+Q",), separated=True),
    ActionSpec("undo", "Undo", "Edit", lambda w: w.session.undo(), ("Ctrl+Z",), "undo"),
    ActionSpec("redo", "Redo", "Edit", lambda w: w.session.undo_stack.redo(),
               ("Ctrl+Y", "Ctrl+Shift+Z"), "redo"),
    ActionSpec("edit_scenario", "Scenario…", "Edit", lambda w: w.open_form(), separated=True),
    ActionSpec("find_field", "Find a field of the scenario…", "Edit",
               lambda w: w.open_form(search=True), ("Ctrl+F",)),
    ActionSpec("cell_left", "Select cell to the left", "Edit", _select(-1, 0), ("Alt+Left",),
               separated=True),
    ActionSpec("cell_right", "Select cell to the right", "Edit", _select(1, 0), ("Alt+Right",)),
    ActionSpec("cell_up", "Select cell above", "Edit", _select(0, -1), ("Alt+Up",)),
    ActionSpec("cell_down", "Select cell below", "Edit", _select(0, 1), ("Alt+Down",)),
    # Not a shortcut, because a field in the scenario panel restores its text with the same key.
    ActionSpec("deselect", "Select no cell (Esc)", "Edit", lambda w: w.session.select(None)),
    ActionSpec("pin_cell", "Pin cell", "Edit", _pin_cell, ("P",)),
    ActionSpec("paint_mask", "Paint a mask on the board", "Edit",
               lambda w, on: w.session.painting.switch(on), ("Ctrl+B",), checkable=True),
    ActionSpec("what_if_tile", "What if: tile", "Edit", lambda w: w.ask_what_if("tile"),
               ("Alt+T",), separated=True),
    ActionSpec("what_if_causal", "What if: causal", "Edit", lambda w: w.ask_what_if("causal"),
               ("Alt+C",)),
    ActionSpec("what_if_tokens", "What if: N, tokens", "Edit", lambda w: w.ask_what_if("tokens"),
               ("Alt+N",)),
    ActionSpec("what_if_width", "What if: d, head width", "Edit",
               lambda w: w.ask_what_if("width"), ("Alt+D",)),
    ActionSpec("what_if_sentence", "What if: sentence", "Edit",
               lambda w: w.ask_what_if("sentence"), ("Alt+S",)),
    ActionSpec("what_if_gpu", "What if: GPU", "Edit", lambda w: w.ask_what_if("gpu"),
               ("Alt+G",)),
    ActionSpec("restore", "Back to before the what-if", "Edit", lambda w: w.restore(),
               ("Backspace",)),
    ActionSpec("copy_link", "Copy view as link", "Edit", lambda w: w.links.copy(),
               ("Ctrl+Alt+C",), separated=True),
    ActionSpec("paste_link", "Paste view", "Edit", lambda w: w.links.paste(), ("Ctrl+V",)),
    ActionSpec("copy_run", "Copy this run as NumPy", "Edit", lambda w: w.files.copy_run(),
               ("Ctrl+Shift+C",), separated=True),
    ActionSpec("first", "First", "Run", lambda w: w.session.first(), ("Home",), "first"),
    ActionSpec("back", "Step back", "Run", _step(False), ("Left",), "back"),
    ActionSpec("forward", "Step", "Run", _step(True), ("Right",), "forward"),
    ActionSpec("last", "Last", "Run", lambda w: w.session.last(), ("End",), "last"),
    ActionSpec("play", "Play", "Run", _play, ("Space",), "play",
               checkable=True, separated=True),
    ActionSpec("next_breakpoint", "Run to next breakpoint", "Run",
               lambda w: w.session.runs.run_to_breakpoint(), ("F8",), "breakpoint"),
    ActionSpec("previous_breakpoint", "Run back to breakpoint", "Run",
               lambda w: w.session.runs.run_to_breakpoint(False), ("Shift+F8",)),
    ActionSpec("run_until", "Run until…", "Run", _run_until, ("Ctrl+F8",)),
    ActionSpec("slower", "Slower", "Run", lambda w: w.session.change_speed(False), ("-",)),
    ActionSpec("faster", "Faster", "Run", lambda w: w.session.change_speed(True), ("+", "=")),
    ActionSpec("row_block_back", "Row block back", "Run", _step(False, _ROW), ("Shift+Left",),
               separated=True),
    ActionSpec("row_block_forward", "Row block on", "Run", _step(True, _ROW), ("Shift+Right",),
               "row-block"),
    ActionSpec("head_back", "Head back", "Run", _step(False, _HEAD), ("Ctrl+Left",)),
    ActionSpec("head_forward", "Head on", "Run", _step(True, _HEAD), ("Ctrl+Right",), "head"),
    ActionSpec("course_map", "Course map", "Lessons", show_course_map),
    ActionSpec("open_lesson", "Open lesson…", "Lessons", lambda w: w.lessons.ask()),
    ActionSpec("exercises", "Exercises…", "Lessons", _exercises),
    ActionSpec("record_step", "Add this view as a step…", "Lessons",
               _record, ("Ctrl+Shift+L",)),
    ActionSpec("lesson_next", "Next step", "Lessons", lambda w: w.lessons.player.next(),
               ("PgDown",), separated=True),
    ActionSpec("lesson_back", "Step before", "Lessons", lambda w: w.lessons.player.back(),
               ("PgUp",)),
    ActionSpec("reveal", "Reveal answer", "Lessons", lambda w: w.presenter.reveal(), ("A",)),
    ActionSpec("return_to_step", "Return to the step", "Lessons",
               lambda w: w.lessons.player.return_to_step()),
    ActionSpec("leave_lesson", "Leave lesson", "Lessons", lambda w: w.lessons.player.leave(),
               ("Ctrl+W",)),
    ActionSpec("zoom_in", "Zoom in", "View", lambda w: w.board.zoom_in(), ("Ctrl+=",),
               "zoom-in", separated=True),  # Ctrl++, too: MainWindow.keyPressEvent
    ActionSpec("zoom_out", "Zoom out", "View", lambda w: w.board.zoom_out(), ("Ctrl+-",),
               "zoom-out"),
    ActionSpec("zoom_fit", "Fit", "View", lambda w: w.board.zoom_fit(), ("Ctrl+0",), "zoom-fit"),
    ActionSpec("next_theme", "Next theme", "View", lambda w: w.next_theme(), ("T",), "theme",
               separated=True),
    ActionSpec("larger_text", "Larger text", "View", lambda w: w.change_text(1),
               ("Ctrl+Shift++", "Ctrl+Shift+="), "text-size"),
    ActionSpec("smaller_text", "Smaller text", "View", lambda w: w.change_text(-1),
               ("Ctrl+Shift+-", "Ctrl+Shift+_")),
    ActionSpec("set_motion", "Motion", "View", lambda w, on: w.set_motion(on), ("M",),
               checkable=True),
    ActionSpec("set_sound", "Sound", "View", lambda w, on: w.set_sound(on), checkable=True),
    ActionSpec("weights", "Weights P / ℓ so far", "View", lambda w, on: w.show_weights(on), ("W",),
               checkable=True),
    ActionSpec("full_screen", "Full screen", "View", lambda w, on: w.full_screen(on), ("F11",),
               "fullscreen", checkable=True, separated=True),
    ActionSpec("present", "Present", "View", lambda w, on: w.present(on), ("F5", "Shift+F5"),
               "present",
               checkable=True),
    ActionSpec("blank", "Blank", "View", lambda w, on: w.blank(on), ("B",), checkable=True),
    ActionSpec("reset_layout", "Reset layout", "View", lambda w: w.desk.reset()),
    ActionSpec("welcome", "Welcome", "Help", show_welcome),
    ActionSpec("search", "Search everything…", "Help", _search, ("Ctrl+K", "F1", "Ctrl+Shift+P")),
    ActionSpec("first_minutes", "Your first ten minutes", "Help",
               lambda w: show_page(w, "first-ten-minutes"), separated=True),
    ActionSpec("glossary", "Glossary", "Help", lambda w: show_page(w, "glossary")),
    ActionSpec("bibliography", "Bibliography", "Help", lambda w: show_page(w, "bibliography")),
    ActionSpec("show_keys", "Keys", "Help", show_keys, ("?",), "help"),
    ActionSpec("about", "About Tilescope", "Help", about),
)  # fmt: skip


def make_actions(window: MainWindow) -> dict[str, QAction]:
    """Make the actions of a window; return them by name."""
    out = {}
    for spec in ACTIONS:
        action = QAction(spec.text, window)
        action.setObjectName(spec.name)
        action.setShortcuts([QKeySequence(keys) for keys in spec.keys])
        action.setCheckable(spec.checkable)
        if spec.checkable:
            action.toggled.connect(partial(spec.run, window))
        else:
            action.triggered.connect(partial(_act, spec, window))
        window.addAction(action)
        out[spec.name] = action
    return out


def _act(spec: ActionSpec, window: MainWindow, checked: bool = False) -> None:
    spec.run(window)


def make_menus(window: MainWindow) -> dict[str, QMenu]:
    """Fill the menu bar of a window; return its menus by title."""
    menus: dict[str, QMenu] = {}
    for title in MENUS:
        menu = menus[title] = window.menuBar().addMenu(title)
        menu.setObjectName(f"menu_{title.lower()}")
        if title == "View":
            menu.addMenu("Layouts").addActions(list(window.desk.actions.values()))
            window.panels_menu = menu.addMenu("Panels")
            window.panels_menu.addActions(list(window.docks.actions.values()))
        if title == "Lessons":
            window.lessons.fill(menu)
        for spec in (spec for spec in ACTIONS if spec.menu == title):
            if spec.separated:
                menu.addSeparator()
            menu.addAction(window.actions_by_name[spec.name])
            if spec.name == "open_scenario":
                window.files.add_menus(menu)
            if spec.name == "export_picture":
                window.files.add_panel_menu(menu)
    keep_mnemonics(window.menuBar())
    return menus
