"""A hand at a real window: what a user may do, each thing at random, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from PySide6.QtCore import QPoint, QPointF, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QWheelEvent, QWindow
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog, QMenu, QWidget
from shiboken6 import isValid

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.base.errors import InputError
from simulator.problem.scenario import with_values
from simulator.program.playback import SPEEDS, Cursor, Granularity
from simulator.run.breakpoints import AtOp
from simulator.run.snapshot import Cell
from tests.soak.devices import NO_KEYS, click, mouse, press, press_in, type_into, within
from tests.soak.draws import TYPED, make_files, random_changes, small
from ui.look.layouts import LAYOUTS
from ui.window.actions import ACTIONS
from ui.window.main_window import MainWindow
from ui.window.panel_specs import GROUPS, PANELS

LEAVES = ("quit",)
"""Actions that end what is tried."""
OTHER_KEYS = ("Tab", "Shift+Tab", "Esc", "Return", "Up", "Down", "PgUp", "PgDown", "Delete",
              "Backspace", "Ctrl+A", "Ctrl+C", "Ctrl+V", "x", "9")  # fmt: skip
PRESSED = ("Up", "Down", "Right", "Left", "Return", "Space", "5")
"""What is pressed in a control."""
SIZES = ((1440, 900), (1280, 720), (1920, 1080), (1024, 700), (800, 600), (1600, 1200))
STATES = (
    Qt.WindowState.WindowMaximized,
    Qt.WindowState.WindowFullScreen,
    Qt.WindowState.WindowNoState,
)
LEFT, RIGHT = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton


def shown_in(window: QWidget) -> list[QWidget]:
    """Return what is in sight in a window.

    Not by findChildren: it lets the window keep a Python object for all that Qt makes in it, for
    good.
    """
    every = QApplication.allWidgets()
    return [w for w in every if w is not window and w.window() is window and w.isVisible()]


class Hand:
    """Does one thing after another to a window.

    window: what is used: a real one.
    folder: where files are read and written.
    seed: of what is drawn.
    """

    def __init__(self, window: MainWindow, folder: Path, seed: int) -> None:
        self.window = window
        self.session = window.session
        self.folder = folder
        self.draw = random.Random(seed)
        self._acting = False
        self._names = [name for name, weight, _ in DEEDS for _ in range(weight)]
        self._deeds = {name: deed for name, _, deed in DEEDS}
        self._keys = [
            key
            for keys in (s.keys for s in ACTIONS if s.name not in LEAVES)
            for key in keys
        ]  # fmt: skip
        self._keys += [str(n) for n in range(1, len(GROUPS) + 1)]
        self._keys += [f"Ctrl+{n}" for n in range(1, len(LAYOUTS) + 1)]
        self._files = make_files(folder)
        # A dialog with an event loop of its own would keep the hand from its next action.
        self._freer = QTimer(window, interval=20)
        self._freer.timeout.connect(self._free)
        self._freer.start()
        self._choosers = [
            patch.object(QFileDialog, name, staticmethod(answer))
            for name, answer in (
                ("getOpenFileName", self._choose_to_read),
                ("getSaveFileName", self._choose_to_write),
                ("getExistingDirectory", lambda *_, **__: str(self.folder)),
            )
        ]
        for chooser in self._choosers:
            chooser.start()

    def close(self) -> None:
        """Let go of the window."""
        self._freer.stop()
        for chooser in self._choosers:
            chooser.stop()

    def act(self) -> Callable[[], str]:
        """Return the next action, drawn now: it does it and says what it was."""
        if self.popup is not None and self.draw.random() < 0.9:
            name = "popup"
        elif self.dialog is not None and self.draw.random() < 0.9:
            name = "dialog"
        else:
            name = self.draw.choice(self._names)
        deed = self._deeds.get(name) or {"popup": Hand.use_popup, "dialog": Hand.use_dialog}[name]

        def do() -> str:
            self._acting = True
            try:
                said = deed(self)
            finally:
                self._acting = False
            return f"{name} {said or ''}".strip()

        return do

    def leave(self) -> None:
        """End what is going on: a talk, a lesson, a run; the window takes a moment for it."""
        window, session = self.window, self.session
        self.end_dialogs()
        window.actions_by_name["present"].setChecked(False)
        window.actions_by_name["blank"].setChecked(False)
        window.lessons.player.leave()
        session.tasks.cancel()
        session.play(False)

    def rest(self) -> None:
        """Put the window into a state to be compared: the demo, the first layout, nothing open."""
        window, session = self.window, self.session
        session.runs.clear()
        window.settings.theme, window.settings.text_scale = "dark", 1.0
        window.setWindowState(Qt.WindowState.WindowNoState)
        window.resize(*SIZES[0])
        window.desk.take(LAYOUTS[0].name)
        window.desk.reset()
        window.change_text(0)
        window.files.open_path(SCENARIOS / "flash2.toml")
        self.end_dialogs()
        session.settle()
        session.first()
        session.select(None)
        session.choose_row(0)
        session.settle()

    def end_dialogs(self) -> None:
        """Close what is open over the window."""
        for _ in range(8):
            top = self.popup or self.dialog
            if top is None:
                return
            top.close()
            QApplication.processEvents()

    # --- what is there ----------------------------------------------------------------------

    @property
    def popup(self) -> QWidget | None:
        """The menu or list that is open."""
        return QApplication.activePopupWidget()

    @property
    def dialog(self) -> QWidget | None:
        """The dialog that is open."""
        return QApplication.activeModalWidget()

    def _free(self) -> None:
        """Close a dialog or menu that does not let an action end."""
        if self._acting:
            top = self.popup or self.dialog
            if top is not None:
                top.close()

    def _choose_to_read(self, *_: object, **__: object) -> tuple[str, str]:
        return (str(self.draw.choice(self._files)) if self.draw.random() < 0.7 else ""), ""

    def _choose_to_write(self, *_: object, **__: object) -> tuple[str, str]:
        name = self.draw.choice(("mine.toml", "a.png", "b.svg", "tile.npz", "no/such/folder.png"))
        return (str(self.folder / name) if self.draw.random() < 0.7 else ""), ""

    # --- keys and mouse ---------------------------------------------------------------------

    def _window(self) -> QWindow:
        """Return a window on the screen, most often the main one."""
        main = self.window.windowHandle()
        if self.draw.random() < 0.85:
            return main
        shown = [w for w in QGuiApplication.topLevelWindows() if w.isVisible()]
        return self.draw.choice(shown) if shown else main

    def _place(self) -> tuple[QWindow, QPoint]:
        """Return a window and a place in it: anywhere, or in the middle of a control."""
        at = self._window()
        point = QPoint(self.draw.randrange(max(at.width(), 1)),
                       self.draw.randrange(max(at.height(), 1)))  # fmt: skip
        main = self.window
        if at is main.windowHandle() and self.draw.random() < 0.5:
            shown = shown_in(main)
            if shown:
                widget = self.draw.choice(shown)
                point = widget.mapTo(main, within(self.draw, widget.rect()))
        return at, point

    def press_key(self) -> str:
        """Press a key of an action, a dock or a layout."""
        keys = self.draw.choice(self._keys)
        press(self._window(), keys)
        return keys

    def press_other_key(self) -> str:
        """Press a key that goes to the widget with the focus."""
        keys = self.draw.choice(OTHER_KEYS)
        press(self._window(), keys)
        return keys

    def step(self) -> str:
        """Step through the run with the arrow keys."""
        keys = self.draw.choice(("Right", "Right", "Right", "Left", "Home", "End", "Shift+Right"))
        press(self.window.windowHandle(), keys)
        return keys

    def move(self) -> None:
        """Move the mouse."""
        at, point = self._place()
        mouse(QTest.mouseMove, at, point)

    def click(self) -> str:
        """Click somewhere, now and then twice or with the right button."""
        at, point = self._place()
        button = RIGHT if self.draw.random() < 0.1 else LEFT
        under = QApplication.widgetAt(at.mapToGlobal(point))
        if at is self.window.windowHandle() and self.draw.random() < 0.1:
            mouse(QTest.mouseDClick, at, button, NO_KEYS, point)
        else:
            click(at, button, point)
        return type(under).__name__ if under is not None else "elsewhere"

    def drag(self) -> None:
        """Drag from one place to another."""
        at, point = self._place()
        size = at.size()
        mouse(QTest.mousePress, at, LEFT, NO_KEYS, point)
        for _ in range(self.draw.randint(1, 4)):
            x = point.x() + self.draw.randint(-90, 90)
            y = point.y() + self.draw.randint(-60, 60)
            point = QPoint(min(max(x, 0), size.width() - 1), min(max(y, 0), size.height() - 1))
            mouse(QTest.mouseMove, at, point)
        mouse(QTest.mouseRelease, at, LEFT, NO_KEYS, point)

    def turn_wheel(self) -> None:
        """Turn the wheel, with Ctrl or without."""
        at, point = self._place()
        widget = QApplication.widgetAt(at.mapToGlobal(point)) or self.window.board
        by = QPoint(0, self.draw.choice((-120, 120)))
        keys = Qt.KeyboardModifier.ControlModifier if self.draw.random() < 0.5 else NO_KEYS
        place = QPointF(widget.mapFromGlobal(at.mapToGlobal(point)))
        event = QWheelEvent(
            place, QPointF(at.mapToGlobal(point)), QPoint(), by, Qt.MouseButton.NoButton, keys,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        QApplication.sendEvent(widget, event)

    def type_text(self) -> str:
        """Type into a field of the scenario, and press Enter or leave it."""
        self.window.docks["scenario"].show()
        panel = self.window.docks.panel("scenario")
        field = self.draw.choice([f for f in panel.fields.values() if not f.isHidden()])
        editor, text = field.editor, self.draw.choice(TYPED)
        editor.setFocus()
        QTest.keyClick(editor, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        type_into(editor, text)
        QTest.keyClick(
            editor, self.draw.choice((Qt.Key.Key_Return, Qt.Key.Key_Tab, Qt.Key.Key_Escape))
        )
        return f"{field.spec.name} {text!r}"

    # --- menus and dialogs ------------------------------------------------------------------

    def use_menu(self) -> str:
        """Open a menu as the menu bar does, and choose something in it."""
        menu = self.draw.choice([*self.window.menus.values(), self.window.panels_menu])
        menu.aboutToShow.emit()
        return self._choose(menu)

    def _choose(self, menu: QMenu) -> str:
        own = {self.window.actions_by_name[name] for name in LEAVES}
        actions = [
            a for a in menu.actions() if a.isEnabled() and not a.isSeparator() and a not in own
        ]
        if not actions:
            return "nothing"
        action = self.draw.choice(actions)
        # Not action.menu(): the binding takes the menu's object in Python away with the action's.
        inner = QMenu.menuInAction(action)
        if inner is not None:
            inner.aboutToShow.emit()
            return self._choose(inner)
        words = action.text()
        action.trigger()
        return words

    def open_menu(self) -> str:
        """Open a menu on the screen."""
        name = self.draw.choice(list(self.window.menus))
        self.window.menus[name].popup(self.window.mapToGlobal(QPoint(60, 30)))
        return name

    def use_popup(self) -> str:
        """Choose something in the menu or list that is open, or close it."""
        top = self.popup
        if top is None:
            return "gone"
        if isinstance(top, QMenu) and self.draw.random() < 0.5:
            words = self._choose(top)
        else:
            words = "closed"
            if self.draw.random() < 0.5:
                press(self.window.windowHandle(), self.draw.choice(("Up", "Down", "Return")))
        if isValid(top):
            top.close()
        return words

    def use_dialog(self) -> str:
        """Do something in the dialog that is open, or close it."""
        top = self.dialog
        if top is None:
            return "gone"
        name = top.objectName() or type(top).__name__
        chance = self.draw.random()
        handle = top.windowHandle()
        if chance < 0.3 or handle is None:
            if isinstance(top, QDialog) and self.draw.random() < 0.5:
                top.reject()
            else:
                top.close()
            return f"{name} closed"
        if chance < 0.8:
            shown = shown_in(top)
            if shown:
                widget = self.draw.choice(shown)
                place = widget.mapTo(top, within(self.draw, widget.rect()))
                click(handle, LEFT, place)
                return f"{name} {type(widget).__name__}"
        focus = QApplication.focusWidget()
        if focus is not None:
            type_into(focus, self.draw.choice(TYPED))
        return f"{name} typed"

    # --- what the window is for -------------------------------------------------------------

    def change_scenario(self) -> str:
        """Change the scenario, as the form does; not every change can be used."""
        scenario = self.session.scenario
        if scenario is None:
            return ""
        changes = random_changes(self.draw)
        try:
            self.session.propose(with_values(scenario, changes), "by hand")
        except InputError as error:
            self.window.show_error(error)
        return str(changes)

    def small_scenario(self) -> None:
        """Go back to something small: what is tried next is to be quick."""
        self.session.propose(small(self.draw), "small")

    def open_file(self) -> str:
        """Open a file, as if it were dropped on the window."""
        path = self.draw.choice(self._files)
        self.window.files.open_path(path)
        return path.name

    def open_lesson(self) -> str:
        """Open a lesson at its first step."""
        path = self.draw.choice(sorted(LESSONS.glob("*.md")))
        self.window.lessons.open(path)
        return path.stem

    def go_in_lesson(self) -> str:
        """Go to another step of the lesson that is open, or leave it."""
        player = self.window.lessons.player
        if player.lesson is None:
            return "none"
        way = self.draw.choice((player.next, player.next, player.next, player.back, player.leave,
                                lambda: player.go(self.draw.randrange(9))))  # fmt: skip
        way()
        return getattr(way, "__name__", "go")

    def present(self) -> None:
        """Begin a talk or end it."""
        self.window.actions_by_name["present"].toggle()

    def draw_with_pen(self) -> None:
        """Draw with the pen, or move the spotlight, where a talk is on."""
        presenter = self.window.presenter
        if presenter.on:
            self.draw.choice((presenter.toggle_pen, presenter.toggle_spotlight,
                              presenter.link.toggle, presenter.overlay.clear))()  # fmt: skip
            self.drag()

    def take_layout(self) -> str:
        """Take a layout."""
        name = self.draw.choice(LAYOUTS).name
        self.window.desk.actions[name].trigger()
        return name

    def change_dock(self) -> str:
        """Show, hide, float or raise a dock."""
        spec = self.draw.choice(PANELS)
        dock = self.window.docks[spec.name]
        deed = self.draw.choice(("toggle", "show", "float", "raise"))
        if deed == "toggle":
            self.window.docks.actions[spec.name].trigger()
        elif deed == "float":
            dock.setFloating(not dock.isFloating())
        else:
            dock.show()
            dock.raise_()
        return f"{deed} {spec.name}"

    def resize(self) -> str:
        """Give the window another size or state."""
        if self.draw.random() < 0.3:
            state = self.draw.choice(STATES)
            self.window.setWindowState(state)
            return state.name
        size = self.draw.choice(SIZES)
        self.window.resize(*size)
        return str(size)

    def look(self) -> str:
        """Take another theme or text size."""
        name = self.draw.choice(("next_theme", "larger_text", "smaller_text", "smaller_text"))
        self.window.actions_by_name[name].trigger()
        return name

    def zoom(self) -> str:
        """Zoom the board."""
        name = self.draw.choice(("zoom_in", "zoom_in", "zoom_out", "zoom_fit"))
        self.window.actions_by_name[name].trigger()
        return name

    def play(self) -> str:
        """Play, pause, or play otherwise."""
        way = self.draw.choice(("play", "play", "speed", "granularity"))
        if way == "play":
            self.window.actions_by_name["play"].trigger()
        elif way == "speed":
            self.session.set_speed(self.draw.choice(SPEEDS))
        else:
            self.session.set_granularity(self.draw.choice(list(Granularity)))
        return way

    def go(self) -> None:
        """Go anywhere in the run."""
        if self.session.trace is not None:
            self.session.go(
                Cursor(self.draw.randrange(len(self.session.trace)), self.draw.randrange(9))
            )

    def undo(self) -> str:
        """Undo or redo."""
        name = self.draw.choice(("undo", "undo", "redo"))
        self.window.actions_by_name[name].trigger()
        return name

    def choose_cell(self) -> None:
        """Hover over, select, pin or unpin a cell, there or not."""
        cell = Cell(self.draw.choice("SQKVOml"), self.draw.randrange(70), self.draw.randrange(70))
        values = self.window.docks.panel("values")
        chance = self.draw.random()
        if chance < 0.4:
            self.session.select(cell)
        elif chance < 0.6:
            values.show_hover(cell)
        elif chance < 0.9:
            values.pin(cell)
        else:
            values.table.selectAll()
            values.unpin()

    def pin(self) -> None:
        """Pin what is under the mouse, or selected."""
        self.window.actions_by_name["pin_cell"].trigger()

    def break_and_run(self) -> str:
        """Set or remove a breakpoint, run to one, or call it off."""
        runs = self.session.runs
        way = self.draw.choice(("set", "set", "run", "back", "clear", "cancel"))
        if way == "set":
            runs.toggle(AtOp(self.draw.choice(("mask", "rescale", "accumulate", "nothing"))))
        elif way == "clear":
            runs.clear()
        elif way == "cancel":
            self.window.header.progress.cancelled.emit()
        else:
            runs.run_to_breakpoint(way == "run")
        return way

    def use_panel(self) -> str:
        """Click a control of a panel that is seen: sweeps, faults, charts, tabs, sliders."""
        seen = [spec.name for spec, dock in self.window.docks if dock.isVisible()]
        if not seen:
            return "none"
        name = self.draw.choice(seen)
        panel = self.window.docks.panel(name)
        window = panel.window()
        controls = [w for w in shown_in(window) if panel.isAncestorOf(w) and w.isEnabled()]
        widget = self.draw.choice([panel, *controls])
        kind = type(widget).__name__
        spot = within(self.draw, widget.rect())
        QTest.mouseClick(widget, LEFT, NO_KEYS, spot)
        if isValid(widget) and self.draw.random() < 0.3:
            press_in(widget, self.draw.choice(PRESSED))
        return f"{name} {kind}"

    def clear_up(self) -> str:
        """Come back from what a user would not stay in: a talk, a lesson, full screen."""
        window = self.window
        if window.presenter.on:
            window.actions_by_name["present"].setChecked(False)
            return "talk"
        if window.lessons.player.lesson is not None:
            window.lessons.player.leave()
            return "lesson"
        if window.windowState() is not Qt.WindowState.WindowNoState:
            window.setWindowState(Qt.WindowState.WindowNoState)
            return "full screen"
        window.desk.reset()
        return "layout"


DEEDS: tuple[tuple[str, int, Callable[[Hand], object]], ...] = (
    ("step", 16, Hand.step),
    ("key", 8, Hand.press_key),
    ("other key", 6, Hand.press_other_key),
    ("move", 12, Hand.move),
    ("click", 10, Hand.click),
    ("drag", 3, Hand.drag),
    ("wheel", 4, Hand.turn_wheel),
    ("type", 2, Hand.type_text),
    ("menu", 2, Hand.use_menu),
    ("open menu", 1, Hand.open_menu),
    ("scenario", 3, Hand.change_scenario),
    ("small", 2, Hand.small_scenario),
    ("file", 1, Hand.open_file),
    ("lesson", 1, Hand.open_lesson),
    ("step of lesson", 3, Hand.go_in_lesson),
    ("present", 1, Hand.present),
    ("pen", 1, Hand.draw_with_pen),
    ("layout", 1, Hand.take_layout),
    ("dock", 1, Hand.change_dock),
    ("resize", 1, Hand.resize),
    ("look", 1, Hand.look),
    ("zoom", 3, Hand.zoom),
    ("play", 4, Hand.play),
    ("go", 6, Hand.go),
    ("undo", 2, Hand.undo),
    ("cell", 5, Hand.choose_cell),
    ("pin", 1, Hand.pin),
    ("break", 2, Hand.break_and_run),
    ("panel", 6, Hand.use_panel),
    ("clear up", 2, Hand.clear_up),
)
"""What the hand does, and how often beside the rest."""
