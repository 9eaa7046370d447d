"""The dock that shows the update of this op with its numbers, and where each of them came from."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter

from simulator.run.row_report import RowReport
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace
from ui.panels.base import AlphaLight, Panel
from ui.panels.formula.lines import ExplanationText, FormulaModel, explanation_text, formula_model
from ui.panels.formula.view import MIN_SIZE, CellLink, FormulaLayout, formula_layout, paint_formula
from ui.safety.overrides import guarded
from ui.session.session import Session
from ui.session.view import View

_MARGIN = (8.0, 6.0)


def make_formula_model(trace: Trace, snapshot: Snapshot, report: RowReport) -> FormulaModel:
    """Return the panel's contents, made with the view: typesetting a formula takes a while."""
    return formula_model(snapshot, report)


@guarded
class FormulaPanel(Panel[FormulaModel]):
    """The update of the current op; every number selects its cell on the board."""

    ringed = False  # the number that has the focus is framed

    def __init__(self, session: Session) -> None:
        wide, high = MIN_SIZE.width() + 2 * _MARGIN[0], MIN_SIZE.height() + 2 * _MARGIN[1]
        super().__init__("formula_panel", "Formula", QSize(round(wide), round(high)))
        self._session = session
        self._model: FormulaModel | None = None
        self._said: ExplanationText | None = None
        self.laid: FormulaLayout | None = None
        self._hover: int | None = None
        self._focus: int | None = None
        self.light = AlphaLight()
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    # --- what is shown --------------------------------------------------------------------

    def forget(self) -> None:
        self._model = self.laid = self._focus = None

    def show_view(self, view: View, model: FormulaModel) -> None:
        self._model = model
        self.light.take(view)
        self._said = None if view.cell is None else explanation_text(view.snapshot, view.cell)
        self.arrange()

    def show_share(self, share: float) -> None:
        if self.light.changes(share):
            self.update()

    @property
    def links(self) -> list[CellLink]:
        """The numbers that can be clicked, in reading order."""
        return self.laid.links if self.laid else []

    def arrange(self) -> None:
        if self._model is None:
            return
        x, y = _MARGIN
        rect = QRectF(self.rect()).adjusted(x, y, -x, -y)
        self.laid = formula_layout(self._model, self._said, self.style_now, rect)
        if self._focus is not None:
            self._focus = min(self._focus, len(self.links) - 1) if self.links else None
        under = QPointF(self.mapFromGlobal(self.cursor().pos())) if self.underMouse() else None
        self._hover = self._link_at(under)
        self._describe()
        self.update()

    def _describe(self) -> None:
        """Say for screen readers what is shown, and which link has the focus."""
        if self._model is None:
            return
        words = []
        if self._focus is not None and self.hasFocus():
            link = self.links[self._focus]
            words.append(f"{link.hint}: {link.text}, Enter selects its cell")
        words += [self._model.title[0], self._model.cites[0]]
        words += [" ".join(one.texts[0].split()) for one in self._model.lines if one.current]
        if self._said is not None:
            title = "".join(piece.text for piece in self._said.title[0])
            words.append(f"selected: {title}, {self._said.state}")
        self.setAccessibleDescription("; ".join(words))

    # --- pointer and keys -----------------------------------------------------------------

    def point(self, at: QPointF | None) -> None:
        """Underline the number under the pointer."""
        link = self._link_at(at)
        if link != self._hover:
            self._hover = link
            shape = (
                Qt.CursorShape.ArrowCursor if link is None else Qt.CursorShape.PointingHandCursor
            )
            self.setCursor(shape)
            self.update()

    def press(self, at: QPointF) -> bool:
        """Select the cell of the number that is pressed."""
        link = self._link_at(at)
        if link is not None:
            self._focus = link
            self._session.select(self.links[link].cell)
        return True

    def tip(self, at: QPointF) -> str:
        link = self._link_at(at)
        return "" if link is None else f"{self.links[link].hint}: click selects it"

    def _link_at(self, at: QPointF | None) -> int | None:
        return None if at is None or self.laid is None else self.laid.link_at(at)

    def key(self, event: QKeyEvent) -> bool:
        """Select with Enter the cell of the number that has the focus."""
        enters = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enters and self._focus is not None:
            self._session.select(self.links[self._focus].cell)
        return enters and self._focus is not None

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Move with Tab from number to number, and after the last one to the next control."""
        at = self._focus
        if at is None or not self.links:
            return super().focusNextPrevChild(forward)
        after = at + (1 if forward else -1)
        if not 0 <= after < len(self.links):
            return super().focusNextPrevChild(forward)
        self._set_focus(after)
        return True

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Begin with the first number, or with the last after Shift+Tab."""
        super().focusInEvent(event)
        if not self.links:
            return
        if event.reason() == Qt.FocusReason.BacktabFocusReason:
            self._set_focus(len(self.links) - 1)
        elif event.reason() != Qt.FocusReason.MouseFocusReason:
            self._set_focus(0)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Mark no number any longer."""
        super().focusOutEvent(event)
        self._set_focus(None)

    def _set_focus(self, at: int | None) -> None:
        self._focus = at
        self._describe()
        self.update()

    def paint(self, painter: QPainter) -> None:
        if self.laid is not None:
            focus = self._focus if self.hasFocus() else None
            paint_formula(painter, self.laid, hover=self._hover, focus=focus, lit=self.light.on)
