"""The dock of the schedule: its rows, what it tells, and what the mouse points at."""

import json
import re
from dataclasses import replace

import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtTest import QTest

from simulator.base.assets import SCENARIOS
from simulator.code.code_lines import exemplars
from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.algorithms import ALGORITHMS
from simulator.study.compare import comparison_of
from simulator.study.schedule.blocks import count_all
from simulator.study.schedule.choices import CHOICES
from simulator.study.sweep import figures_of
from simulator.timing.duration import duration_of
from simulator.timing.orders import ORDERS
from tests.helpers.by_hand import choosing
from tests.helpers.drawn_words import drawn_words
from tests.helpers.painted import painted
from tests.helpers.runs import program_of, scenario
from tests.helpers.waiting import settle
from ui.kit.boxes import scene
from ui.look.durations import MODEL, duration_text, limit_text
from ui.look.theme import THEMES, Style
from ui.look.units import time_text
from ui.panels.schedule.study import SCHEDULE, schedule_state
from ui.panels.schedule.words import figures, told
from ui.panels.study_panel import whole

WHATS = CHOICES[0].values
PANEL, DEMO, LAYOUT = "schedule", "causal", "memory"


def drawn(state, size, theme="dark"):
    """Return a state with the words around it in a place of some size."""
    return scene(whole(SCHEDULE, state), Style(THEMES[theme]), QRectF(0, 0, *size))


def bar_at(panel, row, event):
    """Return the middle of a bar, once it is drawn."""
    events, bars = panel.state.shown[row].events, panel.picture.scene.where(row)
    lane = next(box for box, rect in panel.picture.scene.placed if rect == bars).lane
    along = (events.start[event] + events.end[event]) / 2 / panel.state.across(events)
    down = (events.top[event] + events.height[event] / 2) * lane
    return QPointF(bars.x() + along * bars.width(), bars.y() + down)


def test_a_batch_has_the_blocks_of_all_its_sequences():
    batch = load_scenario(SCENARIOS / "batch.toml")
    for sequence in (0, 2):
        program = program_of(with_values(batch, {"batch": {"sequence": sequence}}))
        state = schedule_state(program, "run", "index")
        (row,) = state.rows
        sizes = [count_all([each]) for each in row.schedule.programs]
        assert len(sizes) == len(batch.batch.lengths)
        assert len(row.events.names) == sum(sizes)
        assert f"sequence {sequence}, KV head 0" in told(state)
        assert "3 sequences of the batch run in the same launches" in state.sentences[0]
    state = schedule_state(program, "splits", "index")
    assert "for all sequences of the batch" in " ".join(state.sentences)


def test_it_shows_the_schedule_of_the_run_and_says_that_it_is_a_model(window, panel):
    program = window.session.trace.program
    exact = duration_of(program)
    (row,) = panel.state.rows
    assert row.schedule.seconds == exact.seconds
    assert len(row.events.names) == 4
    words = panel.accessibleDescription()
    assert words.startswith("A model, nothing measured")
    times = f"{duration_text(exact)}: {limit_text(exact)}"
    assert f"{times}, idle {100 * row.schedule.idle:.0f} %, 4 thread blocks" in words
    least = time_text(figures_of(program.workload).seconds)
    assert f"The data sheet allows {least} for requested bytes and FLOPs" in words
    assert "128 multiprocessors never have anything to do" in words


@pytest.mark.long
def test_the_block_at_work_is_that_of_the_cursor(window, panel, session):
    seen = set()
    for _ in range(4):
        visit = session.view.snapshot.visit
        assert told(panel.state).startswith(f"At work: head {visit.head}, row block {visit.i}: SM")
        seen.add(visit.i)
        window.actions_by_name["row_block_forward"].trigger()
        settle(window)
    assert len(seen) > 1


@pytest.mark.long
def test_every_view_and_order_has_its_rows(window, panel):
    for what, count in (("run", 1), ("orders", len(ORDERS)), ("algorithms", 3), ("splits", 1)):
        panel.take_choices(ChooseTable(schedule=what, blocks="longest"))
        settle(window)
        assert len(panel.state.rows) == count
        orders = {row.schedule.order for row in panel.state.rows}
        assert orders == (set(ORDERS) if what == "orders" else {"longest"})
    assert 'splits = "auto"' in panel.accessibleDescription()


@pytest.mark.long
def test_what_the_mouse_points_at_is_told(window, panel):
    picture = panel.picture
    QTest.mouseMove(picture, bar_at(panel, 0, 3).toPoint())
    settle(window)
    assert panel.state.pointed == (0, 3)
    # The longest of the head begins first, when the launch has started.
    assert told(panel.state).startswith("head 0, row block 3: SM 0, 4.0 µs to ")
    QTest.mouseMove(picture, picture.scene.where(0).toRect().bottomLeft())
    assert panel.state.pointed is None


