"""The window on a real screen: nothing crashes, nothing is printed, the exit status is 0.

Each test looks at one case; all are tried before the first, in several processes (`crew`).
"""

from functools import partial
from pathlib import Path

import pytest

from tests.real_window.cases import NEWCOMERS, ON_WAYLAND, PAGES, PROCESSES, SEQUENCES, STARTS, Case
from tests.real_window.crew import try_all
from tests.real_window.newcomer import SEARCH, WISHES, Wish
from tests.real_window.screens import WHY_NO_X, x_screen


def each(*cases: Case) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def check_well(fault: str) -> None:
    """Fail with what went wrong, and nothing else."""
    if fault:
        pytest.fail(fault, pytrace=False)


@pytest.mark.sweep(keep=1)
@each(*STARTS)
def test_x_start_after_what_was_left(case: Case, on_x: dict[Case, str]) -> None:
    check_well(on_x[case])


@pytest.mark.long
@each(*PROCESSES)
def test_x_processes_that_follow_one_another(case: Case, on_x: dict[Case, str]) -> None:
    check_well(on_x[case])


@pytest.mark.sweep(keep=1)
@each(*SEQUENCES)
def test_x_sequence_at_random(case: Case, on_x: dict[Case, str]) -> None:
    check_well(on_x[case])


@pytest.mark.long
@each(*PAGES)
def test_x_pages_turned_fast_never_mix_steps(case: Case, on_x: dict[Case, str]) -> None:
    check_well(on_x[case])


@pytest.mark.sweep(keep=1)
@each(*ON_WAYLAND)
def test_wayland_start_after_what_was_left(case: Case, on_wayland: dict[Case, str]) -> None:
    check_well(on_wayland[case])


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: wish.name)
def test_a_wish_takes_three_actions_at_most_or_one_search(wish: Wish) -> None:
    assert len(wish.actions) <= 3 or wish.actions.index(SEARCH) == 0 == wish.actions[1:].count(
        SEARCH
    )


@pytest.mark.skipif(bool(WHY_NO_X), reason=WHY_NO_X)
@pytest.mark.long
@each(*NEWCOMERS)
def test_x_newcomer_finds_everything_within_three_actions(case: Case, tmp_path: Path) -> None:
    screen = partial(x_screen, size=case.name)
    told = try_all([case], screen, "x", tmp_path, tmp_path, tmp_path / "screens", 1)
    check_well(told[case])
