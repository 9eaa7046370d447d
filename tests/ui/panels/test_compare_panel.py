"""The comparison: words that fit the figures, boards as the big one, mouse, keys, table."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from simulator.base.assets import SCENARIOS
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.algorithms import ALGORITHMS
from simulator.program.playback import end_of_visit, last_cursor
from simulator.program.tile_program import TileProgram
from simulator.study.compare import Comparison, Lockstep, Position, comparison_of
from simulator.study.recompute import trade_of
from tests.helpers.demos import demo
from tests.helpers.painted import painted
from tests.helpers.runs import ALGORITHMS as NAMES
from tests.helpers.runs import program_of, scenario
from tests.helpers.tile_states import TileState, tile_states
from ui.board.mini_board import board_areas, board_box, paint_mini_board
from ui.look.theme import THEMES, Style
from ui.look.units import bytes_text, factor_text
from ui.panels.compare.columns import meters
from ui.panels.compare.panel import ComparePanel, table_rows
from ui.panels.compare.words import legend_words, pace_words, place_words, verdicts

pytestmark = pytest.mark.usefixtures("qapp")
DEMOS = ("naive", "flash1", "flash2", "causal", "grouped-heads", "window-sinks")
LEFT = Qt.MouseButton.LeftButton


@cache
def large(d: int, rows: int, cols: int) -> Comparison:
    return Comparison(
        program_of(scenario("flash2", 4096, d=d, rows=rows, cols=cols, dtype="float16"))
    )


@cache
def lockstep(name: str, share: float) -> tuple[Comparison, Lockstep]:
    trace = demo(name)
    now = trace.snapshot(int(share * (len(trace) - 1)))
    return comparison_of(trace.program), comparison_of(trace.program).at(now)


# --- words -------------------------------------------------------------------------------------


def test_the_slower_one_is_named_with_its_reason():
    said = list(verdicts(large(128, 128, 64)))
    naive, flash1, _ = (each.duration.seconds for each in large(128, 128, 64).totals)
    slower = factor_text(flash1 / naive)
    assert said[0] == (
        f"FlashAttention-1 requests 1.69× as much as naive attention here and takes {slower} as "
        "long by model: d = 128 and Bc = 64 make it read O 64 times."
    )
    assert said[1] == (
        "FlashAttention-2 requests least, 66.0 MiB; naive attention 2.94×, FlashAttention-1 4.97×."
    )
    said = list(verdicts(large(64, 128, 128)))
    assert said[0].endswith("33.0 MiB; FlashAttention-1 2.55×, naive attention 4.88×.")
    assert said[1] == "80 % of naive's bytes are S and P, 4\u2009096 × 4\u2009096 numbers each."


def test_even_flash2_may_request_more_than_flash1():
    program = program_of(scenario("flash2", 256, d=64, rows=4, cols=256, dtype="float16"))
    said = list(verdicts(Comparison(program)))
    assert any(
        text.startswith("FlashAttention-2 requests") and "read K and V 64 times" in text
        for text in said
    )


def test_partials_and_tables_are_the_reason_where_they_are():
    paged = scenario("paged", 37, 53, d=20, heads=6, kv_heads=2, rows=16, cols=12)
    near = {"tiling": {"splits": 3, "page_size": 1}, "mask": {"causal": True, "window": 17}}
    program = program_of(with_values(paged, near))
    said = verdicts(Comparison(program))
    read, written = program.totals.read, program.totals.write
    split, table = (
        next(text for text in said if text.startswith(name) and other in text)
        for name, other in (("Split-KV", "as FlashAttention-2 here"), ("Paged", "as split-KV here"))
    )
    moved = bytes_text(read["O_partial"] + written["O_partial"])
    assert split.endswith(f" here: O_partial takes {moved}.")
    assert table.endswith(f" here: table takes {bytes_text(read['table'])}.")


def test_a_run_of_single_tokens_is_compared_in_tiles():
    chosen = scenario("linear-recurrent", 37, d=20, rows=16, cols=12, mask={"causal": True})
    said = verdicts(Comparison(program_of(chosen)))
    assert any(text.startswith("37 tokens in 16 × 12 tiles save little") for text in said)


def test_a_backward_pass_is_not_ranked_among_forward_passes():
    backward = next(name for name in ALGORITHMS if ALGORITHMS[name].backward)
    comparison, _ = lockstep(backward, 1.0)
    said = list(verdicts(comparison))
    trade = trade_of(comparison.programs[backward].workload)
    few, many = sorted(passes.bytes for passes in trade.both)
    assert said[0].startswith("Forward and backward pass together request: FlashAttention-2 ")
    assert (
        f"FlashAttention-2 {bytes_text(few)} and naive {bytes_text(many)}, "
        f"{factor_text(many / few)} as much." in said[0]
    )
    ranked = [texts for texts in said[1:] if "requests" in texts]
    assert ranked
    assert all("backward" in texts for texts in ranked)


# --- boards ------------------------------------------------------------------------------------


def used_by_areas(program: TileProgram, position: Position) -> np.ndarray:
    """Return the tiles that the small board draws as worked on, (Tr, Tc) bool."""
    grid = program.workload.grid
    out = np.zeros((grid.Tr, grid.Tc), dtype=bool)
    for area in board_areas(program, position):
        for i in range(grid.Tr):
            for j in range(grid.Tc):
                rows, cols = grid.row_range(i), grid.col_range(j)
                inside = rows[0] in area.rows and cols[0] in area.cols
                out[i, j] |= inside and rows[-1] in area.rows and cols[-1] in area.cols
    if program.workload.algorithm != "naive":
        out &= grid.kinds() > 0
    return out


@pytest.mark.parametrize("name", DEMOS)
def test_areas_are_the_states_of_the_tiles(name):
    comparison = comparison_of(demo(name).program)
    for algorithm, program in comparison.programs.items():
        for visits in range(1, len(program)):
            place = comparison.after(algorithm, visits)
            assert place.visit is not None
            states = tile_states(program, place.visit)
            # The current tile, a whole row block in naive's softmax, is drawn over the areas.
            here = states == TileState.CURRENT
            used = used_by_areas(program, place)
            np.testing.assert_array_equal(used[~here], (states == TileState.USED)[~here])
        assert board_areas(program, comparison.after(algorithm, 0)) == ()
        done = used_by_areas(program, comparison.after(algorithm, len(program)))
        visited = program.workload.grid.kinds() > 0
        np.testing.assert_array_equal(done, visited | (algorithm == "naive"))


@pytest.mark.parametrize("theme", THEMES)
def test_the_current_tile_is_outlined_where_it_is(theme):
    trace = demo("causal")
    comparison, style = comparison_of(trace.program), Style(THEMES[theme])
    position = comparison.after("flash2", trace.program.index(0, 2, 1) + 1)  # type: ignore[operator]
    rect = QRectF(0, 0, 200, 200)
    image = painted(
        lambda p: paint_mini_board(
            p, trace.program, position, trace.workload.grid, style, rect
        ), 200, 200,
    )  # fmt: skip
    line = QColor(style.theme.current).rgb()
    rows = {y for y in range(200) for x in range(200) if image.pixel(x, y) == line}
    columns = {x for y in range(200) for x in range(200) if image.pixel(x, y) == line}
    assert (min(rows), max(rows)) == (100, 149)
    assert (min(columns), max(columns)) == (50, 99)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["naive-backward", "flash2-backward", "causal", "flash2"])
def test_the_legend_says_whose_tiles_lie_in_hbm_and_which_are_fainter(name, theme):
    comparison = comparison_of(demo(name).program)
    stored = []
    style, rect = Style(THEMES[theme]), QRectF(0, 0, 420, 420)
    ground = QColor(style.theme.empty)
    for algorithm, program in comparison.programs.items():
        place = comparison.after(algorithm, len(program))
        (area,) = board_areas(program, place)
        stored += [] if area.dropped else [ALGORITHMS[algorithm].label]
        grid = program.workload.grid
        image = painted(
            lambda p, a=(program, place, grid): paint_mini_board(p, *a, style, rect), 420, 420
        )
        box = board_box(program, rect)
        far: dict[int, set[int]] = {}
        for i, j in np.ndindex(grid.Tr, grid.Tc):
            x = box.x() + box.width() * (grid.col_range(j)[0] + 0.5) / grid.mask.seqlen_k
            y = box.y() + box.height() * (grid.row_range(i)[0] + 0.5) / grid.mask.seqlen_q
            here = image.pixelColor(int(x), int(y))
            if grid.kind(i, j) or not program.algorithm.skips:
                channels = zip(here.getRgb()[:3], ground.getRgb()[:3], strict=True)
                far.setdefault(int(grid.kind(i, j)), set()).add(
                    sum(abs(a - b) for a, b in channels)
                )
        kinds = sorted(far)
        assert all(max(far[a]) < min(far[b]) for a, b in pairwise(kinds))  # hidden ones are fainter
    said = ", ".join(stored)
    words = legend_words(comparison)
    assert ("filled: in HBM" in words) == bool(said)
    assert f"filled: in HBM ({said}) or used and dropped" in words or not said
    assert len(stored) == len({"naive", "naive-backward"} & set(comparison.programs))


def test_meters_have_one_scale_in_all_columns():
    comparison = large(128, 128, 64)
    ends = tuple(comparison.after(name, len(comparison.programs[name])) for name in NAMES)
    said = [meters(comparison, *each) for each in zip(ends, comparison.totals, strict=True)]
    for alike in zip(*said, strict=True):
        assert len({(each.name, each.full, each.limit) for each in alike}) == 1
        assert all(each.done <= each.whole <= each.full for each in alike)
    assert [each[0].whole for each in said] == [t.counters.bytes for t in comparison.totals]


@pytest.mark.long
def test_more_than_the_limit_is_a_figure_and_no_colour_alone():
    run = program_of(scenario("flash2", 131_072, d=128, rows=128, cols=128, dtype="float16"))
    comparison = Comparison(run)
    over = [t for t in comparison.totals if t.peak > run.workload.gpu.smem_bytes]
    assert over
    for total in over:
        place = comparison.after(total.algorithm, 1)
        assert "over 227.0 KiB" in meters(comparison, place, total)[2].figures[0]


# --- panel -------------------------------------------------------------------------------------


PANEL, DEMO, LAYOUT = "compare", "causal", "compare"


def click(panel: ComparePanel, name: str, qtbot: QtBot) -> None:
    at = panel.picture.scene.where(name).center().toPoint()
    qtbot.mouseMove(panel.picture, at)
    assert panel.picture.cursor().shape() is Qt.CursorShape.PointingHandCursor
    qtbot.mouseClick(panel.picture, LEFT, pos=at)
    panel._session.settle()


def press(panel: ComparePanel, choice: str, value: str, qtbot: QtBot) -> None:
    qtbot.mouseClick(panel.bar.buttons[choice, value], LEFT)
    panel._session.settle()


def test_a_click_on_a_column_shows_that_algorithm(panel, session, qtbot):
    for name in ("naive", "flash1", "flash1", "flash2"):
        click(panel, name, qtbot)
        assert session.trace.workload.algorithm == name
        assert panel.state.found.comparison.shown == name
    qtbot.mouseMove(panel.picture, QPoint(2, 2))
    assert panel.picture.cursor().shape() is Qt.CursorShape.ArrowCursor
    session.undo_stack.undo()
    session.settle()
    assert session.trace.workload.algorithm == "flash1"
    assert session.undo_stack.count() == 3, "a click on the one on show changes nothing"


@pytest.mark.long
def test_keys_mark_an_algorithm_and_show_it(panel, session, qtbot):
    for enter, name in (("Return", "flash1"), ("Enter", "naive"), ("Enter", "flash2")):
        qtbot.keyClick(panel.picture, Qt.Key.Key_Up)
        qtbot.keyClick(panel.picture, Qt.Key[f"Key_{enter}"])
        session.settle()
        assert session.trace.workload.algorithm == name


@pytest.mark.long
def test_a_mark_does_not_outlive_its_algorithm(window, panel, session, qtbot, hooked):
    window.session.start(load_scenario(SCENARIOS / "split-kv.toml"), None)
    window.session.settle()
    assert session.trace is not None
    many = len(panel.state.found.comparison.programs)
    qtbot.keyClick(panel.picture, Qt.Key.Key_Up)
    qtbot.keyClick(panel.picture, Qt.Key.Key_Down)  # split-kv, which the next run has not
    session.start(load_scenario(SCENARIOS / "flash2.toml"), None)
    session.settle()
    assert len(panel.state.found.comparison.programs) < many
    qtbot.keyClick(panel.picture, Qt.Key.Key_Return)
    session.settle()
    assert not hooked
    assert session.trace.workload.algorithm == "flash2"


@pytest.mark.long
def test_the_way_to_keep_in_step_is_chosen(panel, session, qtbot):
    session.go(end_of_visit(session.trace.program, 5))
    session.settle()
    assert [p.visits for p in panel.state.positions] == [6, 6, 6]
    assert "6 of 36 visits" in panel.accessibleDescription()
    press(panel, "match", "time", qtbot)
    spent = session.view.snapshot.seconds
    assert all(place.seconds <= spent for place in panel.state.positions)
    assert [p.visits for p in panel.state.positions] != [6, 6, 6]


@pytest.mark.long
def test_the_table_ends_the_columns_or_is_chosen(panel, session, qtbot):
    session.last()
    session.settle()
    assert panel.view == "columns", "naive has visits to go"
    panel.show_algorithm("naive")
    session.settle()
    session.go(last_cursor(session.trace.program))
    session.settle()
    assert panel.view == "table"
    assert panel.bar.buttons["view", "table"].isChecked()
    press(panel, "view", "columns", qtbot)
    assert panel.view == "columns"
    session.first()
    session.settle()
    press(panel, "view", "table", qtbot)
    assert panel.view == "table"
    assert panel.table.isVisible()


def test_the_table_is_copied_whole_or_what_is_marked(panel, qtbot):
    press(panel, "view", "table", qtbot)
    qtbot.keyClick(panel.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QApplication.clipboard().text().splitlines()
    assert lines[0] == "\tNaive attention\tFlashAttention-1\tFlashAttention-2"
    assert lines[3] == "requested, total\t2.55×   72.0 KiB\t2.44×   69.0 KiB\tleast   28.2 KiB"
    assert len(lines) == 1 + panel.table.model().rowCount()
    panel.table.selectRow(2)
    qtbot.keyClick(panel.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QApplication.clipboard().text() == lines[3]


@pytest.mark.long
def test_all_are_run_on_request(window, panel, session, qtbot):
    assert panel.runs is None
    press(panel, "view", "table", qtbot)
    qtbot.mouseClick(panel.buttons["run"], LEFT)
    session.settle()
    assert panel.runs is not None
    assert set(panel.runs) == set(NAMES)
    assert panel.view == "table"
    own = session.trace.summary()
    assert panel.runs["flash2"].max_abs_error == own["max_abs_error"]
    rows = {row.name: row for row in table_rows(panel.state.found.comparison, panel.runs)}
    error = rows["largest error of O from float64"].texts[NAMES.index("flash2")]
    assert float(error.replace("−", "-")) == pytest.approx(own["max_abs_error"], rel=0.05)
    panel.show_algorithm("naive")
    session.settle()
    assert panel.runs is not None, "the same numbers"
    session.undo_stack.undo()
    session.settle()
    window.files.open_path(window.session.path.with_name("flash1.toml"))  # type: ignore[union-attr]
    session.settle()
    assert panel.runs is None, "other numbers"


def test_a_visit_under_way_is_not_called_done():
    trace = demo("causal")
    comparison = comparison_of(trace.program)
    last = len(trace.program.ops(4)) - 1
    for op, place, pace in (
        (1, "visit 5 of 10", "4 visits done, one more under way in the run on show"),
        (last, "5 of 10 visits", "5 visits done"),
    ):
        now = comparison.at(trace.snapshot(4, op))
        shown = next(p for p in now.by_tile if p.algorithm == comparison.shown)
        assert place_words(comparison, shown)[0] == place
        words = pace_words(comparison, now, by_time=False)
        assert words[0].startswith(f"Same number of tiles: {pace}")
