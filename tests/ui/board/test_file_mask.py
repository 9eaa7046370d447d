"""A run whose input file has a mask, in the window: what is said of it, and what replaces it."""

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel

from simulator.run.cell_values import Cell
from simulator.run.provenance import explain
from tests.helpers.by_hand import choosing
from tests.helpers.written_files import numbers, write_safetensors
from ui.board.words import describe

N = 24


@pytest.fixture
def seen():
    """Return a mask for each of four heads: head 1 does not see key 2 from row 5."""
    seen = np.ones((4, N, N), dtype=bool)
    seen[1, 5, 2] = seen[:, 9] = False
    return seen


@pytest.fixture
def window(open_window, tmp_path, seen):
    tensors = {**numbers(q=(4, N, 4), k=(2, N, 4), v=(2, N, 4)), "mask": seen}
    write_safetensors(tmp_path / "own.safetensors", tensors, {"causal": "true"})
    (tmp_path / "own.toml").write_text(
        '[input]\nsource = "file"\npath = "own.safetensors"\n[tiling]\nrows = 8\ncols = 8\n'
    )
    return open_window(str(tmp_path / "own"), (1600, 900))


def settle(window, qapp):
    for _ in range(3):
        window.session.settle()
        qapp.processEvents()


def test_a_hidden_cell_says_that_the_file_hides_it_from_its_head(window):
    trace, cell, words = window.session.trace, Cell("S", 5, 2), []
    for head in (0, 1):
        index = trace.program.index(head, 0, 0)
        snapshot = trace.snapshot(index, len(trace.program.ops(index)) - 1)
        words.append((describe(snapshot, cell), said(snapshot, cell)))
    (shown, free), (hidden, why) = words
    assert "hidden" not in shown + free
    assert hidden == "S[5, 2]: hidden by the mask"
    assert "file: the mask of the input file hides key 2 from row 5" in why


def said(snapshot, cell):
    return " ".join(str(part) for line in explain(snapshot, cell).lines for part in line)


def test_the_scenario_panel_and_the_line_of_the_run_say_it(window):
    form = window.docks.panel("scenario")
    words = [label.text() for label in form.findChildren(QLabel) if label.isVisibleTo(form)]
    assert (
        "The input file has a mask for each head: they hide pairs, whatever is set below." in words
    )


def test_a_row_that_sees_nothing_has_no_output(window):
    assert not window.session.trace.output[:, 9].any()


@pytest.mark.long
@pytest.mark.parametrize("name", ["window", "BigBird"])
def test_another_mask_takes_its_place_in_a_copy_of_the_input(window, qapp, tmp_path, name):
    window.desk.take("inspector")
    window.docks["masks"].raise_()
    settle(window, qapp)
    panel = window.docks.panel("masks")
    panel.change(panel.state.named(name))
    assert panel.use_button.text() == "Use…"
    choosing(panel.use_button.click, tmp_path / "copy.safetensors")
    settle(window, qapp)
    mask = window.session.trace.workload.mask
    assert mask.tensor is None
    assert bool(mask.window) == (name == "window")
    assert window.session.scenario.input.path == str(tmp_path / "copy.safetensors")
    window.session.undo_stack.undo()
    window.session.settle()
    assert window.session.trace.workload.mask.tensor is not None
