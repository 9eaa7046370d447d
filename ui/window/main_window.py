"""The window: header, board, docks and transport; it handles the user's actions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QSize, Qt, QTimer
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QKeyEvent,
    QKeySequence,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QToolBar, QVBoxLayout, QWidget

from simulator.base.assets import DEMO
from simulator.base.errors import InputError, safe_text
from simulator.lesson.places import Framing
from simulator.program.faults import fault_labels
from simulator.run.trace import Trace
from ui.board.mask_brush import MaskBrush
from ui.board.panel import BoardPanel
from ui.look.icons import app_icon, icon
from ui.look.run_words import engine_note, engine_words
from ui.look.theme import (
    LABEL,
    TEXT_SCALES,
    THEMES,
    Style,
    frame_palette,
    growth,
    on_stage,
    palette,
    stage_label,
    stage_scale,
    stylesheet,
)
from ui.panels.transport.bar import TransportBar
from ui.panels.values.panel import ValuesPanel
from ui.safety.overrides import guarded
from ui.safety.settings import Settings
from ui.session.session import Session
from ui.session.sound import TickPlayer
from ui.session.view import View
from ui.talk.lessons import Lessons
from ui.talk.presenter import Presenter
from ui.talk.window import LessonWindow
from ui.widgets.drops import accept_copy
from ui.widgets.message_bar import MessageKind
from ui.widgets.parts import with_parts
from ui.window.actions import ACTIONS, make_actions, make_menus
from ui.window.ahead import StepAhead
from ui.window.desk import Desk
from ui.window.docks import Docks
from ui.window.file_menu import READS, Files
from ui.window.flight_overlay import FlightOverlay
from ui.window.links import Links
from ui.window.messages import Messages
from ui.window.rail import Rail
from ui.window.stage import Stage
from ui.window.top import WindowTop
from ui.window.unsaved import Unsaved

if TYPE_CHECKING:
    from ui.window.cover import Cover

FIRST_SHARE, LEAST_SIZE, FRAME = 0.8, QSize(1280, 720), QSize(16, 48)
"""Share of the screen's width and height that the first window takes, its least size, and room for
its frame."""

ON_THE_WAY_MS, ARRIVED_MS = 1000, 40
"""Times after which a window that moves to another screen counts as arrived, and after which it
then gets its sizes for that screen; in between it takes input."""


def first_size(screen: QSize) -> QSize:
    """Return the size of the first window on a screen."""
    return (screen * FIRST_SHARE).expandedTo(LEAST_SIZE).boundedTo(screen - FRAME)


@guarded
class MainWindow(LessonWindow):
    """Tilescope's window."""

    def __init__(self, session: Session, settings: Settings, *, unseen: bool = False) -> None:
        super().__init__()
        self._unseen = unseen
        """Whether the window is not on the screen, and leaves the application's style alone."""
        self.session = session
        self.settings = settings
        self.style_now = Style(THEMES[settings.theme], settings.text_scale)
        self._styled: tuple[Style, QWidget, bool] | None = None
        """The style that widgets got last, the middle of the window, whether on the stage."""
        self._fell_back = False
        self._asked: float | None = None
        """Text scale that was asked for during a talk."""
        self.setObjectName("window")
        self.setWindowIcon(app_icon())
        self.setAcceptDrops(True)
        self.board = BoardPanel()
        self.mask_brush = MaskBrush(self.board, session)
        self.sound = TickPlayer(session)
        self.top = WindowTop(self)
        self.header, self.what_if = self.top.header, self.top.what_if
        self.transport = TransportBar()
        self.messages = Messages(self)
        self._blank = QWidget(self)
        self.lessons = Lessons(self, self._blank)
        self.lessons.bar.asks = not unseen
        self.cover: Cover | None = None
        """The first page or the course map, while it is shown."""
        self._assemble()
        self.files = Files(self)
        self.links = Links(self)
        self.unsaved = Unsaved(self)
        self.docks: Docks = Docks(self, session)
        self.flights = FlightOverlay(self, self.board)
        self._values = self.docks.panel(ValuesPanel)
        self.actions_by_name = make_actions(self)
        self.desk: Desk = Desk(self)
        self.rail = Rail(self)
        self.panels_menu: QMenu
        self.menus = make_menus(self)
        self.stage = Stage(self)
        self.top.column.addWidget(self.stage.title)
        self._foot.addWidget(self.stage.band)
        self.ahead = StepAhead(self)
        self.presenter = Presenter(self)
        self._fit_soon = QTimer(self, singleShot=True)
        self._fit_soon.timeout.connect(self._arrive)
        self._fit_next = QTimer(self, singleShot=True, interval=0)
        self._fit_next.timeout.connect(self._fit_size)
        self.lessons.enable(False)
        self._connect()
        self._restore()
        self.apply_style()

    # --- assembly -------------------------------------------------------------------------

    def _assemble(self) -> None:
        self.setCentralWidget(self.board)
        self._add_bar("header", self.top, Qt.ToolBarArea.TopToolBarArea)
        foot = QWidget()
        self._foot = with_parts(
            QVBoxLayout(foot), self.lessons.bar, self.transport, margin=0, gap=0
        )
        self._add_bar("transport", foot, Qt.ToolBarArea.BottomToolBarArea)
        self._blank.setAutoFillBackground(True)
        self._blank.setPalette(Qt.GlobalColor.black)
        self._blank.hide()

    def _add_bar(self, name: str, widget: QWidget, area: Qt.ToolBarArea) -> None:
        bar = QToolBar(name.title())
        bar.setObjectName(name)
        bar.setMovable(False)
        bar.setFloatable(False)
        bar.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        bar.toggleViewAction().setVisible(False)
        bar.addWidget(widget)
        self.addToolBar(area, bar)

    def _show_word(self, name: str) -> None:
        """Explain a word of the glossary, in the box of the search."""
        from ui.window.search.dialog import open_word

        open_word(self, name)

    def createPopupMenu(self) -> QMenu:
        menu = QMenu(self)
        menu.addActions(list(self.docks.actions.values()))
        return menu

    def _connect(self) -> None:
        session, undo = self.session, self.session.undo_group
        session.view_changed.connect(self._show_view)
        session.moved.connect(self.board.show_share)
        session.moved.connect(self.docks.show_share)
        session.moved.connect(self.flights.show_share)
        session.trace_changed.connect(self._show_trace)
        session.refused.connect(self.show_error)
        session.playing_changed.connect(self._show_playing)
        self.presenter.toggled.connect(self.actions_by_name["present"].setChecked)
        session.painting.switched.connect(self.actions_by_name["paint_mask"].setChecked)
        session.painting.switched.connect(self.desk.show_board)
        session.painting.refused.connect(self.show_error)
        session.settings_changed.connect(self._show_pace)
        session.file_changed.connect(self._show_title)
        session.open_wanted.connect(self.files.open_by_hand)
        session.word_asked.connect(self._show_word)
        self.lessons.bar.word_asked.connect(self._show_word)
        self.lessons.bar.number_pointed.connect(self.board.light)
        self.lessons.bar.number_dragged.connect(self.what_if.drag_number)
        self.sound.failed.connect(self._show_silence)
        self.lessons.player.step_changed.connect(self._show_title)
        self.lessons.player.step_changed.connect(session.painting.stop)
        session.working.connect(self._show_working)  # not a lambda, which outlives the window
        for tasks in (session.tasks, session.reading):
            tasks.progressed.connect(self.header.progress.show_progress)
            tasks.rested.connect(self.header.progress.rest)
            self.header.progress.cancelled.connect(tasks.cancel)
        self.header.field_asked.connect(self.open_field)
        self.header.scenario_asked.connect(self.open_form)
        self.board.tile_chosen.connect(session.go_to_tile)
        self.board.row_chosen.connect(session.choose_row)
        self.board.cell_chosen.connect(session.select)
        self.board.cell_hovered.connect(self._values.show_hover)
        for bar in self._transports:
            bar.cursor_chosen.connect(session.go)
            bar.step_asked.connect(session.step)
            bar.first_asked.connect(session.first)
            bar.last_asked.connect(session.last)
            bar.play_toggled.connect(session.play)
            bar.granularity_chosen.connect(session.set_granularity)
            bar.speed_chosen.connect(session.set_speed)
            bar.sequence_chosen.connect(session.sequences.show)
        self.actions_by_name["redo"].setEnabled(False)
        undo.canRedoChanged.connect(self.actions_by_name["redo"].setEnabled)
        session.undo_changed.connect(self._name_undo)
        self._name_undo()
        undo.redoTextChanged.connect(self._name_redo)

    @property
    def _transports(self) -> tuple[TransportBar, ...]:
        return self.transport, self.stage.transport

    def _restore(self) -> None:
        self.actions_by_name["set_motion"].setChecked(self.settings.motion)
        self.set_motion(self.settings.motion)
        self.actions_by_name["set_sound"].setChecked(self.settings.sound)
        self.actions_by_name["ask_unsaved"].setChecked(self.settings.ask_unsaved)
        geometry = self.settings.geometry
        if geometry is None or not self.restoreGeometry(geometry):
            self.resize(first_size(self.screen().availableSize()))

    # --- showing --------------------------------------------------------------------------

    def _show_view(self, view: View) -> None:
        self.board.show_snapshot(
            view.snapshot, view.report.row, view.cell, view.points, view.before, view.camera
        )
        for bar in self._transports:
            if not bar.isHidden():
                bar.show_snapshot(view.snapshot)
        self.docks.show_view(view)
        self.stage.show_view(view)
        memory = None if self._blank.isVisible() else self.docks.in_sight("memory")
        self.flights.show_motion(memory)

    def _show_trace(self, trace: Trace) -> None:
        self.messages.settle()
        self._show_header(trace)
        self._show_title()

    def _show_header(self, trace: Trace) -> None:
        """Show in the header the settings that are not in the strip below it."""
        note = engine_note(trace.engine.name, trace.engine.device, self.session.why)
        self.header.show_trace(trace, self.style_now, note, asked=not self.top.asks)

    def open_field(self, name: str, at: QWidget) -> None:
        """Open a field of the scenario below a widget."""
        from ui.window.search.field_popover import FieldPopover

        FieldPopover(self, name).open_below(at)

    def open_form(self, *, search: bool = False) -> None:
        """Open the form of the scenario; maybe with the keyboard in its search."""
        self.docks.open("scenario")
        panel = self.docks.panel("scenario")
        if search and isinstance(query := panel.findChild(QLineEdit, "field_query"), QLineEdit):
            query.setFocus(Qt.FocusReason.ShortcutFocusReason)
            query.selectAll()

    def _show_title(self) -> None:
        scenario, path, trace = self.session.scenario, self.session.path, self.session.trace
        lesson = self.lessons.player.lesson
        title = lesson.title if lesson else scenario.title if scenario else ""
        name = safe_text(title or (path.stem if path else "Untitled"))
        engine = f" · {engine_words(trace.engine.name, trace.engine.device)}" if trace else ""
        faults = fault_labels(scenario)[:1] if scenario else ()
        self.setWindowTitle(" — ".join((*faults, f"{name}[*]", f"Tilescope{engine}")))
        self.setWindowModified(not self.session.undo_stack.isClean())

    def _show_working(self, busy: bool) -> None:
        self.header.show_busy(busy, self.session.trace)

    def _name_undo(self) -> None:
        text = self.session.undo_text
        self.actions_by_name["undo"].setEnabled(text is not None)
        self.actions_by_name["undo"].setText(f"Undo {text or ''}".strip())

    def _name_redo(self, text: str) -> None:
        self.actions_by_name["redo"].setText(f"Redo {text}".strip())

    def _show_playing(self, on: bool) -> None:
        for bar in self._transports:
            bar.set_playing(on)
        action = self.actions_by_name["play"]
        action.setChecked(on)
        action.setText("Pause" if on else "Play")

    def _show_pace(self) -> None:
        for bar in self._transports:
            bar.set_speed(self.session.speed)
            bar.set_granularity(self.session.granularity)

    def say(self, line: str, kind: MessageKind = MessageKind.HINT) -> None:
        self.messages.say(line, kind)
        if self.blanked:
            self._blank.raise_()

    def show_error(self, error: InputError, kind: MessageKind = MessageKind.REFUSAL) -> None:
        """Show one line about an input that cannot be used; everything else stays as it is.

        If nothing is shown yet, the demo is shown instead, and the message names the refused input.
        """
        nothing_yet = self.session.trace is None
        self.say(str(error), MessageKind.FAILURE if nothing_yet else kind)
        if nothing_yet and not self._fell_back:
            self._fell_back = True
            self.session.open(DEMO)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.desk.begin()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._blank.setGeometry(self.rect())
        self.what_if.fit()
        arrival = self.presenter.arrival
        if self.presenter.on and not arrival.awaited:
            # In a talk each size has its own text, and a window may get two sizes in a row.
            arrival.wait_for(self.size())
        if arrival.awaited:
            self.fit_once_arrived()
        else:
            self._fit_size()
            self.desk.fit_later()
        self.messages.place()
        self.stage.place()
        if self.cover is not None:
            self.cover.place()
        QTimer.singleShot(0, self, self._stay_full)

    def _stay_full(self) -> None:
        """Tell the widget again that the window is full screen, if it is.

        A widget forgets this when its contents make it larger, and does not report it. The window
        itself stays full screen, and the widget could not leave a state that it does not know.
        """
        full = Qt.WindowState.WindowFullScreen
        if self.isVisible() and self.windowHandle().windowStates() & full:
            self.setWindowState(self.windowState() | full)

    def fit_once_arrived(self) -> None:
        """Adapt to the window's size a moment after a talk or its end has changed it."""
        passing = self.presenter.arrival.is_passing(self.size())
        self._fit_soon.start(ON_THE_WAY_MS if passing else ARRIVED_MS)

    def _arrive(self) -> None:
        """Arrange the docks for the window's new size; the rest follows in the next turn.

        The window takes input in between: both at once would be felt as one wait.
        """
        if self.presenter.arrival.awaited:
            self.desk.fit_text()
        self._fit_next.start()

    def _fit_size(self) -> None:
        """Give text and docks their sizes for the window's size."""
        self._fit_soon.stop()
        self.presenter.arrival.end()
        self.apply_style()
        self.docks.sizes.fit()
        # Text that is large because the window is does not keep the window from becoming small.
        large = self.stage.on or self.scale > self.text_scale
        self.setMinimumSize(*((1, 1) if large else (0, 0)))
        self.presenter.arrival.paint_soon()

    def apply_style(self) -> None:
        """Take theme and text scale from the settings and the size of the window."""
        least = stage_label(self.width(), self.height()) if self.stage.on else 0.0
        scale = self.scale
        theme = THEMES[self.settings.theme]
        if self.stage.on:
            theme = on_stage(theme)
        style = Style(theme, scale, min(least, LABEL * scale))
        wanted = style, self.centralWidget(), self.stage.on
        if wanted != self._styled:
            self.style_now, self._styled = style, wanted
            self._restyle(style)
        self.top.fit()
        self.rail.fit()
        self.stage.settle()

    def _restyle(self, style: Style) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        self.docks.put_aside()
        framed = frame_palette(style.theme)
        if not self._unseen:
            app.setPalette(palette(style.theme))
            for kind in ("QAbstractSpinBox", "QComboBox", "QLineEdit", "QCheckBox", "QPushButton"):
                # The type stubs require bytes, which Qt refuses.
                app.setPalette(framed, kind)  # type: ignore[arg-type]
            app.setFont(style.text_font(13))  # dialogs, menus and tool tips
        self.setFont(style.text_font(13))
        self.setStyleSheet(stylesheet(style, stage=self.stage.on))
        for widget in (self.board, self.mask_brush, self.header, self.what_if, self.transport,
                       self.rail, self.lessons.bar, self.messages):  # fmt: skip
            widget.set_style(style)
        self.stage.set_style(style)
        self.docks.set_style(style)
        self.presenter.set_style(style)
        if self.cover is not None:
            self.cover.set_style(style)
        for spec in ACTIONS:
            if spec.icon:
                self.actions_by_name[spec.name].setIcon(icon(spec.icon, style.theme.text))
        if self.session.trace is not None:
            self._show_header(self.session.trace)

    # --- files ----------------------------------------------------------------------------

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        urls = event.mimeData().urls()
        if any(Path(u.toLocalFile()).suffix.lower() in READS for u in urls):
            accept_copy(event)

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        accept_copy(event)

    def dropEvent(self, event: QDropEvent) -> None:
        accept_copy(event)
        for url in event.mimeData().urls():
            self.files.open_by_hand(Path(url.toLocalFile()))

    # --- view -----------------------------------------------------------------------------

    def next_theme(self) -> None:
        """Choose the next theme."""
        names = list(THEMES)
        self.settings.theme = names[(names.index(self.settings.theme) + 1) % len(names)]
        self.apply_style()

    def change_text(self, by: int) -> None:
        """Make the text scale some steps larger or smaller."""
        now = self.text_scale  # a talk's scale may be between two steps, or beyond the last
        beyond = [scale for scale in TEXT_SCALES if (scale - now) * by > 0]
        scale = min(beyond, key=lambda each: abs(each - now), default=now)
        if self.stage.on:
            self._asked = scale
        else:
            self.settings.text_scale = scale
        self.desk.fit_text()
        self.apply_style()

    @property
    def text_scale(self) -> float:
        """Text scale that was asked for; on the stage, a scale that the last row can read."""
        own = self.settings.text_scale
        if not self.stage.on:
            return own
        return self._asked or max(own, stage_scale(self.width(), self.height()))

    @property
    def scale(self) -> float:
        """Scale of the text now: a window larger than 1920×1080 has larger text."""
        return self.text_scale * growth(self.width(), self.height())

    def fit_talk(self) -> None:
        """Use the text scale of a talk, or the user's own, when the window has its new size."""
        self._asked = None
        self.fit_once_arrived()
        self.desk.fit_later()

    def set_motion(self, on: bool) -> None:
        """Show how ops move, or states only; the present setting is no choice of the user."""
        if on != self.settings.motion:
            self.settings.motion = on
        self.session.motion = self.board.camera.glides = on

    def follow_system(self, reduces: bool | None) -> None:
        """Move as the system wants it, unless the user has chosen; None: the system is silent."""
        self.settings.system_reduces = bool(reduces)
        self.actions_by_name["set_motion"].setChecked(self.settings.motion)

    def set_sound(self, on: bool) -> None:
        """Play a tick when a tile lands, or none."""
        self.settings.sound = on
        self.sound.set(on)

    def _show_silence(self, why: str) -> None:
        self.actions_by_name["set_sound"].setChecked(False)
        self.say(why, MessageKind.REFUSAL)

    def show_weights(self, on: bool) -> None:
        """Show used tiles as their weights so far, or as they were computed."""
        self.board.divides = on
        if self.session.view is not None:
            self._show_view(replace(self.session.view, before=None))

    def hide_questions(self) -> None:
        self.top.asks = self.lessons.bar.asks = False
        self.fit_top()

    def fit_top(self, *, captioned: bool = False) -> None:
        self.top.fit(captioned=captioned)

    def show_costs(self, on: bool) -> None:
        self.stage.show_slide(on)

    def frame(self, start: Framing, end: Framing, share: float) -> None:
        self.board.frame(start, end, share)

    def set_stage(self, on: bool, *, whole: bool = False) -> None:
        self.stage.set(on, whole=whole)
        self.apply_style()

    def full_screen(self, on: bool) -> None:
        """Fill the screen or not."""
        full, state = Qt.WindowState.WindowFullScreen, self.windowState()
        self.setWindowState(state | full if on else state & ~full)

    def present(self, on: bool) -> None:
        """Begin or end a talk."""
        (self.presenter.start if on else self.presenter.end)()

    def ask_what_if(self, name: str) -> None:
        """Let the arrow keys change a field of the strip; on the stage the strip comes for this."""
        if self.stage.on:
            self.stage.ask_what_if(name)
        else:
            self.top.ask(name)

    def restore(self) -> None:
        """Show the state before the last changes of the run, or else the lesson's step."""
        if not self.session.what_ifs.restore():
            self.lessons.player.return_to_step()

    def blank(self, on: bool) -> None:
        """Make the window black, to speak without a picture."""
        self._blank.setVisible(on)
        self._blank.raise_()

    @property
    def blanked(self) -> bool:
        """Whether the window is black."""
        return self._blank.isVisible()

    # --- keys and end ---------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Stop painting or deselect the cell on Escape if no panel uses the key; zoom on Ctrl++.

        If a plus is typed with Shift, a shortcut for zooming would be found together with the
        shortcut for larger text, and Qt calls neither of two.
        """
        if event.key() == Qt.Key.Key_Escape:
            if self.messages.escape():
                return
            if self.session.painting.on:
                self.session.painting.stop()
            else:
                self.session.select(None)
        elif event.matches(QKeySequence.StandardKey.ZoomIn):
            self.board.zoom_in()
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.WindowStateChange:
            action = self.actions_by_name["full_screen"]
            QTimer.singleShot(0, self, lambda: action.setChecked(self.isFullScreen()))

    def quit(self) -> None:
        """Close, after asking what to do with unsaved changes."""
        self.unsaved.before(self.close)

    def closeEvent(self, event: QCloseEvent) -> None:
        if event.spontaneous() and self.unsaved.asks:  # a person, with the frame's button
            event.ignore()
            self.quit()
            return
        self.unsaved.keep()
        if self.cover is not None:
            self.cover.leave()
        self.lessons.player.leave()
        self.settings.geometry = self.saveGeometry()
        self.desk.remember()
        self.session.close()
        self.sound.close()
        super().closeEvent(event)
