"""The dock of generation, in which one step may follow the other."""

from __future__ import annotations

from PySide6.QtGui import QHideEvent

from ui.panels.generation.picture import GenerationState
from ui.panels.generation.study import GENERATION
from ui.panels.study import Act
from ui.panels.study_panel import StudyPanel
from ui.safety.overrides import guarded
from ui.session.session import Session


@guarded
class GenerationPanel(StudyPanel[GenerationState, GenerationState]):
    """The study of generation; its button lets all steps happen."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, GENERATION)
        self.play_button = self.buttons["play"]
        self.play_button.setCheckable(True)

    @property
    def playing(self) -> bool:
        """Whether one step follows the other."""
        return self.play_button.isChecked()

    def play(self, on: bool) -> None:
        """Let steps follow each other, from the prompt if all have been seen, or stop."""
        self.play_button.setChecked(on and self._session.motion)
        if on:
            last = self.slider.maximum()
            if self.slider.value() == last:
                self.slider.setValue(0)
            self.slider.setValue(self.slider.value() + 1 if self._session.motion else last)

    def choose(self, name: str, value: str) -> None:
        if name == "at once":
            self.play(False)
        super().choose(name, value)

    def hideEvent(self, event: QHideEvent) -> None:
        self.play(False)
        super().hideEvent(event)

    def _act(self, act: Act) -> None:
        self.play(self.play_button.isChecked())

    def _moved(self) -> None:
        super()._moved()
        if self.clock.running or not self.playing:
            return
        if self.slider.value() == self.slider.maximum() or not self._session.motion:
            self.play(False)
        else:
            self.slider.setValue(self.slider.value() + 1)
