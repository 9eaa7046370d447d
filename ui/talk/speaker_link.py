"""The speaker's window of a talk: its screen, and the contents that the talk gives it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QPixmap, QScreen

from simulator.base.assets import ASSETS
from simulator.base.errors import safe_text
from simulator.lesson.course import list_lessons
from simulator.lesson.steps import Lesson, ResolvedStep
from ui.look.theme import Style
from ui.look.units import plural
from ui.talk.arrival import fill
from ui.talk.speaker_parts import NEXT
from ui.talk.speaker_window import FIRST_SIZE, SpeakerWindow

if TYPE_CHECKING:
    from ui.talk.presenter import Presenter

PICTURE_MS = 400
"""How often the speaker's picture of the stage follows it."""
_SPEAKER_MS = 60
"""How long after the window the speaker's window opens, or changes screens."""


class SpeakerLink(QObject):
    """Gives the speaker's window the contents of a talk.

    speaker: the window, made at the first talk.
    """

    def __init__(self, presenter: Presenter) -> None:
        super().__init__(presenter)
        self._presenter, self._window = presenter, presenter.window
        window = presenter.window
        self.speaker: SpeakerWindow | None = None
        self._changed = True
        """Whether the window has another picture than the speaker sees."""
        self._listed: Path | None = None
        """The lesson whose steps the speaker sees."""
        self._next: ResolvedStep | None = None
        """The step whose picture the speaker sees as the next one, or will see."""
        self._second = QTimer(self, interval=1000)
        self._second.timeout.connect(self._say_why)
        self._pictures = QTimer(self, interval=PICTURE_MS)
        self._pictures.timeout.connect(self._show_now)
        player, blank = window.lessons.player, window.actions_by_name["blank"]
        for signal in (player.revealed_changed, player.prepared, player.ended_changed):
            signal.connect(self.show_step)
        blank.toggled.connect(self._show_blank)
        window.ahead.painted.connect(self._show_ahead)
        for signal in (window.session.view_changed, window.session.moved, player.whole_changed,
                       blank.toggled, presenter.overlay.changed):  # fmt: skip
            signal.connect(self._note_change)

    def begin(self) -> None:
        """Begin a talk: with a lesson and another screen, open the window there."""
        _app().screenRemoved.connect(self._screen_gone)
        self._second.start()
        self._pictures.start()
        self._make().reset()
        if self._window.lessons.player.lesson is not None and self._other_screen() is not None:
            QTimer.singleShot(_SPEAKER_MS, self, self._open_late)

    def end(self) -> None:
        """End the talk."""
        _app().screenRemoved.disconnect(self._screen_gone)
        self._pictures.stop()
        self._second.stop()
        self._next = self._listed = None
        self._window.ahead.close()
        if self.speaker is not None:
            self.speaker.close()

    def set_style(self) -> None:
        """Give the speaker's window the theme of the talk; it sets its own text size."""
        if self.speaker is not None and self.speaker.isVisible():
            self._style(self.speaker)

    def _style(self, speaker: SpeakerWindow) -> None:
        theme = self._window.style_now.theme
        speaker.set_style(Style(theme, self._window.settings.text_scale))

    def toggle(self) -> None:
        """Open the speaker's window, or close it; the talk continues."""
        if self.speaker is not None and self.speaker.isVisible():
            self.speaker.close()
        else:
            self.open()

    def open(self) -> None:
        """Open the speaker's window: on the whole other screen, or as a window if there is none."""
        speaker = self._make()
        self._style(speaker)
        self.show_step()
        self._show_blank(self._window.actions_by_name["blank"].isChecked())
        self._say_why()
        self._place(speaker, self._other_screen())
        self._next = None
        self.show_step()  # pictures are made only for a visible window

    def _open_late(self) -> None:
        if self._presenter.on:
            self.open()

    def _make(self) -> SpeakerWindow:
        """Return the speaker's window, made at the first talk."""
        if self.speaker is None:
            presenter = self._presenter
            speaker = self.speaker = SpeakerWindow(self._window)
            speaker.next_asked.connect(presenter.next)
            speaker.back_asked.connect(presenter.back)
            speaker.reveal_asked.connect(presenter.reveal)
            speaker.blank_asked.connect(presenter.toggle_blank)
            speaker.swap_asked.connect(self.swap_screens)
            speaker.step_chosen.connect(self._window.lessons.player.go)
            speaker.asked.connect(self._do)
        return self.speaker

    def _do(self, name: str) -> None:
        """Do the act of a button of the speaker's window."""
        if name == "play":
            self._window.actions_by_name[name].trigger()
        else:
            presenter = self._presenter
            does = {"what_if": presenter.toggle_what_if, "pen": presenter.toggle_pen,
                    "spotlight": presenter.toggle_spotlight, "end": presenter.end}  # fmt: skip
            does[name]()

    def _place(self, speaker: SpeakerWindow, screen: QScreen | None) -> None:
        speaker.show_swap(screen is not None)
        if screen is None:
            speaker.setWindowState(Qt.WindowState.WindowNoState)
            here = self._window.screen()
            speaker.setScreen(here)
            room = here.availableGeometry()
            speaker.resize(FIRST_SIZE.boundedTo(room.size() * 0.8))
            speaker.move(room.center() - speaker.rect().center())
            speaker.show()
            speaker.raise_()
            speaker.activateWindow()
            return
        fill(speaker, screen, elsewhere=False)
        self._window.activateWindow()

    def _other_screen(self) -> QScreen | None:
        """Return a screen that the audience does not see."""
        taken = self._window.screen().geometry()  # a projector may show the same as this screen
        screens = QGuiApplication.screens()
        return next((s for s in screens if not s.geometry().intersects(taken)), None)

    def swap_screens(self) -> None:
        """Exchange the screens of the window and the speaker's window."""
        other, here = self._other_screen(), self._window.screen()
        if other is None:
            return
        self._presenter.arrival.wait_for(other.size())
        fill(self._window, other)
        self._window.fit_once_arrived()
        self._window.activateWindow()
        # Each takes a while to get its new size; until then the window takes input.
        QTimer.singleShot(_SPEAKER_MS, self, partial(self._move, here))

    def _move(self, screen: QScreen) -> None:
        if self._presenter.on and self.speaker is not None and self.speaker.isVisible():
            fill(self.speaker, screen, elsewhere=False)
            self._window.activateWindow()

    def _screen_gone(self) -> None:
        QTimer.singleShot(0, self, self._after_screen)

    def _after_screen(self) -> None:
        """Make the speaker's window an ordinary window if its screen is gone."""
        speaker = self.speaker
        if self._presenter.on and speaker is not None and speaker.isVisible():
            self._place(speaker, self._other_screen())

    def show_step(self) -> None:
        """Show the speaker which step is shown, and which comes next."""
        speaker, player = self.speaker, self._window.lessons.player
        if speaker is None or not self._presenter.on:
            return
        speaker.show_step(player.step, player.following, player.revealed, player.end, player.ended)
        lesson, step = player.lesson, player.step
        if lesson is not None and step is not None and player.path is not None:
            if player.path != self._listed:
                self._listed = player.path
                self._show_lesson(speaker, lesson, player.path)
            speaker.show_place(step.number)
        self._changed = True
        following = None if player.ended else player.following
        if following is None or following != self._next:
            self._next = following
            coming = step is not None and step.number + 1 < step.count and not player.ended
            speaker.show_next(None, coming=coming)
            self._window.ahead.want(following if speaker.isVisible() else None)

    def _show_lesson(self, speaker: SpeakerWindow, lesson: Lesson, path: Path) -> None:
        """Show the steps of a lesson, with its minutes: by default one a step."""
        listed = list_lessons(path.parent) if path.is_relative_to(ASSETS) else ()
        at = next((n for n, each in enumerate(listed) if each.path == path), len(listed))
        minutes = listed[at].minutes if at < len(listed) else 0
        titles = [safe_text(each.title) for each in lesson.steps]
        after = listed[at + 1] if at + 1 < len(listed) else None
        then = f"{after.title}, {plural(len(after.steps), 'step')}" if after else ""
        speaker.show_lesson(safe_text(lesson.title), titles, minutes or len(titles), then)

    def _show_ahead(self, step: ResolvedStep, picture: QPixmap) -> None:
        """Show the next step in the speaker's window, painted ahead."""
        if self.speaker is not None and step == self._next:
            self.speaker.show_next(picture.scaledToWidth(
                round(NEXT.width() * self.speaker.devicePixelRatio() * 2),
                Qt.TransformationMode.SmoothTransformation,
            ))  # fmt: skip

    def _note_change(self, *_: object) -> None:
        self._changed = True

    def _show_now(self) -> None:
        """Show the audience's picture in the speaker's window, if it has changed."""
        speaker = self.speaker
        if speaker is None or not speaker.isVisible() or speaker.now_picture.isHidden():
            return
        still = self._window.lessons.player.whole and not self._presenter.arrival.awaited
        if self._changed and still:
            self._changed = False
            speaker.show_now(self._window.grab())

    def _show_blank(self, on: bool) -> None:
        if self.speaker is not None:
            self.speaker.show_blank(on)

    def _say_why(self) -> None:
        if self.speaker is not None:
            why = self._presenter.awake.why
            self.speaker.set_note(f"The screen may go to sleep: {why}." if why else "")


def _app() -> QGuiApplication:
    return cast(QGuiApplication, QGuiApplication.instance())
