"""Words of the glossary in captions and sentences: marked, explained, and asked for."""

import pytest
from PySide6.QtCore import QPointF, QRectF, Qt

from simulator.base.glossary import glossary
from ui.kit.boxes import scene
from ui.kit.shapes import Sentence
from ui.look.terms import TermSpot, said_of
from ui.look.theme import DARK, Style
from ui.talk.caption import Caption, caption_terms

pytestmark = pytest.mark.usefixtures("qapp")

SAID = Caption(
    "A tile", "Each tile is in SRAM. A **row block** has tiles.", question="What is HBM?"
)
LEFT = Qt.MouseButton.LeftButton


def test_each_word_of_a_caption_is_marked_where_it_stands_first():
    found = caption_terms(SAID, Style(DARK), 1000, 400)
    assert [spot.name for spot, _ in found] == ["tile", "SRAM", "row block", "row block", "HBM"]
    for n, (_, box) in enumerate(found):
        assert QRectF(0, 0, 1000, 400).contains(box)
        assert not any(box.intersects(other) for _, other in found[n + 1 :])


def test_a_click_asks_for_a_word_and_the_stage_has_none(bar, qtbot):
    (spot, box), *_ = bar.caption.terms
    with qtbot.waitSignal(bar.word_asked) as asked:
        qtbot.mouseClick(bar.caption, LEFT, pos=box.center().toPoint())
    assert asked.args == [spot.name] == ["tile"]
    bar.set_large(True)
    assert bar.caption.terms == []


def test_a_citation_is_marked_without_its_bracket_and_says_its_paper(bar, qtbot):
    bar.caption.show_caption(Caption("One pass", "It needs no whole row (Dao et al. 2022)."))
    name = "Dao et al. 2022"
    cited = [box for spot, box in bar.caption.terms if spot.name == name]
    assert len(cited) == 4
    assert "NeurIPS 2022" in said_of(name)
    with qtbot.waitSignal(bar.word_asked) as asked:
        qtbot.mouseClick(bar.caption, LEFT, pos=cited[-1].center().toPoint())
    assert asked.args == [name]
    bar.caption.show_caption(Caption("One pass", "It needs no whole row Dao et al. 2022."))
    bare = [box for spot, box in bar.caption.terms if spot.name == name]
    assert [box.width() for box in bare] == pytest.approx([box.width() for box in cited], abs=0.1)


def test_keys_go_from_word_to_word(bar, qtbot):
    asked: list[str] = []
    bar.word_asked.connect(asked.append)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Return):
        qtbot.keyClick(bar.caption, key)
    assert asked == ["tile", "SRAM"]


def test_a_sentence_of_a_panel_marks_words_and_has_tips_but_not_on_the_stage():
    words = {word.name: word for word in glossary()}
    rect = QRectF(0, 0, 240, 60)
    made = scene(Sentence("Its bytes go to HBM and back, a tile each time"), Style(DARK), rect)
    spots = {box.id: place for box, place in made.placed if isinstance(box.id, TermSpot)}
    assert [spot.name for spot in spots] == ["HBM", "tile"]
    for spot, place in spots.items():
        assert rect.contains(place)
        assert made.tip(place.center()) == f"{spot.name}: {words[spot.name].says}"
        assert spot in made.at(place.center())
    assert not made.tip(QPointF(1, 1))
    hall = scene(Sentence("bytes go to HBM"), Style(DARK, least=18), rect)
    assert not any(isinstance(box.id, TermSpot) for box, _ in hall.placed)
