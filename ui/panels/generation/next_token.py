"""The text so far, and how probable the next tokens are, with the one that was drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from simulator.base.errors import safe_text
from simulator.language.continuation import TEMPERATURE
from simulator.study.generation.typed import GREEDY, WARMER, Continuation, NextToken
from ui.kit.boxes import Box, Column
from ui.kit.shapes import Paragraph
from ui.look.draw import LEFT, RIGHT, draw_text, text_width
from ui.look.theme import LABEL, Style
from ui.look.units import count_text, number_text, plural
from ui.panels.study import Words

_LINE, _WIDEST = 22.0, 150.0
"""Height of a token's line and largest width of its name, at scale 1."""
_LETTERS = 400
"""Letters of a long text, from its end."""


@dataclass(frozen=True, eq=False)
class Chances(Box):
    """A bar for each of the most probable tokens; the drawn one stands out once it is drawn."""

    token: NextToken
    drawn: bool

    def height(self, style: Style, width: float) -> float:
        return style.px(4 * _LINE)

    def most_height(self, style: Style) -> float:
        return style.px(1.4 * _LINE) * len(self.token.top)

    def paint(self, painter: QPainter, style: Style, rect: QRectF) -> None:
        px, theme, font = style.px, style.theme, style.text_font(LABEL)
        top = self.token.top
        line = max(rect.height() / len(top), px(_LINE * 0.75))
        names = [quoted(text) for text, _ in top]
        left = min(max(text_width(font, name) for name in names), px(_WIDEST)) + px(8)
        right, most = text_width(font, "> 99.9 %") + px(8), max(chance for _, chance in top)
        for n, (_, chance) in enumerate(top[: int(rect.height() / line + 0.01)]):
            y, chosen = rect.y() + n * line, self.drawn and n == self.token.place
            ink = theme.current if chosen else theme.text
            draw_text(painter, QRectF(rect.x(), y, left - px(8), line), names[n], font, ink, RIGHT)
            room = max(rect.width() - left - right, px(20))
            bar = QRectF(rect.x() + left, y + 0.18 * line, room * chance / most, 0.64 * line)
            painter.fillRect(bar, QColor(theme.current if chosen else theme.tensor("P")))
            place = QRectF(bar.right() + px(6), y, right, line)
            draw_text(painter, place, chance_text(chance), font, ink, LEFT)


def next_box(said: Continuation, tokens: tuple[str, ...], rows: range) -> Box:
    """Return the text with the tokens drawn so far, and the chances of a token.

    tokens: the tokens of the text and of its continuation.
    rows: the rows of the step; for the prompt they are the whole text, and nothing is drawn yet.
    """
    typed = "".join(tokens[1 : said.prompt]).strip()
    following = "".join(tokens[said.prompt : rows.stop])
    if len(typed) > _LETTERS:
        typed = f"…{typed[-_LETTERS:]}"
    drawn = rows.stop > said.prompt
    return Column((
        Paragraph(safe_text(typed), "muted", size=13),
        Paragraph(safe_text(following[-_LETTERS:].strip()) or "…", size=13),
        Chances(_token(said, rows), drawn, grow=1),
        Box(),
    ), gap=6)  # fmt: skip


def next_words(said: Continuation, rows: range) -> Words:
    """Return the words around the chances."""
    token, number, count = _token(said, rows), rows.stop - said.prompt, len(said.tokens)
    title = f"Your text, {plural(said.prompt, 'token')}: what may come next"
    if number:
        drawn = f"{quoted(token.text)} was drawn, with a probability of {chance_text(token.chance)}"
        title = f"Token {number} of {count}: {drawn}"
    text = "" if math.isnan(said.loss) else (
        f" Its loss on your text is {number_text(said.loss)} nats a token: it is as unsure as "
        f"among {count_text(math.exp(min(said.loss, 30)))} equally probable tokens."
    )  # fmt: skip
    small = said.parameters < 10**7
    honest = " It shows mechanisms, not knowledge." if small else ""
    draw = (
        "The most probable token each time: a small model soon repeats itself."
        if said.draw == GREEDY
        else f"Drawn at T = {TEMPERATURE}, seed {said.draw}: logits are divided by T."
    )
    told = zip(WARMER, token.warmer, strict=True)
    warmer = ", ".join(f"{chance_text(chance)} at T = {t:g}" for t, chance in told)
    same = (
        "One pass over all tokens, without a cache, gives the same probabilities up to "
        f"{number_text(said.apart, 2)}."
    )
    millions = f"{said.parameters / 1e6:.3g}"
    return Words(title, sentences=(
        f"{said.model[:1].upper()}{said.model[1:]}, {millions} million parameters.{honest}{text}",
        draw, f"The most probable token has {warmer}.", same,
    ))  # fmt: skip


def _token(said: Continuation, rows: range) -> NextToken:
    """Return the token that a step brings, or the token that comes after the prompt."""
    return said.tokens[max(rows.stop - said.prompt, 1) - 1]


def quoted(text: str) -> str:
    """Return a token as it is, with its space, in marks."""
    return f"“{safe_text(text)}”"


def chance_text(chance: float) -> str:
    """Return a probability in percent."""
    if 0.999 < chance < 1:
        return "> 99.9 %"
    digits = 0 if 0.1 <= chance < 0.995 or chance == 1 else 1
    return "< 0.1 %" if chance < 0.001 else f"{100 * chance:.{digits}f} %"
