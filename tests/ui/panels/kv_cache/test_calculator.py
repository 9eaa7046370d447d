"""The KV cache dock in the window: its figures are the simulator's, tokens come one by one."""

import re
from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QStyle, QStyleOptionSlider

from simulator.problem.hardware import gpus
from simulator.problem.models import AttentionModel, find_model, models
from simulator.problem.scenario import with_values
from simulator.study.kv_cache.counts import (
    ELEMENT_TYPES,
    cache_bytes,
    decode_step,
    fit,
    weight_bytes,
)
from ui.look.theme import DARK, Style
from ui.look.units import count_text, decimal_bytes_text, time_text
from ui.panels.heads.painter import model_state, rows
from ui.panels.kv_cache.painter import (
    cache_state,
    context_of,
    count_words,
    fit_words,
    group_words,
    shown_tokens,
    state_words,
    step_words,
    time_words,
)
from ui.panels.kv_cache.plot import CONVENTION_NAMES, CacheChoice, cache_plot, ways
from ui.plots.layout import plot_layout

H100 = gpus()["H100-SXM"]


@pytest.fixture
def window(open_window, qapp):
    window = open_window("kv-cache", (1280, 720))
    window.desk.take("cache")
    qapp.processEvents()
    window.session.settle()
    return window


@pytest.fixture
def panel(window):
    return window.docks.panel("cache").calculator


def pick(panel, name, value) -> None:
    """Choose in a list by keys."""
    box = panel.bar.lists[name]
    box.setFocus()
    steps = box.findData(value) - box.currentIndex()
    for _ in range(abs(steps)):
        QTest.keyClick(box, Qt.Key.Key_Down if steps > 0 else Qt.Key.Key_Up)
    assert box.currentData() == value


def press(panel, name, value) -> None:
    QTest.mouseClick(panel.bar.buttons[name, value], Qt.MouseButton.LeftButton)


def handle(slider) -> QPoint:
    option = QStyleOptionSlider()
    slider.initStyleOption(option)
    part = QStyle.SubControl.SC_SliderHandle
    control = QStyle.ComplexControl.CC_Slider
    return slider.style().subControlRect(control, option, part, slider).center()


def test_the_curves_are_the_simulators(panel):
    model = panel.plot.model
    llama = models()["Llama-3-8B"]
    assert [curve.name for curve in model.curves] == [
        "if MHA 32",
        "GQA 8, its own",
        "if MQA 1",
        "if MLA 512 + 64",
        f"if window {count_text(4096)}",
    ]
    for curve, way in zip(model.curves, ways(llama), strict=True):
        for x, y in zip(curve.xs, curve.ys, strict=True):
            assert y == cache_bytes(way.model, int(x)).window_capped
    own = [curve for curve in model.curves if "own" in curve.name]
    assert [curve.short for curve in own] == ["GQA (own)"]
    levels = {level.value for level in model.levels}
    assert {weight_bytes(llama), H100.memory_bytes, 4096} == levels
    assert model.marks[0].y == 128 * 1024 * 4096  # 128 KiB a token


@pytest.mark.parametrize(
    ("name", "tokens", "convention", "shown"),
    [
        ("Llama-2-70B", 4096, "logical", "1.34 GB"),
        ("Llama-2-70B", 32768, "window_capped", "10.74 GB"),
        ("Gemma-3-27B", 131072, "window_capped", "11.17 GB"),
        ("Gemma-3-27B", 131072, "logical", "66.57 GB"),
    ],
)
def test_published_figures_are_shown(panel, name, tokens, convention, shown):
    pick(panel, "model", name)
    press(panel, "convention", convention)
    panel.take_tokens(tokens)
    assert panel.plot.model.marks[0].label == shown
    words = panel.picture.accessibleDescription()
    said = CONVENTION_NAMES[convention] if name.startswith("Gemma") else "all tokens"
    assert f"{said}: {shown}" in words
    assert said in panel.plot.model.y.title
    assert panel.plot.model.note.startswith(said)


