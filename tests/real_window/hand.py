"""A user's hand: keys and mouse of the X server, from inside the program that they are meant for.

A script is a generator. It runs in the program's own event loop, a little at a time, and yields
whenever the program is to have its turn.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Generator

from PySide6.QtCore import QPoint
from PySide6.QtGui import QGuiApplication, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDockWidget

from simulator.base.assets import LESSONS
from tests.helpers.paging import Judge
from tests.real_window.cases import LEFT, WAYS, Case
from tests.real_window.keys import x_keys
from ui.look.layouts import LAYOUT_NAMES
from ui.session.calm import Calm
from ui.window.main_window import MainWindow
from ui.window.panel_specs import GROUPS

Script = Generator[None, None, None]

SOON = 30.0
"""Seconds within which the program has to answer."""


class Fault(Exception):  # noqa: N818  # a fault of the program
    """The program does not do what it was asked for."""


class Hand:
    """What a user does.

    seed: of what is drawn at random.
    """

    def __init__(self, seed: int = 0) -> None:
        self.rng = random.Random(seed)
        self.done: list[str] = []
        """What was done so far, for the report."""

    # --- looking --------------------------------------------------------------------------

    @property
    def window(self) -> MainWindow:
        """The window."""
        for widget in QApplication.topLevelWidgets():
            if isinstance(widget, MainWindow) and widget.isVisible():
                return widget
        raise Fault("there is no window")

    @property
    def open(self) -> bool:
        """Whether there is a window."""
        return any(
            isinstance(w, MainWindow) and w.isVisible() for w in QApplication.topLevelWidgets()
        )

    def wait(self, true: Callable[[], bool], what: str, seconds: float = SOON) -> Script:
        """Let the program have its turn until something is true."""
        deadline = time.monotonic() + seconds
        while not true():
            if time.monotonic() > deadline:
                raise Fault(f"after {seconds:g} s {what}")
            yield

    def pause(self, seconds: float = 0.03) -> Script:
        """Let the program have its turn for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            yield

    def ready(self) -> Script:
        """Wait until the window is there, active, and shows a run."""
        yield from self.wait(lambda: self.open, "there is no window")
        session = self.window.session
        yield from self.wait(lambda: session.view is not None, "the window shows nothing")
        yield from self.active()

    def active(self) -> Script:
        """Wait until keys go to the program."""
        yield from self.wait(
            lambda: QGuiApplication.focusWindow() is not None, "the window has not got the keys"
        )

    # --- doing ----------------------------------------------------------------------------

    def _tool(self, *arguments: str) -> Script:
        with subprocess.Popen(["xdotool", *arguments]) as tool:
            while tool.poll() is None:
                yield
        yield
        yield

    def key(self, keys: str) -> Script:
        """Press keys, written as Qt writes them; Super is for the window manager."""
        self.done.append(keys)
        yield from self._tool("key", x_keys(keys))

    def type(self, text: str) -> Script:
        """Type a text."""
        self.done.append(repr(text))
        yield from self._tool("type", "--delay", "15", text)

    def click(self, at: QPoint) -> Script:
        """Click a place on the screen."""
        self.done.append(f"click {at.x()}, {at.y()}")
        yield from self._tool("mousemove", str(at.x()), str(at.y()), "click", "1")

    def title_of(self, dock: QDockWidget) -> tuple[str, str]:
        """Return where a dock's title is on the screen."""
        title = dock.titleBarWidget()
        point = title.mapToGlobal(title.rect().center())
        return str(point.x()), str(point.y())

    def float_dock(self, dock: QDockWidget) -> Script:
        """Double-click the title of a dock: it floats, or is docked again."""
        self.done.append(f"float {dock.objectName()}")
        click = ("click", "--repeat", "2", "--delay", "20", "1")
        yield from self._tool("mousemove", *self.title_of(dock), *click)

    def drag_dock(self, dock: QDockWidget, by: tuple[int, int]) -> Script:
        """Drag a dock by its title."""
        self.done.append(f"drag {dock.objectName()} by {by}")
        half = [str(each // 2) for each in by]
        move = ("mousemove_relative", "--", *half)
        yield from self._tool("mousemove", *self.title_of(dock), "mousedown", "1")
        for _ in range(2):
            yield from self._tool(*move)
        yield from self._tool("mouseup", "1")

    def maximise(self) -> Script:
        """Let the window manager maximise the window, or put it back."""
        window = self.window
        before = window.isMaximized()
        yield from self.key("Super+Up")
        yield from self.wait(
            lambda: window.isMaximized() != before, "the window is as large as before"
        )

    def minimise(self) -> Script:
        """Let the window manager put the window away, and bring it back."""
        yield from self.key("Super+Down")
        yield from self.pause(0.05)
        yield from self.bring_back()

    def bring_back(self) -> Script:
        """Bring the window back where it is put away or nothing has the keys."""
        for _ in range(20):
            if QGuiApplication.focusWindow() is not None and not self.window.isMinimized():
                return
            yield from self.key("Super+Tab")
            yield from self.pause(0.1)
        raise Fault("the window does not come back")

    def to_front(self) -> Script:
        """Give the keys to the window, not to a dock that floats."""
        for _ in range(20):
            if self.window.isActiveWindow():
                return
            yield from self.key("Super+Tab")
            yield from self.pause(0.1)
        raise Fault("the window cannot be made active")

    def close_by(self, keys: str) -> Script:
        """Press keys that close the window in front.

        Once more where another window came to the front before them: that of the speaker comes a
        while after the key that opens it, and takes the keys that follow.
        """
        yield from self.key(keys)
        yield from self.wait(
            lambda: not (self.open and self.window.isActiveWindow()), "the window has not closed"
        )
        if self.open:
            yield from self.to_front()
            yield from self.key(keys)

    def quit(self) -> Script:
        """Quit."""
        yield from self.key("Ctrl+Q")
        yield from self.wait(lambda: not self.open, "Ctrl+Q has not closed the window")

    def shown_docks(self) -> list[QDockWidget]:
        """Return the docks whose title can be clicked."""
        docks = (dock for _, dock in self.window.docks)
        return [
            d for d in docks if d.isVisible() and not d.titleBarWidget().visibleRegion().isEmpty()
        ]


class HandWithoutKeys(Hand):
    """A hand for a screen that takes no keys from outside: it triggers what they stand for."""

    def key(self, keys: str) -> Script:
        self.done.append(keys)
        wanted = QKeySequence(keys)
        action = next((each for each in self.window.actions() if wanted in each.shortcuts()), None)
        if action is not None:
            action.trigger()
        else:  # a key of what has the focus
            QTest.keySequence(self.window.focusWidget() or self.window, wanted)
        yield

    def active(self) -> Script:
        handle = self.window.windowHandle()
        yield from self.wait(handle.isExposed, "the window cannot be seen")

    def maximise(self) -> Script:
        window = self.window
        window.setWindowState(window.windowState() ^ window.windowState().WindowMaximized)
        yield from self.pause(0.1)


# --- what is left behind ------------------------------------------------------------------


def leave(hand: Hand, case: Case) -> Script:
    """Do with the window what a start is to find, and quit."""
    yield from hand.ready()
    if hand.window.cover is not None:
        yield from hand.key("Esc")  # what is to be left behind lies below the first page
        yield from hand.wait(lambda: hand.window.cover is None, "the first page has not gone")
    for what in LEFT[case.left]:
        yield from _prepare(hand, what)
        yield from hand.pause(0.1)
    yield from hand.quit()


def _prepare(hand: Hand, what: str) -> Script:
    window = hand.window
    if what.startswith("layout "):
        name = what.removeprefix("layout ")
        yield from hand.key(f"Ctrl+{LAYOUT_NAMES.index(name) + 1}")
        yield from hand.wait(lambda: window.desk.current == name, f"the layout is not {name}")
    elif what == "maximise":
        yield from hand.maximise()
    elif what == "full_screen":
        yield from hand.key("F11")
        yield from hand.wait(window.isFullScreen, "F11 has not made the window full screen")
    elif what == "present":
        yield from hand.key("F5")
        yield from hand.wait(lambda: window.presenter.on, "F5 has not begun a talk")
    elif what in ("small", "far"):
        yield from hand.key("Super+1" if what == "small" else "Super+4")
    elif what == "float_all":
        for dock in reversed(hand.shown_docks()):  # one that floats hides those that follow
            yield from hand.float_dock(dock)
            yield from hand.wait(dock.isFloating, f"{dock.objectName()} does not float")
    elif what == "large_text":
        for _ in range(4):
            yield from hand.key("Ctrl+Shift++")
    else:
        raise Fault(f"nobody knows how to {what}")


# --- starts -------------------------------------------------------------------------------


def start(hand: Hand, case: Case) -> Script:
    """Look at the window, step, and quit."""
    yield from hand.ready()
    yield from hand.key("Right")
    session = hand.window.session
    yield from hand.wait(lambda: session.settled, "the engine is still at work")
    yield from hand.quit()


# --- at random ----------------------------------------------------------------------------

KEYS = (
    "F11", "F11", "F5", "F5", "Esc", "Right", "Left", "Home", "End", "Shift+Right", "Space",
    "PgDown", "PgDown", "PgUp", "A", "Ctrl+W", "T", "M", "B", "Ctrl+Shift++", "Ctrl+Shift+-",
    "Super+1", "Super+2", "Super+3", "Ctrl+P", "S", "Alt+Right", "P",
    *(f"Ctrl+{n}" for n in range(1, len(LAYOUT_NAMES) + 1)),
    *(str(n) for n in range(1, len(GROUPS) + 1)),
)  # fmt: skip


def act(hand: Hand) -> Script:
    """Do one thing at random: as much is drawn whatever the window shows, so a seed repeats."""
    kinds = ("key", "maximise", "minimise", "lesson", "float", "drag")
    kind = hand.rng.choices(kinds, (60, 8, 4, 12, 10, 6))[0]
    key, lesson = hand.rng.choice(KEYS), hand.rng.choice(sorted(LESSONS.glob("*.md")))
    by = hand.rng.randint(-900, 900), hand.rng.randint(-500, 500)
    place, pause = hand.rng.random(), hand.rng.choice((0, 0, 0.02, 0.1))
    docks = hand.shown_docks()
    if kind == "maximise":
        yield from hand.key("Super+Up")
    elif kind == "minimise":
        yield from hand.minimise()
    elif kind == "lesson":
        hand.done.append(lesson.stem)
        hand.window.lessons.open(lesson)
    elif kind == "float" and docks:
        yield from hand.float_dock(docks[int(place * len(docks))])
    elif kind == "drag" and docks:
        yield from hand.drag_dock(docks[int(place * len(docks))], by)
    else:
        yield from hand.key(key)
    yield from hand.pause(pause)


def sequence(hand: Hand, case: Case) -> Script:
    """Do things at random, then close the window."""
    yield from hand.ready()
    for _ in range(hand.rng.randint(2, 5)):
        yield from act(hand)
        yield from hand.bring_back()
    away, by_manager = hand.rng.random() < 0.3, hand.rng.random() < 0.4
    if away:
        yield from hand.key("Super+Down")  # closing what is put away
        hand.window.close()
    else:
        yield from hand.to_front()
        # One that floats may have the window manager's eye, which closes that one alone.
        alone = not any(dock.isFloating() for _, dock in hand.window.docks)
        yield from hand.close_by("Alt+F4" if by_manager and alone else "Ctrl+Q")
    yield from hand.wait(lambda: not hand.open, "the window has not closed")


def ways_of(hand: Hand) -> list[tuple[str, ...]]:
    """Return the command lines of a sequence: what one start leaves the next one finds."""
    ways = [WAYS[way] for way in sorted(WAYS) if "{lesson}" not in WAYS[way]]
    return [hand.rng.choice(ways) for _ in range(hand.rng.choice((1, 1, 1, 2)))]


def page(hand: Hand, case: Case) -> Script:
    """Page through a lesson on the stage, three pages within a tenth of a second each time."""
    yield from hand.ready()
    window = hand.window
    session, player = window.session, window.lessons.player
    yield from hand.wait(lambda: window.presenter.on, "there is no talk")
    window.actions_by_name["set_motion"].setChecked(False)
    yield from hand.pause(0.5)
    screen = window.screen()
    while player.step is None or player.step.number + 3 < player.step.count:
        yield from hand.wait(
            lambda: session.settled and not player.walking, "the engine is still at work"
        )
        judge = Judge(window, lambda: screen.grabWindow(0).toImage())
        hand.done.append("PgDown × 3")
        before, deadline = player.step, time.monotonic() + SOON
        with subprocess.Popen(["xdotool", "key", "--delay", "30", *["Next"] * 3]) as tool:
            calm = Calm(session)
            while tool.poll() is None or not (
                calm.turn()
                and session.settled
                # On a busy machine keys arrive late.
                and (player.step is not before or time.monotonic() > deadline)
            ):
                yield
                judge.look()
        yield from hand.wait(judge.rested, "the last picture is not whole")
        judge.end()
        if judge.faults:
            raise Fault("; ".join(judge.faults))
        if len(judge.pictures) < 2:
            raise Fault("no page was turned")
    yield from hand.quit()


SCRIPTS = {"leave": leave, "start": start, "sequence": sequence, "page": page}