def test_a_schedule_is_exported_and_set_beside_itself_as_a_trace(window, panel, tmp_path):
    path = tmp_path / "schedule.json"
    choosing(window.actions_by_name["export_schedule"].trigger, path)
    settle(window)
    choosing(window.actions_by_name["open_trace"].trigger, path)
    settle(window)
    model, trace = panel.state.shown
    assert json.loads(path.read_text())["otherData"]["note"] == " ".join(panel.state.sentences)
    assert trace.schedule is None
    assert trace.title == "schedule.json: a trace from elsewhere"
    assert sorted(trace.events.names) == sorted(model.events.names)
    # Times of a trace begin with its first event, when the launch has started.
    lasts = model.events.seconds - model.events.start.min()
    assert trace.events.seconds == pytest.approx(lasts, abs=1e-11)
    panel.take_choices(ChooseTable(schedule="orders"))
    settle(window)
    assert panel.state.shown[-1] is trace
    assert len(panel.state.shown) == len(ORDERS) + 1


@pytest.mark.long
def test_a_log_without_times_has_turns_beside_the_times(window, panel, tmp_path):
    path = tmp_path / "clc.log"
    lines = [f"[CLC] query sm={sm} cta={sm} (m_blk={n},h=1,b=0,s=0) valid=1"
             for n, sm in enumerate((4, 9, 4))]  # fmt: skip
    path.write_text("\n".join(lines), encoding="utf-8")
    alone = panel.state.seconds
    choosing(window.actions_by_name["open_trace"].trigger, path)
    settle(window)
    model, log = panel.state.shown
    assert log.title == "clc.log: a log from elsewhere"
    assert "the log has no times" in figures(panel.state, log)[0]
    assert panel.state.seconds == alone == model.events.seconds  # turns are no seconds
    QTest.mouseMove(panel.picture, bar_at(panel, 1, 2).toPoint())
    assert told(panel.state) == "m_blk 2, h 1, b 0, s 0, taken by cta 4: SM 4, turn 2"


@pytest.mark.long
def test_what_is_no_trace_is_said(window, panel, tmp_path):
    path = tmp_path / "other.json"
    path.write_text("{}", encoding="utf-8")
    choosing(window.actions_by_name["open_trace"].trigger, path)
    settle(window)
    assert "expected a list of events" in window.messages.text()
    assert len(panel.state.shown) == 1


LONG = {"nq": 1, "nk": 16384, "d": 64, "heads": 8, "rows": 16, "cols": 128, "dtype": "float16"}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_has_a_schedule(algorithm: str) -> None:
    state = schedule_state(exemplars(algorithm)[0], "run", "index")
    (row,) = state.rows
    assert row.schedule.seconds > 0
    assert len(state.working(row)) >= 1
    assert told(state).startswith("At work: ")


def test_one_query_and_a_long_cache_leave_a_gpu_empty_without_splits() -> None:
    program = program_of(scenario("flash2", kv_heads=2, **LONG))
    state = schedule_state(program, "splits", "index")
    one, auto = state.rows
    assert one.schedule.idle > 0.9
    assert auto.schedule.seconds < one.schedule.seconds / 10
    assert state.sentences[-1] == "bytes: 4.00 times as many not packed"
    assert "packing: 4 query heads share each KV head" in " ".join(state.sentences)


def test_a_split_without_keys_gives_a_multiprocessor_nothing_to_do() -> None:
    program = program_of(scenario("split-kv", nq=1, nk=3 * 64, d=16, rows=16, cols=64))
    program = program_of(with_values(program.workload.scenario, {"tiling": {"splits": 5}}))
    state = schedule_state(program, "run", "index")
    assert state.rows[0].events.used == 3
    said = "splits: 3 of 5 thread blocks with work for 132 multiprocessors: 129 multiprocessors"
    assert any(each.startswith(said) for each in state.sentences)


def test_splits_of_a_size_are_a_row_of_their_own() -> None:
    """They are dealt out otherwise than as many splits of equal size."""
    chosen = scenario("split-kv", nq=1, nk=9 * 64, d=16, rows=16, cols=64)
    program = program_of(with_values(chosen, {"tiling": {"split_size": 4 * 64}}))
    rows = schedule_state(program, "splits", "index").rows
    assert [row.title for row in rows] == [
        "Split-KV, 1 split", "Split-KV, 8 splits (auto)", "Split-KV, splits of 256 keys (this run)",
    ]  # fmt: skip
    assert [row.schedule.program.workload.splits for row in rows] == [1, 8, 3]
    assert rows[-1].schedule.program is program


CHOSEN = scenario("flash2", nq=2048, d=64, heads=8, rows=64, cols=64, dtype="float16")


