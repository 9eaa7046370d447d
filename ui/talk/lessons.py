"""Lessons in the window: the menu, the strip with the caption, and their layouts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QPoint, QRectF, QTimer
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from simulator.base.assets import ASSETS, LESSONS
from simulator.base.errors import InputError
from simulator.lesson.course import course, course_paths, lesson_before, parts
from simulator.lesson.steps import Lesson, LessonTitle, Part, ResolvedStep
from ui.session.view import View
from ui.talk.lanes import LaneMenu, PathLane, lane_icon
from ui.talk.lesson_bar import LessonBar
from ui.talk.lesson_player import LessonPlayer, load
from ui.talk.window import LessonWindow
from ui.widgets.fade import Fade
from ui.widgets.message_bar import MessageKind

_OWN = ("lesson_next", "lesson_back", "reveal", "return_to_step", "leave_lesson")
"""Actions that need a lesson."""
_PATIENCE = 300
"""Milliseconds after which the window says that the next step is being computed."""


class Lessons(QObject):
    """Lessons of a window.

    black: the widget that makes the window black, also while a step is being computed.
    """

    def __init__(self, window: LessonWindow, black: QWidget | None = None) -> None:
        super().__init__(window)
        self._window = window
        self.player = LessonPlayer(window.session)
        self.bar = LessonBar()
        self.bar.hide()
        self.fade = Fade(window, black)
        self._fades = False
        """Whether the next picture is of another run or layout."""
        self._late = QTimer(self, singleShot=True, interval=_PATIENCE)
        self._late.timeout.connect(self._say_late)
        player, bar = self.player, self.bar
        player.asked.connect(self._late.start)
        player.whole_changed.connect(self._uncover)
        player.away_changed.connect(bar.set_faded)
        player.step_changed.connect(self._show_step)
        player.revealed_changed.connect(self._show_answer)
        player.ended_changed.connect(self._show_end)
        player.told.connect(partial(window.say, kind=MessageKind.FAILURE))
        bar.next_asked.connect(player.next)
        bar.back_asked.connect(player.back)
        bar.reveal_asked.connect(player.reveal)
        bar.exercises_asked.connect(self.ask_exercises)
        bar.leave_asked.connect(player.leave)
        bar.step_chosen.connect(player.go)
        bar.card.guessed.connect(player.guess)
        bar.card.skipped.connect(partial(player.guess, None))
        bar.card.asked_again.connect(player.ask_again)
        player.arrived.connect(self._tell)
        window.session.view_changed.connect(self._note_cell)

    # --- requests -------------------------------------------------------------------------

    def ask_exercises(self) -> None:
        """Ask the exercises of the lesson on show."""
        from ui.talk.exercises_dialog import open_exercises

        open_exercises(self._window, self.player.path)

    def ask(self) -> None:
        """Ask for the file of a lesson and open it."""
        name, _ = QFileDialog.getOpenFileName(
            self._window, "Open lesson", str(LESSONS), "Lessons (*.md)"
        )
        if name:
            self.open(Path(name))

    def open(self, path: Path, number: int = 0) -> None:
        """Open a lesson at a step, counted from 0; if it cannot be used, say why."""
        shipped = path.is_relative_to(ASSETS)

        def begin(lesson: Lesson) -> None:
            try:
                self.player.begin(path, lesson, number)
            except InputError as error:
                self._window.show_error(error)
            else:
                if not shipped:
                    self._window.settings.add_recent(path)

        self._window.session.reading.read(
            path, load, begin, self._window.show_error, beside=not shipped
        )

    # --- menu -----------------------------------------------------------------------------

    def fill(self, menu: QMenu) -> None:
        """Put Tilescope's lessons at the top of their menu, by part and by path, when it opens.

        Beside a part's lessons are the lanes of all paths, as on the course map. Beside a path's
        lessons is its own lane; the next lesson is marked.
        """
        self._parts: list[LaneMenu] = []
        menu.aboutToShow.connect(lambda: self._list(menu))

    def _list(self, menu: QMenu) -> None:
        own, paths = [part for part in parts() if part.lessons], course_paths()
        if len(own) + len(paths) != len(self._parts):  # at first
            head = menu.actions()[0]
            self._parts = [LaneMenu(menu) for _ in (*own, *paths)]
            for inner in self._parts:
                menu.insertMenu(head, inner)
            menu.insertSeparator(self._parts[len(own)].menuAction())
            menu.insertSeparator(head)
        for inner, part in zip(self._parts, own, strict=False):
            name = f"{part.numeral}  {part.title}".strip()
            shown = self._fill(inner, name, part.minutes, [part])
            if part.number:
                self._show_lanes(inner, shown, range(len(paths)))
        done = self._window.settings.lessons_done
        for number, path in enumerate(paths):
            inner, held = self._parts[len(own) + number], {*path.lessons}
            found = (
                replace(each, lessons=tuple(filter(held.__contains__, each.lessons)))
                for each in own
            )
            shown = self._fill(
                inner,
                f"Path: {path.title}",
                path.minutes,
                [part for part in found if part.lessons],
                path.next_lesson(done),
            )
            self._show_lanes(inner, shown, (number,))

    def _fill(
        self, menu: QMenu, title: str, minutes: int, listed: list[Part],
        following: LessonTitle | None = None,
    ) -> dict[LessonTitle, QAction]:  # fmt: skip
        """List the lessons of parts, numbered through, and return the action that opens each.

        following: the lesson that is next on a path.
        """
        # Text after a tabulator stands at the right.
        menu.menuAction().setText(f"{title}\t{minutes} min")
        menu.clear()
        shown = dict[LessonTitle, QAction]()
        for part in listed:
            if len(listed) > 1:
                menu.addAction(f"{part.numeral}  {part.title}").setEnabled(False)
            for lesson in part.lessons:
                shown[lesson] = self._action(menu, len(shown) + 1, lesson, lesson == following)
                menu.addAction(shown[lesson])
        return shown

    def _show_lanes(
        self, menu: LaneMenu, shown: dict[LessonTitle, QAction], numbers: Collection[int]
    ) -> None:
        paths, order = course_paths(), course()
        chosen, first = self._window.settings.course_path, next(iter(paths)).name
        ends = [order.index(lesson) for lesson in shown]
        lanes = []
        for number in numbers:
            path = paths[number]
            at = [order.index(lesson) for lesson in path.lessons]
            stops = tuple(action for lesson, action in shown.items() if lesson in path.lessons)
            above, below = min(at) < min(ends), max(at) > max(ends)
            lanes.append(PathLane(number, stops, above, below, path.name == (chosen or first)))
        style = self._window.style_now
        menu.show_lanes(style, lanes)
        if len(lanes) == 1:  # the lane of a path is beside its name, too, to tell it elsewhere
            (lane,) = lanes
            menu.setIcon(lane_icon(style, lane.path, chosen=lane.chosen))

    def _action(self, menu: QMenu, number: int, lesson: LessonTitle, following: bool) -> QAction:
        done = "  ✓" if lesson.path.stem in self._window.settings.lessons_done else ""
        note = "  ·  next" if following else done
        action = QAction(f"{number}  {lesson.title}{note}\t{lesson.minutes} min", menu)
        action.setToolTip(lesson.summary)
        action.setCheckable(True)
        action.setChecked(lesson.path == self.player.path)
        action.triggered.connect(lambda _=False, path=lesson.path: self.open(path))
        return action

    def enable(self, on: bool) -> None:
        """Enable the keys of a lesson, or leave these keys to panels."""
        for name in _OWN:
            action = self._window.actions_by_name[name]
            action.setEnabled(on)
            action.setAutoRepeat(False)  # a held key must not run into the next lesson

    # --- showing --------------------------------------------------------------------------

    def _show_step(self, step: ResolvedStep | None) -> None:
        window, session = self._window, self._window.session
        self.enable(step is not None)
        elsewhere = step is None or step.scenario != session.scenario
        layout = (step.layout, step.panel) if step is not None else ("", "")
        self._fades |= elsewhere or layout != window.desk.lent
        self.fade.take()
        if step is None:
            self.bar.hide()
            window.fit_top()
            window.docks.cover(())
            window.docks.take_back()
            window.desk.take_back()
            return
        lesson = self.player.lesson
        assert lesson is not None
        self.bar.set_titles([each.title for each in lesson.steps])
        path = self.player.path
        self.bar.buttons["exercises"].setEnabled(path is not None and path.parent == LESSONS)
        self._show_caption(step)
        window.fit_top(captioned=True)  # else the window would grow
        self.bar.show()  # first, because a layout is arranged for the space that is left
        if layout != window.desk.lent:
            window.desk.lend(*layout)
        window.docks.choose(layout[0], step.choices)
        window.docks.cover(step.covered)

    def _say_late(self) -> None:
        """Say that the next step is being computed, at the caption's step number."""
        self.fade.take()
        window, caption = self._window, self.bar.caption
        place = QRectF(window.width(), 0, 0, 0)
        if caption.isVisible():
            place = caption.place.translated(caption.mapTo(window, QPoint()))
        self.fade.style_now = caption.style_now
        self.fade.say(place)

    def _uncover(self, whole: bool) -> None:
        """Show the new picture, now that it is whole."""
        if whole:
            self._late.stop()
            self._note_place()
            if self.player.waits:
                self.bar.card.take_focus()
            if self._fades and self._window.settings.motion:
                self.fade.start()
            else:
                self.fade.end()
            self._fades = False

    def _note_place(self) -> None:
        """Remember which lesson of the course is shown, how far, and whether to its end."""
        path, step, settings = self.player.path, self.player.step, self._window.settings
        if step is not None and path is not None and path.parent == LESSONS:
            settings.lesson_place = path.stem, step.number
            if step.number + 1 == step.count and not step.waits:
                settings.add_lesson_done(path.stem)

    def _show_caption(self, step: ResolvedStep) -> None:
        path = self.player.path
        after = path is not None and lesson_before(path) is not None
        self.bar.show_step(step, self.player.revealed, after=after, outcome=self.player.outcome)

    def _tell(self) -> None:
        """Show how far a guess is off, now that the run has arrived."""
        if not self.player.waits:
            self.bar.card.tell(moving=self._window.settings.motion)

    def _note_cell(self, view: View) -> None:
        """Take a cell that is clicked as the guess, where one is asked for."""
        step = self.player.step
        asked = step.prediction if step is not None and step.waits else None
        if asked is None or asked.click is None or view.cell is None or not self.player.whole:
            return
        if (view.cell.tensor, view.cell.row) == asked.click:
            self.player.guess(float(view.cell.col))

    def _show_end(self, ended: bool) -> None:
        end, step = self.player.end, self.player.step
        if ended and end is not None:
            self.bar.show_end(end)
        elif step is not None:
            self._show_caption(step)

    def _show_answer(self, revealed: bool) -> None:
        if self.player.step is not None:
            self._show_caption(self.player.step)
