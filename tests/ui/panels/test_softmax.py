"""The softmax picture puts the engine's numbers into the update, and none before they exist."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QPainter

from simulator import simulate
from simulator.base.assets import DEMO, SCENARIOS
from simulator.problem.scenario import load_scenario, parse_scenario, with_values
from simulator.program.algorithms import ALGORITHMS
from simulator.program.algorithms import ALGORITHMS as ALL
from simulator.program.playback import Cursor
from simulator.run.motion import Motion
from simulator.run.row_report import RowReport, row_report
from simulator.run.snapshot import Cell, Snapshot
from simulator.run.trace import Trace
from tests.helpers.demos import demo, every_op, snapshots
from tests.helpers.drawn_words import drawn_words, faults
from tests.helpers.painted import assert_tidy, painted, record_texts
from tests.helpers.runs import scenario, trace_of
from ui.look.formula import formula
from ui.look.names import weights_words
from ui.look.theme import DARK, Style, stage_label, stage_scale
from ui.look.units import number_text
from ui.panels.softmax import lines as lines_below
from ui.panels.softmax import painter as softmax
from ui.panels.softmax import rescale as rescale_painter
from ui.panels.softmax.lines import error_words, rescale_words
from ui.panels.softmax.model import (
    KeyState,
    row_scores,
    row_weights,
    running_maximum,
    score_bars,
    sum_bar,
)
from ui.panels.softmax.painter import hall_lines, key_names, legend_words, paint_softmax
from ui.panels.softmax.panel import SoftmaxPanel
from ui.panels.softmax.places import MIN_SIZE, height_of, legend_places, softmax_layout
from ui.panels.update_lines import NOT_YET, softmax_lines

pytestmark = pytest.mark.usefixtures("qapp")

# Which lines each op frames: numbers of the lines as they stand in the picture.
FRAMES = {
    "flash2": {"row max": [0, 1], "exponentials": [2], "row sum": [3], "rescale": [4],
               "accumulate": [4], "normalise": [4]},
    "flash1": {"row max": [0], "exponentials": [1], "row sum": [2], "combine": [3, 4, 5],
               "rescale": [6], "accumulate": [6]},
    "naive": {"scores": [0], "mask": [0], "row max": [1], "exponentials": [2], "row sum": [3],
              "normalise": [4], "accumulate": [5]},
    "split-kv": {"row max": [0, 1], "exponentials": [2], "row sum": [3], "rescale": [4],
                 "accumulate": [4], "normalise": [4]},
    "paged": {"row max": [0, 1], "exponentials": [2], "row sum": [3], "rescale": [4],
              "accumulate": [4], "normalise": [4]},
    "mla": {"row max": [0, 1], "exponentials": [2], "row sum": [3], "rescale": [4],
            "accumulate": [4], "normalise": [4]},
    "linear": {"features": [0], "read state": [1], "similarities": [2], "mask": [2],
               "row sum": [3], "accumulate": [4], "update state": [5], "normalise": [6]},
    "linear-recurrent": {"features": [0], "update state": [1], "read state": [2],
                         "normalise": [3]},
    "gla": {"features": [0], "decay state": [1], "update state": [2], "read state": [3]},
    "deltanet": {"features": [0], "recall": [1], "correct": [2], "update state": [3],
                 "read state": [4]},
    "row dots": {"row dots": [0]},
    "gradients": {"weights": [0], "value gradient": [1], "weight gradient": [2],
                  "score gradient": [3], "query gradient": [4], "key gradient": [5],
                  "scale keys": [6]},
    "convert": {"convert": [0]},
    "dV": {"value gradient": [0]}, "dP": {"weight gradient": [0]},
    "dS": {"weighted means": [0], "score gradient": [1]},
    "dQ": {"query gradient": [0], "convert": [1]},
    "dK": {"key gradient": [0], "scale keys": [1]},
    "combine": {"row max": [0], "exponentials": [1], "row sum": [2], "accumulate": [3],
                "normalise": [4]},
}  # fmt: skip


def with_reports(trace: Trace) -> Iterator[tuple[Snapshot, RowReport]]:
    for now in every_op(trace):
        rows = now.visit.rows
        yield now, row_report(now, rows.start + now.cursor.visit % len(rows))


def words(
    now: Snapshot, report: RowReport, size: tuple[float, float] = (440, 250), **more: int
) -> str:
    """Return the words of a picture one after another, which are whole and apart."""
    rect = QRectF(0, 0, *size)

    def paint(painter: QPainter) -> None:
        paint_softmax(painter, now, report, Style(DARK), rect, **more)

    # Of a long row of numbers the first are said, which is no cut.
    drawn = [replace(one, text=one.text.replace("…]", "]")) for one in drawn_words(paint, rect)]
    assert not faults(drawn, rect)
    return "".join(one.text for one in drawn)


def numbers_in(text: str) -> list[str]:
    """Return the numbers that a line shows, in order."""
    return re.findall(r"−?∞|−?\d+(?:\.\d+)?(?:e−?\d+)?", text)


def assert_shown(value: float, shown: str, digits: int = 3) -> None:
    """Hold that a number is shown as the engine has it, to the digits of the picture.

    In a row of numbers an exact zero is one digit: 0.00 would look rounded.
    """
    exact = digits == 2 and value == 0
    assert shown == ("0" if exact else number_text(float(value), digits))


def frames(name: str, now: Snapshot) -> dict[str, list[int]]:
    """Return the lines of each op: of the algorithm, or where it joins splits, of the joining."""
    return FRAMES.get(now.launch.name) or FRAMES[name]


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_each_op_frames_its_lines(name):
    for now, report in with_reports(demo(name)):
        lines = softmax_lines(now, report)
        current = [n for n, line in enumerate(lines) if line.current]
        assert current == frames(name, now).get(now.op.name, [])
        assert all(line.reached for line in lines if line.current)


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_no_number_before_it_exists(name):
    for now, report in with_reports(demo(name)):
        for n, line in enumerate(softmax_lines(now, report)):
            reached = any(n in frames(name, now).get(op, []) for op in now.done)
            assert line.reached == reached
            if not reached:
                assert len(line.texts) == 1
                assert line.texts[0] == NOT_YET or line.texts[0].startswith("in launch ")


def test_flash2_numbers():
    for now, report in with_reports(demo("flash2")):
        t, r = now.tile, report.row - now.visit.rows.start
        m, alpha, p, total, o = (numbers_in(line.texts[0]) for line in softmax_lines(now, report))
        if "row max" in now.done:
            for shown, value in zip(m, (t.m_prev, t.m_tile, t.m), strict=True):
                assert_shown(value[r], shown)
            for shown, value in zip(alpha, (t.m_prev, t.m, t.alpha), strict=True):
                # Taken away, so in brackets where negative: the sign is seen all the same.
                assert_shown(value[r], shown)
        if "exponentials" in now.done:
            for shown, weight in zip(p, t.p[r], strict=False):
                assert_shown(weight, shown, 2)
        if "row sum" in now.done:
            for shown, value in zip(total, (t.alpha, t.l_prev, t.l_tile, t.l), strict=True):
                assert_shown(value[r], shown)
        if "normalise" in now.done:
            assert_shown(t.o[r, 0], o[0], 2)
            assert_shown(t.l[r], o[3])
            assert_shown(t.o[r, 0] / t.l[r], o[4], 2)
        elif "accumulate" in now.done:
            assert_shown(t.alpha[r], o[0])
            assert_shown(t.o_prev[r, 0], o[1], 2)
            assert_shown(t.o[r, 0], o[7], 2)
            added = t.p[r] @ now.v[now.visit.cols.start : now.visit.cols.stop, 0]
            assert_shown(added, o[4], 2)
        elif "rescale" in now.done:
            assert len(o) == 4
            assert_shown(t.alpha[r], o[0])


def test_a_maximum_that_is_kept_says_why_in_its_column():
    seen = set()
    for snapshot, report in with_reports(simulate(SCENARIOS / "rescale-threshold.toml")):
        m, alpha = softmax_lines(snapshot, report)[:2]
        if m.reached:
            assert m.texts[0].index(" = ") == alpha.texts[0].index(" = ")
            seen.add(m.texts[0].split()[0])
    assert "kept:" in seen


def test_flash1_numbers():
    for now, report in with_reports(demo("flash1")):
        t, r = now.tile, report.row - now.visit.rows.start
        shown = [numbers_in(line.texts[0]) for line in softmax_lines(now, report)]
        if "row max" in now.done:
            assert_shown(t.m_tile[r], shown[0][-1])
        if "row sum" in now.done:
            assert_shown(t.l_tile[r], shown[2][-1])
        if "combine" in now.done:
            for got, value in zip(shown[3], (t.m_prev, t.m_tile, t.m), strict=True):
                assert_shown(value[r], got)
            for got, value in zip(shown[4], (t.alpha, t.beta), strict=True):
                assert_shown(value[r], got)
            terms = (t.alpha, t.l_prev, t.beta, t.l_tile, t.l)
            for got, value in zip(shown[5], terms, strict=True):
                assert_shown(value[r], got)
        if "rescale" in now.done:
            assert_shown(now.rescale_factor[r], shown[6][0])
            assert_shown(t.o_prev[r, 0], shown[6][1], 2)
        if "accumulate" in now.done:
            assert_shown(t.beta[r] / t.l[r], shown[6][4])
            assert_shown(t.o[r, 0], shown[6][8], 2)


def test_naive_numbers():
    for now, report in with_reports(demo("naive")):
        t, r = now.tile, report.row - now.visit.rows.start
        shown = [numbers_in(line.texts[0]) for line in softmax_lines(now, report)]
        if "scores" in now.done:
            assert_shown(t.s[r, 0], shown[0][0], 2)
        if "row max" in now.done:
            assert_shown(t.m[r], shown[1][-1])
        if "row sum" in now.done:
            assert_shown(t.l[r], shown[3][-1])
        if "normalise" in now.done:
            assert_shown(t.p[r, 0] / t.l[r], shown[4][4], 2)
        if "accumulate" in now.done:
            assert_shown(t.o[r, 0], shown[5][6], 2)


def test_running_maximum_jumps_and_leaves_its_old_place():
    jumps = 0
    for now, report in with_reports(demo("flash2")):
        r = report.row - now.visit.rows.start
        got = running_maximum(now, report)
        if now.visit.first and "initialise" not in now.done:
            assert got is None
            continue
        assert got.now == (now.tile.m if "row max" in now.done else now.tile.m_prev)[r]
        if got.old is not None:
            jumps += 1
            assert got.old == now.tile.m_prev[r] < got.now
            assert "row max" in now.done
    assert jumps


def test_bars_stand_for_every_key_once():
    for now in snapshots():
        report = row_report(now, now.visit.rows.stop - 1)
        for most in (7, 50, 400):
            bars = score_bars(now, report, most)
            assert len(bars.values) <= most
            assert bars.values.max() == row_scores(now, report).max()
            assert bars.low <= 0 <= bars.high
            per, keys = bars.keys_per_bar, row_scores(now, report)
            keys = [keys[n : n + per] for n in range(0, len(keys), per)]
            assert [part.max() for part in keys] == bars.values.tolist()
            hidden = [bool((part == -np.inf).all()) for part in keys]
            assert hidden == (bars.states == KeyState.HIDDEN).tolist()


def test_a_tile_holds_all_its_scores_until_the_mask():
    trace = demo("causal")
    visit = next(
        n for n in range(len(trace.program)) if trace.program.visit(n).kind.name == "PARTIAL"
    )
    names = [op.name for op in trace.snapshot(visit).ops]
    before, after = (trace.snapshot(visit, names.index(op)) for op in ("scores", "mask"))
    cols, row = before.visit.cols, before.visit.rows.start  # sees its first key alone
    told = row_report(before, row)
    bars = score_bars(before, told, 400)
    assert bars.values[cols.start : cols.stop].tolist() == before.scores[0].tolist()
    assert (bars.states[cols.start : cols.stop] == KeyState.CURRENT).all()
    assert (bars.states[cols.stop :] == KeyState.HIDDEN).all()
    masked = score_bars(after, row_report(after, row), 400)
    assert masked.values[cols.start : cols.stop].tolist() == after.scores[0].tolist()
    assert (masked.states[cols.start + 1 :] == KeyState.HIDDEN).all()


def test_legend_words_are_about_the_keys_of_their_shade():
    now = demo("causal").snapshot(4, 1)  # tile (2, 1)
    report = row_report(now, 41)
    words = {word.text: word.keys for word in legend_words(now, report)}
    assert words == {
        "seen": (0, 16), "tile j = 1": (16, 32), "not computed yet": (32, 42),
        "hidden by the mask": (42, 64),
    }  # fmt: skip


@pytest.mark.parametrize("keys", [48, 1024])
def test_a_score_that_is_not_computed_yet_is_an_empty_outline(keys):
    tables = {
        "attention": {"seqlen_q": 16, "seqlen_k": keys, "head_dim": 16},
        "tiling": {"rows": 8, "cols": 16},
    }
    now = simulate(parse_scenario(tables)).snapshot(1, 1)
    report, style, rect = row_report(now, 3), Style(DARK), QRectF(0, 0, 560, 400)
    image = painted(lambda painter: paint_softmax(painter, now, report, style, rect), 560, 400)
    plot = softmax_layout(
        rect, style, softmax_lines(now, report), weights=True, names=key_names(now)
    ).plot
    bars = score_bars(now, report, int(plot.width()))
    ink = {KeyState.SEEN: 0, KeyState.LATER: 0}
    share = dict.fromkeys(ink, 0.0)
    for n, (value, state) in enumerate(zip(bars.values, bars.states, strict=True)):
        if state in ink and value > 0.1 * bars.high:
            x = plot.x() + (n + 0.4) * plot.width() / len(bars.values)
            y = plot.bottom() - (value / 2 - bars.low) / (bars.high - bars.low) * plot.height()
            ink[KeyState(state)] += 1
            empty = image.pixelColor(round(x), round(y)) == QColor("#000000")
            share[KeyState(state)] += not empty
    assert min(ink.values()) > 0
    assert share[KeyState.SEEN] / ink[KeyState.SEEN] > 0.9
    assert share[KeyState.LATER] / ink[KeyState.LATER] < 0.1


@given(st.lists(st.tuples(st.floats(10, 90), st.floats(-50, 500)), min_size=1, max_size=4))
def test_legend_never_overlaps(words):
    words.sort(key=lambda word: word[1])
    widths = [width for width, _ in words]
    starts = legend_places(widths, [centre for _, centre in words], 0, 440, 12)
    ends = [start + width for start, width in zip(starts, widths, strict=True)]
    assert starts[0] >= -1e-9
    assert ends[-1] <= 440 + 1e-9
    assert all(start >= end + 12 - 1e-9 for start, end in zip(starts[1:], ends, strict=False))


@given(
    st.integers(0, 10**6), st.floats(MIN_SIZE.width(), 1500), st.floats(MIN_SIZE.height(), 900),
    st.floats(1, 2), st.floats(0, 1),
)  # fmt: skip
def test_no_text_collides(number, width, height, scale, share):
    at = number % len(snapshots())
    now, before = snapshots()[at], snapshots()[at - 1]
    motion = Motion(before, now) if before.program is now.program else None
    report = row_report(now, now.visit.rows.start + number % len(now.visit.rows))
    rect = QRectF(3, 5, width, height)
    style = Style(DARK, scale)
    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, softmax, lines_below)
        painted(lambda p: paint_softmax(p, now, report, style, rect, motion=motion, share=share))
    assert_tidy(drawn, rect)
    assert any(f"row {report.row}" in one.text for one in drawn)


@pytest.mark.parametrize("scale", [0.125, 1.0, 8.0, 900.0, 40_000.0])
def test_no_number_of_the_axis_is_cut_off(scale):
    values = {"attention": {"scale": scale, "dtype": "float32"}}
    trace = simulate(with_values(load_scenario(SCENARIOS / "large-logits.toml"), values))
    now = trace.snapshot(0, 2)
    for row in now.visit.rows:
        assert words(now, row_report(now, row))


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["flash2", "naive"])
@pytest.mark.parametrize("size", [1e18, 1.5e19, 3e19], ids=["large", "some infinite", "infinite"])
def test_scores_that_leave_float32_are_told(monkeypatch, algorithm, size):
    """Bars end at the edge of the plot; how many scores have no height is said."""
    trace = trace_of(scenario(algorithm, nq=8, d=4, rows=4, cols=4))
    q, k = (size * x / np.abs(x).max() for x in (trace.inputs.q, trace.inputs.k))
    with np.errstate(all="ignore"):
        trace = trace_of(trace.workload.scenario, replace(trace.inputs, q=q, k=k))
        rect, drawn = QRectF(0, 0, 440, 250), record_texts(monkeypatch, softmax, lines_below)
        for now in every_op(trace):
            for row in now.visit.rows:
                drawn.clear()
                report = row_report(now, row)
                painted(lambda p, n=now, r=report: paint_softmax(p, n, r, Style(DARK), rect))
                assert_tidy(drawn, rect)
                scores = row_scores(now, report)
                lost = int((np.isnan(scores) | (scores == np.inf)).sum())
                said = [one.text for one in drawn if "infinite or NaN" in one.text]
                assert said == [f"{lost} of 8 scores are infinite or NaN"] * bool(lost)


@pytest.mark.long
@pytest.mark.parametrize("sink", [-9.0, 2.0, 40.0])
def test_the_axis_has_room_for_a_maximum_that_no_key_has(monkeypatch, sink):
    trace = trace_of(scenario(nq=8, d=4, rows=4, cols=4, scores={"sink_logits": [sink]}))
    rect, drawn = QRectF(0, 0, 440, 250), record_texts(monkeypatch, softmax, lines_below)
    seen = set()
    for now in every_op(trace):
        for row in now.visit.rows:
            drawn.clear()
            report = row_report(now, row)
            painted(lambda p, n=now, r=report: paint_softmax(p, n, r, Style(DARK), rect))
            assert_tidy(drawn, rect)
            bars, maximum = score_bars(now, report, 400), running_maximum(now, report)
            assert maximum is None or bars.low <= maximum.now <= bars.high
            seen.add((row, f"{bars.low:.3g}", f"{bars.high:.3g}"))
    assert len(seen) == 8  # an axis does not change while a row is computed


def test_on_stage_the_number_of_the_maximum_stands_on_no_bar():
    trace, rect, row = simulate(load_scenario(DEMO)), QRectF(0, 0, 640, 760), 8
    style = Style(DARK, stage_scale(1920, 1080), stage_label(1920, 1080))
    for now in every_op(trace):
        report = row_report(now, row)
        maximum = running_maximum(now, report)
        if row not in now.visit.rows or maximum is None or not np.isfinite(maximum.now):
            continue
        lines, weighs = hall_lines(softmax_lines(now, report)), row_weights(now, report) is not None
        layout = softmax_layout(rect, style, lines, weights=weighs, names=key_names(now))
        plot, bars = layout.plot, score_bars(now, report, 400)
        drawn = drawn_words(lambda p, n=now, r=report: paint_softmax(p, n, r, style, rect), rect)
        place = next(
            one.ink for one in drawn
            if one.text == number_text(maximum.now, 3) and one.ink.bottom() < plot.bottom()
        )  # fmt: skip
        place.setLeft(place.left() - formula("m", round(style.px(12))).width)  # the letter before
        for n, value in enumerate(bars.values):
            slot = plot.width() / len(bars.values)
            bar = QRectF(plot.x() + n * slot, height_of(bars, plot, value), slot, plot.height())
            assert bars.states[n] == KeyState.HIDDEN or not bar.intersects(place), (now.cursor, n)


def test_a_small_number_of_the_axis_is_whole_or_left_out():
    trace = simulate(load_scenario(SCENARIOS / "deltanet.toml"))
    for visit in range(len(trace.program)):
        now = trace.snapshot(visit, 2)
        assert words(now, row_report(now, now.visit.rows.start))


def test_a_row_that_sees_nothing_says_so(monkeypatch):
    # Bottom-right aligned: of 8 queries and 6 keys the first two see nothing.
    scenario = with_values(
        load_scenario(SCENARIOS / "causal.toml"),
        {"attention": {"seqlen_q": 8, "seqlen_k": 6}, "tiling": {"rows": 4, "cols": 4}},
    )
    trace = simulate(scenario)
    now = trace.snapshot(0)
    rect = QRectF(0, 0, 400, 300)
    drawn = record_texts(monkeypatch, softmax, lines_below)
    for row, blind in ((0, True), (1, True), (2, False)):
        drawn.clear()
        report = row_report(now, row)
        painted(lambda p, report=report: paint_softmax(p, now, report, Style(DARK), rect))
        words = f"row {row} sees no key: O = 0, lse = −∞"
        assert any(one.text == words for one in drawn) is blind
        assert_tidy(drawn, rect)


def test_a_row_that_sees_nothing_has_no_bar_of_a_sum_with_a_fault_either():
    causal = {"attention": {"seqlen_q": 8, "seqlen_k": 6}, "tiling": {"rows": 4, "cols": 4}}
    chosen = with_values(
        load_scenario(SCENARIOS / "causal.toml"), {**causal, "faults": {"no_maximum": True}}
    )
    rect = QRectF(0, 0, 400, 300)
    for now in every_op(simulate(chosen)):
        for row in now.visit.rows:
            report = row_report(now, row)
            painted(lambda p, n=now, r=report: paint_softmax(p, n, r, Style(DARK), rect))
            bar = sum_bar(now, report)
            assert bar is None or bar.most > 0


@pytest.mark.parametrize("name", [name for name, own in ALL.items() if own.backward])
def test_a_backward_pass_has_scores_and_no_error_of_o(name):
    trace = demo(name)
    for visit, op in ((0, 0), (len(trace) // 2, 2), (len(trace) - 1, 1)):
        now = trace.snapshot(visit, op)
        said = words(now, row_report(now, now.visit.rows.start), (700, 400))
        assert "scores of this row" in said
        assert weights_words(trace.program.algorithm)[0] in said
        assert "rescale" not in said
        assert "output" not in said


def test_scores_are_not_seen_before_a_launch_over_tiles():
    trace = demo("flash2-backward")
    now = trace.snapshot(0)
    report = row_report(now, 0)
    assert now.launch.whole_rows
    assert not report.seen.any()
    assert legend_words(now, report)[0].state == KeyState.LATER
    now = trace.snapshot(len(trace) - 1)  # the scores have been used by then
    words = legend_words(now, row_report(now, now.visit.rows.start))
    assert [(word.text, word.state) for word in words] == [("the whole row", KeyState.SEEN)]


def test_error_is_that_of_the_report_and_never_large():
    said = set()
    for name in ("flash1", "flash2"):
        for now, report in with_reports(demo(name)):
            words = error_words(now, report)[0]
            said.add(report.error is None)
            if report.error is None:
                assert "—" in words
            else:
                assert number_text(report.error) in words
                assert report.error < 2e-3  # O is rounded to float16 at the end
    assert said == {True, False}


def test_rescale_is_the_factor_of_the_engine():
    for now, report in with_reports(demo("flash1")):
        words, r = rescale_words(now, report), report.row - now.visit.rows.start
        if "combine" in now.done:
            assert words == f"rescale factor = {number_text(float(now.rescale_factor[r]))}"
        else:
            assert words.endswith("= —")
    now = demo("naive").snapshot(0)
    assert rescale_words(now, row_report(now, 0)) == "no rescale"


def test_formulas_are_typeset_at_every_size():
    small, large = formula(r"\tfrac{\alpha}{\ell}", 10), formula(r"\tfrac{\alpha}{\ell}", 30)
    assert large.width == pytest.approx(3 * small.width)
    assert small.ascent > 0
    assert small.descent > 0


def test_panel_shows_and_moves(qtbot):
    panel = SoftmaxPanel()
    panel.resize(420, 312)
    panel.show()
    trace = demo("flash2")
    names = [op.name for op in trace.program.ops(1)]
    for name, moves in (("scores", True), ("row max", True), ("exponentials", False)):
        op = names.index(name)
        now = trace.snapshot(1, op)
        rises = now.tile.m > now.tile.m_prev
        report = row_report(now, now.visit.rows.start + int(np.argmax(rises)))
        panel.show_snapshot(now, report, trace.snapshot(1, op - 1))
        pictures = []
        for share in (0.3, 0.6, 1.0):
            panel.show_share(share)
            pictures.append(panel.grab().toImage())
        assert (pictures[0] != pictures[1] != pictures[2]) is moves, name
    panel.grab()
    assert panel.accessibleDescription().startswith(f"row {report.row}, ")
    panel.close()
    panel.deleteLater()


def test_a_row_of_another_block_is_named_not_replaced_in_silence(open_window):
    window = open_window("flash2")
    session, panel = window.session, window.docks.panel(SoftmaxPanel)
    assert session.trace is not None

    def said() -> tuple[int, str]:
        session.settle()
        return panel.report.row, panel.accessibleDescription()

    session.go(Cursor(0, 3))
    assert said()[0] == 0
    assert "row block" not in said()[1]  # nobody has chosen another
    w = session.trace.workload
    session.select(Cell("S", 9, 1))
    row, words = said()
    assert row == w.rows - 1
    assert f"row 9 “{w.query_token(9)}” is not in this row block: double-click its tile" in words
    with pytest.MonkeyPatch.context() as patch:
        drawn = record_texts(patch, softmax, lines_below)
        panel.grab()
    assert any("row 9" in one.text and "not in this row block" in one.text for one in drawn)
    there = session.trace.program.index(0, 9 // w.rows, 0)
    assert there is not None
    session.go(Cursor(there, 3))  # as a double click does
    assert said()[0] == 9
    assert "not in this" not in said()[1]
    session.go(Cursor(0, 3))  # it was explained: what comes next is the run's
    assert "not in this" not in said()[1]


@pytest.mark.parametrize("width", [MIN_SIZE.width(), 440, 800])
def test_words_on_a_row_of_another_block_fit(width):
    now = demo("flash2").snapshot(0, 3)
    said = words(now, row_report(now, 9), (width, 300), elsewhere=9)
    assert re.search("row 9.* block", said)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("fault", ["drop_previous_maximum", "forget_alpha", ""])
def test_a_maximum_that_falls_or_is_infinite_is_painted_on_its_way(monkeypatch, fault):
    """Nothing stands above a maximum that a fault has lowered, nor above one without an end."""
    chosen = scenario("flash2", nq=8, d=4, rows=4, cols=4)
    trace = trace_of(with_values(chosen, {"faults": {fault: True}} if fault else {}))
    size = 1.0 if fault else 1e30
    q, k = (size * x / np.abs(x).max() for x in (trace.inputs.q, trace.inputs.k))
    with np.errstate(all="ignore"):
        trace = trace_of(trace.workload.scenario, replace(trace.inputs, q=q, k=k))
        rect, drawn = QRectF(0, 0, 440, 400), record_texts(monkeypatch, rescale_painter)
        states = list(every_op(trace))
        for before, now in itertools.pairwise(states):
            motion = Motion(before, now)
            for share in (0.1, 0.5, 0.9):
                report = row_report(now, now.visit.rows.start)
                painted(
                    lambda p, n=now, r=report, m=motion, s=share: paint_softmax(
                        p, n, r, Style(DARK), rect, motion=m, share=s
                    )
                )
    assert not [each.text for each in drawn if each.text.startswith(("+−", "+∞", "+NaN"))]
