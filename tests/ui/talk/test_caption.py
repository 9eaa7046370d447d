"""Captions: the Markdown that they understand, where words stand, and too little room."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter

from tests.helpers.painted import pixels
from ui.look.draw import text_width
from ui.look.flow import Face, FlowWord, Piece, flow, width_of
from ui.look.lesson_text import FORMATS
from ui.look.theme import DARK, THEMES, Style
from ui.talk.caption import (
    BODY,
    SMALLEST,
    Caption,
    caption_height,
    caption_layout,
    lines_above,
    paint_caption,
)
from ui.talk.caption_text import blocks, plain_text, words_of

pytestmark = pytest.mark.usefixtures("qapp")

CAPTION = Caption(
    "One factor repairs it",
    r"$\alpha = e^{m_{\mathrm{old}} - m}$ is 0.307. Multiplying $\ell$ and $O$ by it moves "
    "**everything** to the *new* maximum; `rescale` does it.\n\n- each term once,\n- at each tile.",
    5, 8,
    "Why is one factor enough for all of a row?",
    r"All its exponentials were taken against the same $m_{\mathrm{old}}$, so all are off by it.",
)  # fmt: skip


# --- Markdown ---------------------------------------------------------------------------------


def test_words_have_faces_and_what_has_no_space_before_it_is_glued() -> None:
    found = words_of("A **b $x$**, *c d* `e f`($y$)")
    assert found == (
        FlowWord("A"), FlowWord("b", Face.BOLD), FlowWord("x", Face.MATHS),
        FlowWord(",", glued=True),
        FlowWord("c", Face.ITALIC), FlowWord("d", Face.ITALIC), FlowWord("e", Face.CODE),
        FlowWord("f", Face.CODE),
        FlowWord("(", glued=True), FlowWord("y", Face.MATHS, glued=True), FlowWord(")", glued=True),
    )  # fmt: skip


def test_a_line_break_in_the_file_is_a_space() -> None:
    assert words_of("one\ntwo") == (FlowWord("one"), FlowWord("two"))


def test_a_number_stays_whole_and_beside_its_unit() -> None:
    size, count = FORMATS["bytes"](80 * 2**30, None), FORMATS["count"](131_072, None)
    found = [word.text for word in words_of(f"It takes {size} at {count} tokens, `a\u2009b`")]
    assert found == ["It", "takes", size, "at", count, "tokens,", "a\u2009b"]
    assert size.replace("\u00a0", " ") == "80.0 GiB"


def test_lists_and_paragraphs_are_blocks_with_their_marks() -> None:
    found = blocks("First.\n\n- one\n- two\n  - deep\n\n3. third\n4. fourth\n\nLast.")
    assert [(b.mark, b.level, b.words[0].text) for b in found] == [
        ("", 0, "First."), ("•", 1, "one"), ("•", 1, "two"), ("•", 2, "deep"),
        ("3.", 1, "third"), ("4.", 1, "fourth"), ("", 0, "Last."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["# no heading", "> no quote", "| no | table |", "[no](link)", "<b>no</b> tags", "![no](x)",
     "between $5 and $6 a month", "a * b * c", "&amp; stays"],
)  # fmt: skip
def test_all_else_stays_as_it_was_typed(text: str) -> None:
    assert plain_text(text) == text
    assert {word.face for word in words_of(text)} == {Face.TEXT}


@pytest.mark.parametrize("latex", [r"\frac{", "x^", r"\left(", "a & b", "{"])
def test_a_formula_that_cannot_be_set_is_shown_as_it_was_typed(latex: str) -> None:
    assert plain_text(f"See ${latex}$ here") == f"See ${latex}$ here"
    assert caption_height(Caption("t", f"See ${latex}$ here"), Style(DARK), 400) > 0


def test_what_is_bold_as_a_whole_keeps_its_formulas() -> None:
    assert words_of("Why *is* $m$ `kept`?", bold=True) == (
        FlowWord("Why", Face.BOLD), FlowWord("is", Face.BOLD), FlowWord("m", Face.MATHS),
        FlowWord("kept", Face.CODE), FlowWord("?", Face.BOLD, glued=True),
    )  # fmt: skip


# --- places -----------------------------------------------------------------------------------


def ends(piece: Piece, scale: float, size: float = BODY) -> float:
    return piece.x + width_of(piece.text, piece.face, Style(DARK, scale), size)


def check_apart(pieces: tuple[Piece, ...], scale: float) -> None:
    """Check that the pieces of each line follow one another without touching."""
    for _, line in itertools.groupby(pieces, key=lambda piece: piece.baseline):
        for left, right in itertools.pairwise(line):
            assert ends(left, scale) <= right.x + 0.01


@given(width=st.integers(240, 3800), scale=st.sampled_from([1.0, 1.25, 1.5, 2.0]))
def test_nothing_overlaps_at_any_width(width: int, scale: float) -> None:
    laid = caption_layout(CAPTION, Style(DARK, scale), width, 10_000)
    assert laid.right <= width or laid.scale * BODY <= SMALLEST + 0.01
    for pieces in (laid.body, laid.question + laid.answer):
        check_apart(pieces, laid.scale)
        lines = sorted({piece.baseline for piece in pieces})
        pitch = QFontMetricsF(Style(DARK, laid.scale).text_font(BODY)).height()
        assert all(low - high >= pitch - 0.01 for high, low in itertools.pairwise(lines))
    text = max(ends(piece, laid.scale) for piece in laid.body)
    low = max(piece.baseline for piece in laid.body)
    assert text <= laid.card.left() or low < laid.card.top()
    said = laid.question + laid.answer
    assert max(ends(piece, laid.scale) for piece in said) <= laid.card.right()
    assert max(piece.baseline for piece in said) < laid.card.bottom() <= laid.height


def test_a_full_stop_is_never_alone_at_the_start_of_a_line() -> None:
    words = words_of("the longest sum is $a + b + c + d + e + f$.")
    for width in range(150, 420, 5):
        laid = flow(words, Style(DARK), 0, width, 0, BODY)
        assert laid.pieces[-1].baseline == laid.pieces[-2].baseline


def test_a_word_that_is_wider_than_its_column_is_taken_apart() -> None:
    laid = flow(words_of("an " + "x" * 200 + " end"), Style(DARK), 0, 200, 0, BODY)
    assert laid.right <= 200
    assert "".join(piece.text for piece in laid.pieces) == "an" + "x" * 200 + "end"


def test_the_question_stands_beside_the_text_where_there_is_room_else_below() -> None:
    wide = caption_layout(CAPTION, Style(DARK), 1100, 400)
    narrow = caption_layout(CAPTION, Style(DARK), 600, 400)
    assert wide.card.left() > max(ends(piece, 1.0) for piece in wide.body)
    assert narrow.card.left() == 0
    assert narrow.card.top() > max(piece.baseline for piece in narrow.body)


# --- little room ------------------------------------------------------------------------------


def test_the_text_gets_as_small_as_it_must_and_no_smaller() -> None:
    style, width = Style(DARK, 1.5), 900
    full = caption_height(CAPTION, style, width)
    assert caption_layout(CAPTION, style, width, full).scale == 1.5
    tight = caption_layout(CAPTION, style, width, 0.7 * full)
    assert tight.scale < 1.5
    assert tight.height <= 0.7 * full
    larger = Style(DARK, (round(BODY * tight.scale) + 1) / BODY)
    assert caption_height(CAPTION, larger, width) > 0.7 * full
    assert round(BODY * caption_layout(CAPTION, style, width, 20).scale) == SMALLEST


def painted(caption: Caption, style: Style, width: int, height: int, edge: int = 20) -> QImage:
    image = QImage(width + 2 * edge, height + 2 * edge, QImage.Format.Format_RGB32)
    image.fill(QColor(style.theme.panel))
    painter = QPainter(image)
    paint_caption(painter, caption, style, QRectF(edge, edge, width, height))
    painter.end()
    return image


def inked(image: QImage, style: Style) -> np.ndarray:
    return pixels(image) != (QColor(style.theme.panel).rgb() & 0xFFFFFF)


@pytest.mark.parametrize(("width", "height"), [(1000, 110), (420, 90), (300, 40), (240, 300)])
def test_nothing_is_painted_outside_its_place(width: int, height: int) -> None:
    style = Style(DARK, 1.5)
    ink = inked(painted(replace(CAPTION, revealed=True), style, width, height), style)
    assert ink[20:-20, 20:-20].any()
    ink[18:-18, 18:-18] = False
    assert not ink.any()


def test_what_fits_at_no_size_ends_in_an_ellipsis() -> None:
    long = Caption("t", " ".join(f"word{n}" for n in range(400)))
    laid = caption_layout(long, Style(DARK), 400, 90)
    assert laid.height > 90
    own = Style(DARK, laid.scale)
    kept = lines_above(laid.body, 90, own)
    assert kept[-1].text == "…"
    assert [piece.text for piece in kept[:-1]] == [f"word{n}" for n in range(len(kept) - 1)]
    under = QFontMetricsF(own.text_font(BODY)).descent()
    assert kept[-1].baseline + under <= 91
    after = laid.body[len(kept)]
    assert after.baseline + under > 91
    assert lines_above(laid.body, laid.height, own) == laid.body


# --- the answer -------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_the_answer_appears_in_room_that_was_kept_for_it(theme) -> None:
    style = Style(theme)
    asked = painted(CAPTION, style, 1000, 130)
    told = painted(replace(CAPTION, revealed=True), style, 1000, 130)
    assert caption_height(CAPTION, style, 1000) == caption_height(
        replace(CAPTION, revealed=True), style, 1000
    )
    changed = pixels(asked) != pixels(told)
    card = caption_layout(CAPTION, style, 1000, 130).card.translated(20, 20).toRect()
    assert changed[card.top() : card.bottom(), card.left() : card.right()].any()
    changed[card.top() : card.bottom() + 1, card.left() : card.right() + 1] = False
    assert not changed.any()
    bar = asked.pixelColor(card.left() + 2, card.center().y())
    assert bar.name() == QColor(theme.current).name()


def test_the_lesson_is_named_where_there_is_room_beside_the_title() -> None:
    style, named = Style(DARK), replace(CAPTION, lesson="A lesson with a long title")
    wide = caption_layout(named, style, 900, 130)
    assert wide.place == f"A lesson with a long title  ·  {CAPTION.place}"
    assert caption_layout(named, style, 300, 400).place == CAPTION.place
    assert caption_layout(CAPTION, style, 900, 130).place == CAPTION.place
    title = max(piece.x for piece in wide.title)
    assert {piece.baseline for piece in wide.title} == {wide.title[0].baseline}
    assert title < 900 - text_width(style.text_font(13), wide.place)
