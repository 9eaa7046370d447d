"""A talk: full screen, a clicker's keys, pen and spotlight, the speaker's window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QByteArray, QEvent, QObject, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCursor,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QScreen,
    QWindow,
)
from PySide6.QtWidgets import QAbstractButton, QApplication, QDockWidget, QSizePolicy, QWidget
from shiboken6 import isValid

from simulator.base.errors import safe_text
from simulator.lesson.steps import ResolvedStep
from ui.look.slide import LEAVE_MS
from ui.look.theme import Style
from ui.safety.overrides import guarded
from ui.talk.arrival import Arrival
from ui.talk.awake import Awake
from ui.talk.pen_overlay import PenOverlay
from ui.talk.presenter_keys import DRAWING, ENTER, IN_SPEAKER, LETTERS, PLAIN, ZOOM, key_text
from ui.talk.speaker_link import SpeakerLink
from ui.talk.speaker_window import SpeakerWindow
from ui.widgets.message_bar import MessageKind

if TYPE_CHECKING:
    from ui.window.dock_sizes import Shares
    from ui.window.main_window import MainWindow

JUMP_MS = 4000
"""How long a number waits for the next digit, or for Enter."""
HIDE_CURSOR_MS = 3000
"""How long the pointer must not move before it is hidden."""
_DIGITS = 3
"""Most digits of a step's number."""
_SETTLE_MS, _SETTLE_TRIES = 50, 40
"""How often, and how many times, the window's size is checked after a talk."""


@dataclass(frozen=True, slots=True)
class _Before:
    """The state of the window before the talk."""

    state: Qt.WindowState
    geometry: QByteArray
    size: QSize
    screen: QScreen
    docks: QByteArray
    shares: Shares
    layout: object
    menu: bool