def test_algorithms_have_the_times_of_compare_on_one_axis(qapp) -> None:
    state = schedule_state(program_of(CHOSEN), "algorithms", "model")
    totals = comparison_of(program_of(CHOSEN)).totals
    assert [row.schedule.seconds for row in state.rows] == [
        total.duration.seconds for total in totals
    ]
    assert {state.across(row.events) for row in state.rows} == {state.seconds}
    rect = QRectF(0, 0, 900, 600)
    said = " ".join(each.text for each in drawn_words(drawn(state, (900, 600)).paint, rect))
    assert said.count("≈") == 3
    assert MODEL.split(" (")[0] in said
    assert any("its rows are dealt out to 32." in words for words in state.sentences)


@pytest.mark.long
def test_times_that_are_not_modelled_are_neither_said_nor_drawn_on_one_axis(qapp) -> None:
    """Every reload counts as HBM there, so algorithms that reload would be far behind."""
    program = program_of(with_values(CHOSEN, {"attention": {"algorithm": "flash2-backward"}}))
    state = schedule_state(program, "algorithms", "model")
    rect = QRectF(0, 0, 900, 600)
    said = " ".join(each.text for each in drawn_words(drawn(state, (900, 600)).paint, rect))
    assert not re.search(r"≈|≥|\d (s|ms|µs|ns)\b", said)
    assert "times of algorithms cannot be compared" in said
    assert [state.across(row.events) for row in state.rows] == [
        row.events.end.max() for row in state.rows
    ]
    total = max(
        comparison_of(program).totals, key=lambda each: 1 - each.compulsory / each.counters.bytes
    )
    share = 100 * (1 - total.compulsory / total.counters.bytes)
    title = ALGORITHMS[total.algorithm].title
    assert state.sentences[0].endswith(
        f"though L2 may have it: {share:.0f} % of the bytes of {title}."
    )


def test_persistent_blocks_that_are_behind_are_explained() -> None:
    uneven, even = (
        scenario("flash2", nq=2048, d=64, heads=12, rows=128, cols=64, dtype="float16",
                 mask={"causal": causal}) for causal in (True, False)
    )  # fmt: skip
    for chosen in (uneven, even):
        state = schedule_state(program_of(chosen), "orders", "index")
        seconds = {row.schedule.order: row.schedule.seconds for row in state.rows}
        explained = "the start of each block, is not in the model" in " ".join(state.sentences)
        assert explained == (seconds["persistent"] > seconds["index"]) == (chosen is uneven)


def test_the_mark_alone_moves_with_the_cursor(qapp) -> None:
    causal = {"mask": {"causal": True}}
    program = program_of(scenario("flash2", nq=2048, d=64, heads=8, rows=64, cols=64, **causal))
    state = schedule_state(program, "run", "index")
    first, later = (
        painted(drawn(each, (600, 400)).paint, 600, 400)
        for each in (state, replace(state, visit=len(state.program) - 1))
    )
    marked = THEMES["dark"].current.lower()
    bars = drawn(state, (600, 400)).where(0).toAlignedRect()
    changed = [
        (x, y)
        for x in range(bars.left(), bars.right())
        for y in range(bars.top(), bars.bottom())
        if first.pixel(x, y) != later.pixel(x, y)
    ]
    assert changed
    assert all(marked in {each.pixelColor(*at).name() for each in (first, later)} for at in changed)


@pytest.mark.parametrize(
    ("rows", "heads", "words"),
    [
        (256, 1, "all start at once, and it ends last."),
        (2048, 5, "where it starts first, it still ends last."),  # few more blocks than places
        (4096, 8, "where it starts first, it does not end last."),
    ],
)
def test_the_longest_block_ends_last_or_not_as_is_said(rows: int, heads: int, words: str) -> None:
    sizes = {"nq": rows, "d": 64, "heads": heads, "rows": 64, "cols": 64, "dtype": "float16"}
    program = program_of(scenario("flash2", mask={"causal": True}, **sizes))
    for order in ORDERS:
        said = schedule_state(program, "run", order).sentences
        assert sum(each.endswith(words) for each in said if "longest thread" in each) == 1
    (row,) = schedule_state(program, "run", "longest").rows
    events = row.events
    long = events.weight == events.weight.max()
    assert (events.end[long].max() == events.end.max()) == words.endswith("ends last.")
    assert (events.start.max() == events.start.min()) == words.startswith("all start at once")


@pytest.mark.parametrize("what", WHATS)
def test_no_wave_is_told_as_none(what: str) -> None:
    state = schedule_state(program_of(load_scenario(SCENARIOS / "causal.toml")), what, "index")
    for row in state.rows:
        said = next(part for part in figures(state, row)[0].split(", ") if part.endswith(" waves"))
        waves = [float(each) for each in said.removesuffix(" waves").split(" + ")]
        exact = [
            len(each.blocks) / (row.schedule.gpu.sms * each.placed.slots)
            for each in row.schedule.launches
        ]
        assert min(waves) > 0
        assert waves == pytest.approx(exact, rel=0.05)
