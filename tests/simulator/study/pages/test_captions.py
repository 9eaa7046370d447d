"""Numbers of pages in lessons: those of the run's table, and of the served requests."""

import pytest

from simulator.base.errors import InputError
from simulator.problem.workload import resolve
from simulator.study.pages.pages import (
    paged_waste,
    served_in_pages,
    served_in_stretches,
    stretched_waste,
    usual_server,
)
from tests.helpers.lesson_texts import computed
from tests.simulator.lesson.test_model_numbers import at

STEP = 9


def test_pages_of_the_run_are_those_of_its_table() -> None:
    n = at("paged")
    table = resolve(n.scenario).pages
    assert (computed("page_size()", n), computed("pages()", n)) == (table.size, table.pages)
    for page in range(table.pages):
        assert computed(f"page_place({page})", n) == table.entries[page]


def test_served_numbers_are_those_of_the_server() -> None:
    n, server = at("paged"), usual_server()
    shared, apart = (list(served_in_pages(server, sharing=on)) for on in (True, False))
    stretches = list(served_in_stretches(server))
    for way, moments in (("shared", shared), ("apart", apart), ("stretches", stretches)):
        assert computed(f'served_steps("{way}")', n) == len(moments)
        most = max(len(moment.running) for moment in moments)
        assert computed(f'served_at_once("{way}")', n) == most
        waste = (stretched_waste if way == "stretches" else paged_waste)(server, moments[STEP])
        for part in ("used", "inside", "outside", "free", "saved"):
            asked = f'served_slots("{way}", "{part}", {STEP})'
            assert computed(asked, n) == getattr(waste, part)
    assert computed("served_copies()", n) == sum(len(moment.copied) for moment in shared) > 0


def test_slots_of_the_run_are_those_of_its_batch() -> None:
    n = at("batch")
    lengths, size = n.scenario.batch.lengths, resolve(n.scenario).page_size
    held = sum(-(-length // size) * size for length in lengths)
    assert computed('cache_slots("pages", "used")', n) == sum(lengths)
    assert computed('cache_slots("pages", "inside")', n) == held - sum(lengths)
    empty = len(lengths) * max(lengths) - sum(lengths)
    assert computed('cache_slots("stretches", "inside")', n) == empty


@pytest.mark.parametrize(
    ("name", "expression", "words"),
    [
        ("flash2", 'cache_slots("pages", "used")', "one whose K and V lie in pages"),
        ("batch", 'cache_slots("shared", "used")', "one of pages, stretches"),
        ("batch", 'cache_slots("pages", "lost")', "one of used, inside"),
        ("paged", "page_place(99)", "page = 99: expected a whole number from 0 to 9"),
        ("flash2", "pages()", "one whose K and V lie in pages"),
        ("paged", 'served_steps("lent")', "one of shared, apart, stretches"),
        ("paged", 'served_slots("shared", "lost", 1)', "one of used, inside"),
        ("paged", 'served_slots("shared", "used", 999)', "step = 999"),
    ],
)
def test_what_cannot_be_asked_is_told(name: str, expression: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        computed(expression, at(name))