def test_every_choice_counts(panel):
    pick(panel, "model", "gpt-oss-120b")
    pick(panel, "cache type", "fp8")
    pick(panel, "batch", "16")
    pick(panel, "page size", "64")
    pick(panel, "weights type", "int4")
    pick(panel, "GPU", "H200")
    press(panel, "axes", "linear")
    press(panel, "convention", "allocated")
    model, gpu = models()["gpt-oss-120b"], gpus()["H200"]
    assert panel.choice == CacheChoice(model, gpu, 4096, 16, "fp8", "int4", "allocated", 64, False)
    counts = cache_bytes(model, 4096, "fp8", 16, 64)
    assert panel.plot.model.marks[0].y == counts.allocated
    for curve, way in zip(panel.plot.model.curves, ways(model), strict=True):
        for x, y, details in zip(curve.xs, curve.ys, curve.details, strict=True):
            there = cache_bytes(way.model, int(x), "fp8", 16, 64)
            assert y == there.allocated
            said = "logical" if way.model.windowed_layers else "all tokens"
            assert f"{said}: {decimal_bytes_text(there.logical)}" in " ".join(details)
    words = panel.picture.accessibleDescription()
    for key, name in CONVENTION_NAMES.items():
        assert f"{name}: {decimal_bytes_text(getattr(counts, key))}" in words
    users = fit(model, 4096, gpu, "fp8", 64, "int4").sequences
    assert f"{count_text(users)} sequences of {count_text(4096)} tokens fit one H200" in words
    step = decode_step(model, 4096, "fp8", 16, "int4")
    assert f"{decimal_bytes_text(step.written)} written" in words
    assert f"{decimal_bytes_text(step.read)} read" in words
    assert not re.search(r"\d [KMGT]iB", words)  # all in powers of ten
    assert time_text(step.cache_seconds(gpu)) in words
    assert (
        f"{count_text(round(step.tokens_per_second(gpu, 1)))} tokens/s on one H200 (upper" in words
    )
    assert not panel.plot.model.x.log
    assert not panel.plot.model.y.log


def test_decoding_gives_one_token_after_another(panel, qtbot):
    panel.take_tokens(3)
    seen = []
    panel._clock.timeout.connect(lambda: seen.append(panel.choice.tokens))  # after its own slot
    QTest.mouseClick(panel.play_button, Qt.MouseButton.LeftButton)
    assert panel.playing
    qtbot.waitUntil(lambda: len(seen) >= 4)
    QTest.mouseClick(panel.play_button, Qt.MouseButton.LeftButton)
    assert not panel.playing
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    tokens = panel.choice.tokens
    assert panel.state.step == decode_step(panel.choice.model, tokens)


def test_decoding_stops_when_it_is_not_seen(window, panel):
    panel.play(True)
    window.docks["cache"].hide()
    assert not panel.playing
    assert not panel.play_button.isChecked()


