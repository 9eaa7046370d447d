"""The model that the panels of the cache show: one choice, so that all panels show the same."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from simulator.problem.models import AttentionModel, models

FIRST_MODEL = "Llama-3-8B"


class ModelChoice(QObject):
    """The model that was chosen, in whichever panel."""

    changed = Signal()
    """Another model, or the same model chosen again."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model: AttentionModel = models()[FIRST_MODEL]
        self.own: AttentionModel | None = None
        """The last one that came from a file."""
        self.by_hand = False
        """Whether the user, not a lesson or the first view, has chosen it."""

    def take(self, model: AttentionModel, *, by_hand: bool = False) -> None:
        """Set the model, and emit the signal."""
        self.model, self.by_hand = model, by_hand
        if model not in models().values():
            self.own = model
        self.changed.emit()
