"""The model whose cache is shown, and for how many tokens: one choice for all panels."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from simulator.problem.models import AttentionModel, models

FIRST_MODEL, FIRST_TOKENS = "Llama-3-70B", 131_072
LESSON_MODEL, LESSON_TOKENS = "Llama-3-8B", 4096  # of a lesson that names no model


class ModelChoice(QObject):
    """The model, length and element type of the KV cache, which other panels follow."""

    changed = Signal()  # another model, tokens or element type, or the same chosen again

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.model: AttentionModel = models()[FIRST_MODEL]
        self.tokens = FIRST_TOKENS
        self.dtype = "float16"
        self.own: AttentionModel | None = None  # the last model that came from a file
        self.by_hand = False  # whether the user, not a lesson or the first view, has chosen `model`

    def take(
        self,
        model: AttentionModel,
        tokens: int | None = None,
        dtype: str | None = None,
        *,
        by_hand: bool = False,
    ) -> None:
        """Set the model, and tokens and dtype if given; emit `changed`."""
        self.model, self.by_hand = model, by_hand
        self.tokens, self.dtype = tokens or self.tokens, dtype or self.dtype
        if model not in models().values():
            self.own = model
        self.changed.emit()
