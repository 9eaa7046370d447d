"""Which model the panels of the cache are about: one choice, so that panels side by side agree."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from simulator.problem.models import AttentionModel, models

FIRST_MODEL = "Llama-3-8B"


class ModelChoice(QObject):
    """The model that was chosen, in whichever panel."""

    changed = Signal()
    """Another model, or the same chosen anew."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model: AttentionModel = models()[FIRST_MODEL]
        self.own: AttentionModel | None = None
        """The last one that came from a file."""
        self.by_hand = False
        """Whether somebody has chosen it, and not a lesson or the first view."""

    def take(self, model: AttentionModel, *, by_hand: bool = False) -> None:
        """Take a model, and tell."""
        self.model, self.by_hand = model, by_hand
        if model not in models().values():
            self.own = model
        self.changed.emit()
