"""Pages on the board and in the memory panel: places are the table's, and the tile's are lit."""

import pytest
from PySide6.QtCore import QRectF

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario
from simulator.run.snapshot import Snapshot
from simulator.run.trace import Trace, simulate
from tests.helpers.painted import painted, record_texts
from ui.board import pages as painter
from ui.board.board import paint_board
from ui.look.page_words import page_phrase
from ui.look.theme import DARK, Style
from ui.panels.memory.model import PagePlaces, memory_model


@pytest.fixture(scope="module")
def trace() -> Trace:
    return simulate(load_scenario(SCENARIOS / "paged.toml"))


def places(now: Snapshot) -> PagePlaces:
    return next(each.places for each in memory_model(now).tensors if each.places)


def test_places_at_work_are_the_tables_entries(trace) -> None:
    table = trace.workload.pages
    for index in range(len(trace)):
        now = trace.snapshot(index)
        if now.launch.combines:
            assert page_phrase(now) == "" == places(now).words
            assert places(now).lit == ()
            continue
        entries = [int(table.entries[token // table.size]) for token in now.visit.cols]
        assert now.tile_places == tuple(dict.fromkeys(entries))
        assert places(now).lit == now.tile_places
        assert places(now).count == table.places
        assert not places(now).free
        for place in now.tile_places:
            assert str(place) in page_phrase(now)
        assert page_phrase(now) in memory_model(now).words


def test_places_of_other_sequences_are_told_apart() -> None:
    now = simulate(load_scenario(SCENARIOS / "batch.toml")).snapshot(0)
    pages, table = places(now), now.program.workload.pages
    assert pages.others == pages.free == table.others
    assert len(pages.others) == table.places - table.pages > 0


def test_each_page_shows_its_place_on_the_keys(trace, monkeypatch, qapp) -> None:
    drawn = record_texts(monkeypatch, painter)
    rect = QRectF(0, 0, 1000, 700)
    now = trace.snapshot(2)
    painted(lambda p: paint_board(p, now, Style(DARK), rect), 1000, 700)
    assert [text.text for text in drawn] == [str(n) for n in trace.workload.pages.used]
    drawn.clear()
    painted(lambda p: paint_board(p, now, Style(DARK), QRectF(0, 0, 200, 150)), 200, 150)
    assert drawn == []