@guarded
class Presenter(QObject):
    """Presents a window, and restores it afterwards."""

    toggled = Signal(bool)
    """Whether a talk is going on."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.window = self._window = window
        self._before: _Before | None = None
        self.arrival = Arrival(window)
        self._scenario = False
        """Whether the current layout has the scenario dock, which is hidden in a talk."""
        self.awake = Awake()
        self.overlay = PenOverlay(window)
        self.link = SpeakerLink(self)
        self._watched: list[QWindow] = []
        self._pointer = QPoint()
        self._cursor_hidden = False
        self._still = QTimer(self, singleShot=True, interval=HIDE_CURSOR_MS)
        self._still.timeout.connect(self.hide_pointer)
        self._jump = ""
        """The number of a step that has been typed so far."""
        self._forget_jump = QTimer(self, singleShot=True, interval=JUMP_MS)
        self._forget_jump.timeout.connect(self.end_jump)
        self._leave = QTimer(self, singleShot=True, interval=LEAVE_MS)
        self._leave.timeout.connect(self._hide_controls)
        self._settling = QTimer(self, interval=_SETTLE_MS)
        self._settling.timeout.connect(self._settle)
        self._settled_as: _Before | None = None
        self._tries = 0
        self._calm = False
        """Whether the window had its own sizes at the last look."""
        top = window.header.parentWidget()
        assert top is not None
        # Also without the header, the line for errors must be as wide as the window.
        top.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        player = window.lessons.player
        player.step_changed.connect(self._show_step)
        player.ended_changed.connect(window.stage.show_slide)
        window.session.playing_changed.connect(window.stage.rest)
        self.overlay.changed.connect(self._wake_cursor)
        self.overlay.changed.connect(self._put_brush_away)

    @property
    def speaker(self) -> SpeakerWindow | None:
        """The speaker's window, from the first talk on."""
        return self.link.speaker

    @property
    def on(self) -> bool:
        """Whether a talk is going on."""
        return self._before is not None

    # --- begin and end --------------------------------------------------------------------

    def start(self) -> None:
        """Fill the screen with the window, without the parts that are not for the audience."""
        if self.on:
            return
        window = self._window
        self._settling.stop()
        self._before = _Before(
            window.windowState(), window.saveGeometry(), window.size(), window.screen(),
            window.saveState(), window.docks.sizes.own, self._layout(),
            not window.menuBar().isHidden(),
        )  # fmt: skip
        window.menuBar().hide()
        window.stage.set(True)
        self.tidy()
        if not window.isFullScreen():
            self.arrival.wait_for(window.screen().size())
        window.setWindowState(window.windowState() | Qt.WindowState.WindowFullScreen)
        window.fit_talk()
        self.awake.hold()
        app = _app()
        window.installEventFilter(self)
        self._watch(window.windowHandle())
        app.focusWindowChanged.connect(self._watch)
        self._pointer = QCursor.pos()
        self._still.start()
        self.link.begin()
        self.toggled.emit(True)

    def end(self) -> None:
        """Restore everything."""
        before, self._before = self._before, None
        if before is None:
            return
        window = self._window
        app = _app()
        app.focusWindowChanged.disconnect(self._watch)
        window.removeEventFilter(self)
        for watched in filter(isValid, self._watched):
            watched.removeEventFilter(self)
        self._watched.clear()
        # Until then the window takes input, as at the beginning.
        if before.size == window.size():
            self.arrival.end()
        else:
            self.arrival.wait_for(before.size, window.size())
        self._still.stop()
        self._leave.stop()
        self.end_jump()
        self._wake_cursor()
        self._still.stop()
        self.overlay.set_pen(False)
        self.overlay.set_spotlight(False)
        self.overlay.clear()
        window.actions_by_name["blank"].setChecked(False)
        self.awake.release()
        self.link.end()
        window.stage.set(False)
        window.fit_talk()
        window.menuBar().setVisible(before.menu)
        window.setWindowState(before.state)
        if before.screen is not window.screen() and before.screen in QGuiApplication.screens():
            window.restoreGeometry(before.geometry)
        if self._layout() == before.layout:
            # Not at once: docks that were hidden would be made as large as the text of the stage.
            self._settle_later(before)
        else:
            dock = window.docks["scenario"]
            dock.setVisible(self._scenario or not dock.isHidden())
        self.toggled.emit(False)

    def _layout(self) -> object:
        return self._window.settings.layout, self._window.desk.lent

    def tidy(self) -> None:
        """After each change of layout, hide the scenario's dock from the audience."""
        if self.on:
            dock = self._window.docks["scenario"]
            self._scenario = not dock.isHidden()
            dock.hide()

    def state(self) -> QByteArray:
        """Return the docks' state, as `QMainWindow.saveState` would without the talk."""
        if not self.on:
            before = self._settled_as if self._settling.isActive() else None
            restoring = before is not None and self._layout() == before.layout
            return before.docks if before and restoring else self._window.saveState()
        dock = self._window.docks["scenario"]
        opened = not dock.isHidden()  # the speaker has opened it nevertheless
        dock.setVisible(self._scenario or opened)
        state = self._window.saveState()
        dock.setVisible(opened)
        return state

    def _put_back(self, before: _Before) -> None:
        """Restore the docks, with the same shares of the window."""
        self._window.docks.put_back(before.docks, before.shares)

    def _settle_later(self, before: _Before) -> None:
        """Restore the docks when the window is no longer full screen: it takes a moment."""
        self._settled_as, self._tries, self._calm = before, _SETTLE_TRIES, False
        self._settling.start()

    def _settle(self) -> None:
        before, window = self._settled_as, self._window
        assert before is not None
        if self.arrival.awaited or window.stage.lasts:
            return  # its text still has the size of a talk
        if not self._calm:
            self._calm = True  # work for the new size comes first
            return
        self._tries -= 1
        # This is the window's own state: the widget's is lost when its contents grow.
        states = window.windowHandle().windowStates()
        plain = states == before.state == Qt.WindowState.WindowNoState
        if plain and window.size() != before.size:
            # Parts that were high for a full screen may have kept the window from becoming small.
            window.lessons.bar.fit()
            window.resize(before.size)
        there = window.size() == before.size
        if there and self._layout() == before.layout:
            self._put_back(before)
        if there or not self._tries:
            self._settling.stop()

    def _close(self) -> None:
        """End the talk because the window closes; the window keeps its place from before."""
        before = self._before
        self.end()
        self.arrival.end()  # no input will come
        self._window.apply_style()
        self.arrival.paint()
        self._settling.stop()
        if before is not None:
            self._window.restoreGeometry(before.geometry)
            if self._layout() == before.layout:
                self._put_back(before)

    def set_style(self, style: Style) -> None:
        """Take theme and text scale."""
        self.overlay.set_style(style)
        self.link.set_style()

    # --- keys -----------------------------------------------------------------------------

    def next(self) -> None:
        """Go on: to the answer, to the next step, or in the run, and at its end to its costs."""
        self._leave_field()
        player, stage = self._window.lessons.player, self._window.stage
        if player.lesson is not None:
            player.next()
        elif stage.ended and self._window.session.share >= 1:
            stage.show_slide(True)
        else:
            self._window.session.step()

    def back(self) -> None:
        """Go back a step."""
        self._leave_field()
        player, stage = self._window.lessons.player, self._window.stage
        if player.lesson is not None:
            player.back()
        elif stage.slide.isVisible():
            stage.show_slide(False)
        else:
            self._window.session.step(False)

    def begin_jump(self) -> None:
        """Wait for the number of a step."""
        self._take_digits("")
        if self.speaker is not None and self.speaker.isVisible():
            self.speaker.show_list(True)

    def _take_digits(self, typed: str) -> None:
        """Take the number of a step as far as it has been typed, and name that step."""
        lesson = self._window.lessons.player.lesson
        if lesson is None:
            return
        self._jump = typed
        number, count = int(typed or 0), len(lesson.steps)
        title = safe_text(lesson.steps[number - 1].title) if 0 < number <= count else ""
        there = f"{typed}  {title}" if title else f"{typed or '…'}  of {count}"
        self._window.stage.band.say(
            f"Step {there}   Enter goes there" if typed else f"Step {there}"
        )
        self._forget_jump.start()

    def jump(self) -> None:
        """Go to the step whose number has been typed."""
        typed = self._jump
        self.end_jump()
        if typed.isdecimal() and int(typed) > 0:
            self._window.lessons.player.go(int(typed) - 1)

    def end_jump(self) -> None:
        """Forget a number that has been typed."""
        self._jump = ""
        self._forget_jump.stop()
        self._window.stage.band.say("")
        if self.speaker is not None:
            self.speaker.show_list(False)

    def _jump_key(self, pressed: str) -> Callable[[], object] | None:
        """Return the act of a digit, or of the key after it; None if the key acts as usual."""
        if self._window.lessons.player.lesson is None:
            return None
        if len(pressed) == 1 and pressed.isdecimal() and (self._jump or pressed != "0"):
            return partial(self._take_digits, (self._jump + pressed)[-_DIGITS:])
        if not self._forget_jump.isActive():
            return None
        if pressed in ENTER:
            return self.jump
        if pressed == "Backspace":
            return partial(self._take_digits, self._jump[:-1])
        return self.end_jump if pressed == "Esc" else None

    def _guess_key(self, pressed: str) -> Callable[[], object] | None:
        """Return the act of a key for a question that waits, whichever window has the key."""
        card = self._window.lessons.bar.card
        jumping = self._forget_jump.isActive()
        waits = self._window.lessons.player.waits and not jumping and not self.overlay.pen
        return partial(card.press, pressed) if waits and card.wants(pressed) else None

    def toggle_transport(self) -> None:
        """Show the place in the run, and its speed, in the empty band for a while, or hide them."""
        stage = self._window.stage
        on = not (self.overlay.pen or self.overlay.spotlight or stage.transport.isVisible())
        stage.what_if.leave(at_once=True)
        stage.show_transport(on)
        self._leave.start()

    def _hide_controls(self) -> None:
        """Hide the controls, unless the pointer is on them."""
        if self._window.stage.holds(QCursor.pos()):
            self._leave.start()
        else:
            self._window.stage.show_transport(False)

    def _leave_field(self) -> None:
        field = QApplication.focusWidget()
        if field is not None and _takes_text(field):
            field.clearFocus()  # so that the next letter is a key of the talk

    def reveal(self) -> None:
        """Show the answer to the question, or hide it."""
        player = self._window.lessons.player
        player.reveal(not player.revealed)

    def toggle_blank(self) -> None:
        """Make the screen black, or show it again."""
        self._window.actions_by_name["blank"].toggle()

    def toggle_pen(self) -> None:
        """Take the pen, or put it away."""
        self.overlay.set_pen(not self.overlay.pen)

    def toggle_spotlight(self) -> None:
        """Switch the spotlight on or off."""
        self.overlay.set_spotlight(not self.overlay.spotlight)

    def toggle_what_if(self) -> None:
        """Let the what-if strip come, or go."""
        stage = self._window.stage
        if stage.what_if.here:
            stage.what_if.leave()
        else:
            stage.show_transport(False)
            stage.ask_what_if()

    def _put_brush_away(self) -> None:
        """Stop painting a mask, and hide the transport, when pen or spotlight take the pointer."""
        if self.overlay.spotlight:
            self._window.stage.what_if.leave(at_once=True)
        if self.overlay.pen or self.overlay.spotlight:
            self._window.session.painting.stop()
            self._window.stage.show_transport(False)

    def off_or_end(self) -> None:
        """Remove a refusal or the strip, else end painting, else pen and black screen, else all."""
        messages, painting = self._window.messages, self._window.session.painting
        if messages.kind is MessageKind.REFUSAL and messages.escape():
            return
        if self._window.stage.what_if.here:
            self._window.stage.what_if.leave()
            return
        if painting.on:
            painting.stop()
            return
        blank = self._window.actions_by_name["blank"]
        if blank.isChecked() or self.overlay.pen or self.overlay.spotlight:
            blank.setChecked(False)
            self.overlay.set_pen(False)
            self.overlay.set_spotlight(False)
        else:
            self.end()

    # --- events ---------------------------------------------------------------------------

    def _watch(self, focused: QWindow | None) -> None:
        """Watch the events of a window before its widgets and all shortcuts get them."""
        if focused is not None and focused not in self._watched:
            self._watched.append(focused)
            focused.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Handle the keys of a talk, and notice the pointer and the end of the window."""
        kind = event.type()
        if watched is self._window:
            asks = event.spontaneous() and self._window.unsaved.asks  # it may decide not to close
            if kind is QEvent.Type.Close and not asks:
                self._close()
        elif kind is QEvent.Type.KeyPress or kind is QEvent.Type.ShortcutOverride:
            assert isinstance(event, QKeyEvent)
            return self._key(event)
        elif kind is QEvent.Type.MouseMove:
            assert isinstance(event, QMouseEvent)
            place = event.globalPosition().toPoint()
            if place != self._pointer:  # windows that appear and disappear send moves, too
                self._pointer = place
                self._wake_cursor()
                # Pen and spotlight show the scene, and controls over it would be in the way.
                points = self.overlay.pen or self.overlay.spotlight
                if not points and watched is self._window.windowHandle():
                    self._window.stage.what_if.point(self._window.mapFromGlobal(place))
        return False

    def _key(self, event: QKeyEvent) -> bool:
        """Do the act of a key in a talk; return whether the key has one."""
        active = QApplication.activeWindow()
        ours = active in (self._window, self.speaker) or isinstance(active, QDockWidget)
        if not ours or QApplication.activePopupWidget() is not None:
            return False
        pressed = key_text(event)
        field = QApplication.focusWidget()
        typing = field is not None and _takes_text(field)
        key = PLAIN.get(pressed)
        drawn = DRAWING.get(pressed) if self.overlay.pen else None
        does: Callable[[], object] | None = None
        if drawn is not None:
            does = attrgetter(drawn.does)(self)
        elif not typing and (guesses := self._guess_key(pressed)) is not None:
            does = guesses
        elif not typing and (jumps := self._jump_key(pressed)) is not None:
            does = jumps
        elif key is not None and not (key.typed and typing):
            does = attrgetter(key.does)(self)
        elif self.speaker is not None and self.speaker.isActiveWindow():
            does = self._in_speaker(pressed, field)
        if does is None:
            return not typing and self._is_dead(event, pressed)
        if event.type() is QEvent.Type.ShortcutOverride:
            event.accept()  # the key itself follows, and no shortcut gets it
        elif not event.isAutoRepeat():
            # Not in the filter: an error that is raised there stops Qt's other events, too.
            QTimer.singleShot(0, self, does)
        return True

    def _is_dead(self, event: QKeyEvent, pressed: str) -> bool:
        """Keep a letter or a digit without a meaning from panels; return whether this was one."""
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.ShiftModifier
        modifiers &= ~Qt.KeyboardModifier.KeypadModifier
        if modifiers or not event.text().isalnum():
            return False
        actions = (self._window.actions_by_name[name] for name in LETTERS)
        if any(pressed == key.toString() for action in actions for key in action.shortcuts()):
            return False
        event.accept()
        return True

    def _in_speaker(self, pressed: str, field: QWidget | None) -> Callable[[], object] | None:
        """Return the act of a key of the run in the speaker's window, or None."""
        speaker = self.speaker
        assert speaker is not None
        if pressed in ZOOM:
            return lambda: speaker.zoom(ZOOM[pressed])
        if pressed == "Space" and isinstance(field, QAbstractButton):
            return None
        for name in IN_SPEAKER:
            action = self._window.actions_by_name[name]
            if any(pressed == key.toString() for key in action.shortcuts()):
                return action.trigger
        return None

    # --- pointer --------------------------------------------------------------------------

    def hide_pointer(self) -> None:
        """Hide a pointer that does not move, unless it is on the controls."""
        at = QApplication.topLevelAt(QCursor.pos())
        what_if = self._window.stage.what_if
        if self._window.stage.holds(QCursor.pos()) or what_if.holds(QCursor.pos()):
            self._still.start()
            return
        if not self._cursor_hidden and not self.overlay.pen and at is not self.speaker:
            self._cursor_hidden = True
            QApplication.setOverrideCursor(Qt.CursorShape.BlankCursor)

    def _wake_cursor(self) -> None:
        if self._cursor_hidden:
            self._cursor_hidden = False
            QApplication.restoreOverrideCursor()
        if self.on:
            self._still.start()

    def _show_step(self, step: ResolvedStep | None) -> None:
        self.overlay.clear()
        self._window.stage.show_slide(False)
        self.link.show_step()


def _takes_text(widget: QWidget) -> bool:
    """Return whether typed letters go into a widget."""
    return widget.testAttribute(Qt.WidgetAttribute.WA_InputMethodEnabled)


def _app() -> QApplication:
    return cast(QApplication, QApplication.instance())