def test_keys_and_mouse_move_the_tokens(panel):
    slider = panel.slider
    slider.setFocus()
    for key, expected in (
        (Qt.Key.Key_Up, 4097), (Qt.Key.Key_Down, 4096), (Qt.Key.Key_PageUp, 8192),
        (Qt.Key.Key_PageDown, 4096),
    ):  # fmt: skip
        QTest.keyClick(slider, key)
        assert panel.choice.tokens == expected
    start = handle(slider)
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(slider, QPoint(slider.width() // 5, start.y()))
    QTest.mouseRelease(
        slider, Qt.MouseButton.LeftButton, pos=QPoint(slider.width() // 5, start.y())
    )
    assert panel.choice.tokens < 64
    across = [level for level in panel.plot.model.levels if not level.across]
    assert [level.value for level in across] == [panel.choice.tokens]
    assert panel.state == cache_state(panel.choice)
    panel.take_tokens(10**9)
    assert panel.choice.tokens == panel.choice.most
    panel.take_tokens(0)
    assert panel.choice.tokens == 1


def test_a_click_on_a_point_takes_its_tokens(panel):
    curve = panel.plot.model.curves[0]
    at = panel.plot.where(curve.xs[10], curve.ys[10]).toPoint()
    QTest.mouseMove(panel.plot.surface, at)
    assert "allocated" in " ".join(panel.plot.spot.details)
    QTest.mouseClick(panel.plot.surface, Qt.MouseButton.LeftButton, pos=at)
    assert panel.choice.tokens == 1024


def test_another_gpu_of_the_scenario_is_taken(window, panel):
    assert panel.choice.gpu.name == "H100-SXM"
    pick(panel, "GPU", "T4")
    scenario = window.session.scenario
    assert scenario.hardware.preset == "H100-SXM"  # looking is not changing
    window.session.propose(with_values(scenario, {"hardware": {"preset": "H200"}}), "H200")
    window.session.settle()
    assert panel.choice.gpu.name == "H200"


def test_own_models_are_read_and_wrong_ones_are_told(window, panel, tmp_path):
    own = tmp_path / "mine.toml"
    own.write_text("layers = 2\nheads = 4\nkv_heads = 2\nhead_dim = 8\n")
    panel.open_model(own)
    assert panel.choice.model.name == "mine"
    assert panel.plot.model.marks[0].y == cache_bytes(panel.choice.model, 4096).window_capped
    assert panel.bar.lists["model"].currentText() == "mine"
    assert "not known" in fit_words(panel.state)[0]
    assert "the weights are not known" in time_words(panel.state)[0]
    assert len(panel.plot.model.levels) == 2
    own.write_text("layers = 2\nheads = 4\nkv_heads = 3\nhead_dim = 8\n")
    told = []
    window.session.refused.connect(told.append)
    before = panel.choice
    panel.open_model(own)
    assert panel.choice is before
    assert "kv_heads" in str(told[0])
    assert "3" in str(told[0])


@pytest.mark.sweep(keep=36)
@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
@pytest.mark.parametrize("name", models())
def test_every_model_has_a_plot_and_words(name, dtype):
    choice = CacheChoice(models()[name], H100, dtype=dtype)
    for log in (True, False):
        plot = cache_plot(replace(choice, log=log))
        assert sum("own" in curve.name for curve in plot.curves) == 1
        assert {way.name for way in ways(choice.model)} >= {"MHA", "MQA", "MLA", "windowed"}
    assert name in state_words(cache_state(choice))


@pytest.mark.parametrize("convention", CONVENTION_NAMES)
@pytest.mark.parametrize("name", models())
def test_a_model_without_a_window_is_not_called_capped(name, convention):
    choice = CacheChoice(models()[name], H100, convention=convention)
    plot, words = cache_plot(choice), state_words(cache_state(choice))
    capped = bool(choice.model.windowed_layers)
    assert ("window-capped" in words) == capped
    assert ("window-capped" in f"{plot.y.title} {plot.note} {plot.summary}") == (
        capped and convention != "logical"
    )
    assert ("window-capped" in " ".join(plot.marks[0].details)) == capped
    assert ("all tokens" in count_words(cache_state(choice))[0][0]) != capped
    assert [on for _, on in count_words(cache_state(choice))].count(True) == 1


@pytest.mark.parametrize("gpu", gpus())
@pytest.mark.parametrize("name", models())
def test_tokens_a_second_are_those_of_gpus_that_hold_the_model(name, gpu):
    """Llama-2-70B on one H100 was said to give 24 tokens/s, where it does not run."""
    model, chosen = models()[name], gpus()[gpu]
    for tokens, batch, dtype in ((1, 1, "float16"), (131072, 1, "float16"), (4096, 64, "int8")):
        choice = CacheChoice(model, chosen, tokens, batch, dtype, dtype)
        state = cache_state(choice)
        found = re.search(
            r"at most ([\d.,\u2009]+) tokens/s on (one|the ([\d\u2009]+) ×) ", time_words(state)[0]
        )
        if model.params_billion is None:
            assert found is None
            continue
        many = int(found[3].replace("\u2009", "")) if found[3] else 1
        held = round(model.params_billion * 1e9) * (1 if dtype == "int8" else 2)
        held += cache_bytes(model, tokens, dtype, batch).allocated
        assert many * chosen.memory_bytes >= held
        assert many == 1 or (many - 1) * chosen.memory_bytes < held
        rate = float(found[1].replace("\u2009", ""))
        moved = state.step.read + state.step.weights
        assert rate == pytest.approx(batch * many * chosen.tbps * 1e12 / moved, rel=0.01)


def test_nothing_is_said_of_tokens_a_second_without_known_weights():
    own = AttentionModel("own", 80, 64, 128, kv_heads=8)
    for words in time_words(cache_state(CacheChoice(own, H100))):
        assert "tokens/s: no bound" in words or "tokens/s" not in words


@pytest.mark.parametrize("name", models())
def test_a_line_keeps_to_one_system_of_units(name):
    state = cache_state(CacheChoice(models()[name], H100))
    heads = model_state(models()[name], None, 4096, "float16")
    lines = [
        *step_words(state), *time_words(state), *fit_words(state),
        *(text for group in state.step.groups for text in group_words(group)[1]),
        *(f"{row.token} {row.read}" for row in rows(heads)),
    ]  # fmt: skip
    for line in lines:
        binary = re.search(r"\d [KMGT]iB\b", line)
        assert not (binary and re.search(r"\d [kMGT]B\b", line.split(" TB/s")[0])), line


@pytest.mark.parametrize("size", [(340, 300), (560, 400), (720, 600), (1200, 600)], ids=str)
def test_fit_stands_at_the_end_of_a_line_and_never_begins_one(panel, qapp, size):
    panel.setParent(None)
    panel.resize(*size)
    panel.show()
    qapp.processEvents()
    fit, bar = panel.bar.fit_button, panel.bar
    assert fit.y() == 0
    assert bar.rect().contains(fit.geometry())
    for other in bar.shown():
        assert other is fit or not other.geometry().intersects(fit.geometry())
        if other.y() == 0:
            assert other.x() <= fit.x()
    panel.deleteLater()


def test_head_sharing_follows_the_model_that_is_chosen(window, panel, tmp_path):
    heads = window.docks.panel("heads")
    assert heads.of == "scenario"
    pick(panel, "model", "Falcon-7B")
    assert (heads.of, heads.model) == ("model", "Falcon-7B")
    assert heads.state.title == "Falcon-7B"
    assert heads.bar.buttons["of", "model"].isChecked()
    assert heads.bar.lists["model"].currentData() == "Falcon-7B"
    heads.bar.choose("of", "scenario")
    assert heads.state.title == "this scenario"
    assert panel.choice.model.name == "Falcon-7B"
    heads.bar.choose("of", "model")
    heads.bar.choose("model", "DeepSeek-V3")
    assert panel.choice.model.name == "DeepSeek-V3"
    assert panel.bar.lists["model"].currentData() == "DeepSeek-V3"
    own = tmp_path / "mine.toml"
    own.write_text("layers = 2\nheads = 4\nkv_heads = 2\nhead_dim = 8\n")
    panel.open_model(own)
    assert heads.state.title == "mine"
    assert heads.bar.lists["model"].currentText() == "own model"


def test_a_model_too_large_says_so():
    state = cache_state(CacheChoice(models()["DeepSeek-V3"], H100))
    assert fit_words(state)[0].startswith("no sequence fits one H100-SXM: the weights alone take")


@pytest.mark.parametrize(
    ("tokens", "held", "dropped", "expected"),
    [
        (3, 3, False, [1, 2, 3]),
        (9, 9, False, [1, None, 6, 7, 8, 9]),
        (9, 4, True, [5, 6, 7, 8, 9]),
        (20, 8, True, [12, 13, None, 18, 19, 20]),
    ],
)
def test_cells_show_the_new_token_the_oldest_and_the_one_that_left(tokens, held, dropped, expected):
    assert shown_tokens(tokens, held, dropped, 6) == expected


def test_a_bar_has_room_for_its_tokens():
    assert [context_of(n) for n in (1, 16, 17, 4096, 4097)] == [16, 16, 32, 4096, 8192]


def test_nothing_is_worked_out_until_the_dock_is_seen(open_window):
    window = open_window("causal")
    panel = window.docks.panel("cache").calculator
    assert panel.state is None
    assert panel.plot.model is None


LEVELS = ("Llama-3-8B", "Llama-2-70B", "Llama-2-7B", "Llama-3.1-405B", "DeepSeek-V3")


@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize("size", [(724, 165), (724, 240), (724, 300), (1100, 600)])
def test_labels_of_lines_lie_on_no_other_line(size: tuple[int, int], name: str) -> None:
    model = cache_plot(CacheChoice(find_model(name), gpus()["H100-SXM"]))
    layout = plot_layout(model, Style(DARK), QRectF(0, 0, *size), *model.fit())
    across = [level for level in model.levels if level.across]
    for level in across:
        found = next(each for each in layout.labels if each.text == level.label)
        box, own = found.box, layout.frame.point(0, model.y.place(level.value)).y()
        assert found.anchor is None
        for other in across:
            y = layout.frame.point(0, model.y.place(other.value)).y()
            assert not box.top() < y < box.bottom(), (level.label, other.label)
            between = min(own, box.center().y()) < y < max(own, box.center().y())
            assert not between, (level.label, other.label)
        for curve in model.curves:
            for x, y in zip(curve.xs, curve.ys, strict=True):
                at = layout.frame.point(model.x.place(x), model.y.place(y))
                assert not box.contains(at), (level.label, curve.name)
