"""The memory card in the window: the sentence is its controls, its figures are the simulator's."""

import re
from dataclasses import replace

import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtTest import QTest

from simulator.base.errors import InputError
from simulator.lesson.tables import ChooseTable
from simulator.problem.hardware import gpus
from simulator.problem.models import AttentionModel, models
from simulator.problem.scenario import with_values
from simulator.study.kv_cache.counts import ELEMENT_TYPES, cache_bytes, decode_step, weight_bytes
from simulator.study.kv_cache.memory import need, sharings
from tests.helpers.drawn_words import drawn_words, faults
from tests.helpers.pointer import wheel
from ui.kit.boxes import scene
from ui.kit.shapes import Text
from ui.look.theme import DARK, LABEL, Style
from ui.look.units import count_text, decimal_bytes_text
from ui.panels.kv_cache.card import LINKS, CardPicture
from ui.panels.kv_cache.details import (
    context_of,
    formula_columns,
    formula_of,
    gpu_lines,
    group_words,
    shown_tokens,
    step_words,
    table_rows,
    time_words,
)
from ui.panels.kv_cache.plot import cache_plot, ways
from ui.panels.kv_cache.state import MOST_TOKENS, CacheChoice
from ui.panels.kv_cache.words import bar_tip
from ui.plots.layout import plot_layout

H100 = gpus()["H100-SXM"]
LLAMA = models()["Llama-3-70B"]
SPACE = "\u2009"


@pytest.fixture
def window(open_window, qapp):
    window = open_window("kv-cache", (1280, 720))
    window.desk.take("cache")
    qapp.processEvents()
    window.session.settle()
    return window


@pytest.fixture
def card(window):
    return window.docks.panel("cache").card


def said(card) -> list[str]:
    """All words that are painted, from the top."""
    placed = card.picture.scene.placed
    return [box.lines(card.picture.scene.style, rect.width())[0]
            for box, rect in placed if isinstance(box, Text)]  # fmt: skip


def press(card, name) -> None:
    """Click on a box of the picture."""
    at = card.picture.scene.where(name).center().toPoint()
    QTest.mouseClick(card.picture, Qt.MouseButton.LeftButton, pos=at)


def turn(widget, notches: int) -> None:
    wheel(widget, QPointF(widget.rect().center()), notches)


# --- the sentence -----------------------------------------------------------------------------


def test_the_first_card_answers_for_a_large_llama(card):
    words = said(card)
    assert {"42.95", "GB", "needs 3 × H100-SXM"} <= set(words)
    assert f"141.2 + 42.95 = 184.15 GB, {240 - 184.15:.2f} GB free" in words
    assert "343.60 GB" in words
    assert [card.words[name].currentText() for name in ("model", "cache type", "GPU")] == [
        "Llama-3-70B", "fp16", "H100-SXM",
    ]  # fmt: skip
    assert card.tokens.text() == f"131{SPACE}072"


def test_words_of_the_sentence_change_by_keys_wheel_and_letters(card):
    tokens = card.tokens
    tokens.setFocus()
    QTest.keyClick(tokens, Qt.Key.Key_Up)
    assert (card.choice.tokens, said(card)[said(card).index("GB") - 1]) == (262144, "85.90")
    QTest.keyClick(tokens, Qt.Key.Key_Down)
    QTest.keyClick(tokens, Qt.Key.Key_Down)
    assert card.choice.tokens == 65536
    turn(tokens, 1)
    assert card.choice.tokens == 131072
    tokens.selectAll()
    QTest.keyClicks(tokens, "1001")
    QTest.keyClick(tokens, Qt.Key.Key_Return)
    assert card.choice.tokens == 1001
    tokens.selectAll()
    QTest.keyClicks(tokens, "99999999")
    QTest.keyClick(tokens, Qt.Key.Key_Return)
    assert card.choice.tokens == MOST_TOKENS
    model = card.words["model"]
    model.setFocus()
    QTest.keyClicks(model, "v3")
    assert card.choice.published.name == "DeepSeek-V3"
    model._pause.timeout.emit()  # a second later
    QTest.keyClicks(model, "qwen3-2")
    assert card.choice.published.name == "Qwen3-235B-A22B"
    for _ in range(8):
        turn(model, -1)
    assert card.choice.published.name == "DeepSeek-V3"  # a file is asked for by a click alone
    QTest.keyClick(model, Qt.Key.Key_Up)
    assert card.choice.published.name == "DeepSeek-V2"
    turn(card.words["weights type"], -1)
    assert card.choice.weights_dtype == "bfloat16"
    turn(card.words["GPU"], -1)
    assert card.choice.gpu.name == "H200"


def test_without_controls_the_sentence_is_painted(card):
    card.show_controls(False)
    assert not any(box.isVisible() for box in (*card.words.values(), card.tokens, card.bar))
    words = [box.words for box, _ in card.picture.scene.placed if hasattr(box, "held")]
    assert words[:4] == ["Llama-3-70B", f"131{SPACE}072", "fp16", "H100-SXM"]
    assert not any("Curve" in text for text in said(card))
    card.show_controls(True)
    card.set_stage(True)
    assert not card.tokens.isVisible()


@pytest.mark.long
def test_another_gpu_of_the_scenario_is_taken(window, card):
    card.choose("GPU", "T4")
    scenario = window.session.scenario
    assert scenario.hardware.preset == "H100-SXM"  # looking is not changing
    window.session.propose(with_values(scenario, {"hardware": {"preset": "H200"}}), "H200")
    window.session.settle()
    assert card.choice.gpu.name == "H200"


@pytest.mark.long
def test_own_models_are_read_and_wrong_ones_are_told(window, card, tmp_path):
    own = tmp_path / "mine.toml"
    own.write_text("layers = 2\nheads = 4\nkv_heads = 2\nhead_dim = 8\nhidden = 32\n")
    card.open_model(own)
    assert card.words["model"].currentText() == "mine"
    assert "cache alone: 1 × H100-SXM" in said(card)
    assert card.parameters.isVisible()
    card.parameters.setValue(100.0)
    assert "needs 3 × H100-SXM" in said(card)
    assert card.choice.published.params_billion is None
    own.write_text("layers = 2\nheads = 4\nkv_heads = 3\nhead_dim = 8\n")
    told: list[InputError] = []
    window.session.refused.connect(told.append)
    before = card.choice
    card.open_model(own)
    assert card.choice is before
    assert "kv_heads" in str(told[0])


# --- bars -------------------------------------------------------------------------------------


def test_a_bar_that_is_clicked_becomes_the_sentence(card):
    press(card, ("bar", "MHA", "fp8"))
    assert (card.choice.kind, card.choice.dtype) == ("MHA", "fp8")
    words = said(card)
    assert "171.80" in words
    assert "needs ≈ 5 × H100-SXM" in words
    assert "as MHA with" in words
    assert card.words["cache type"].currentText() == "fp8"
    card.picture.setFocus()
    QTest.keyClick(card.picture, Qt.Key.Key_Down)
    assert (card.choice.model.kind, card.choice.dtype) == ("MHA", "int4")
    QTest.keyClick(card.picture, Qt.Key.Key_Down)
    assert (card.choice.kind, card.choice.dtype) == ("", "float16")
    assert "needs 3 × H100-SXM" in said(card)


def test_bars_are_as_long_as_caches_on_one_axis(card):
    card.setParent(None)
    card.resize(1700, 900)
    found = card.picture.scene
    zero = found.where(("bar", "MHA", "float16")).x()
    longest = None
    for kind in sharings(LLAMA):
        for dtype in ("float16", "fp8", "int4"):
            line = found.where(("bar", kind, dtype))
            bars = [rect for box, rect in found.placed if getattr(box, "ground", None) is not None
                    and abs(rect.x() - zero) < 0.5 and line.contains(rect.center())
                    and rect.height() > 8]  # fmt: skip
            size = need(sharings(LLAMA)[kind], 131072, H100, dtype).cache
            longest = longest or bars[0].width() / size
            assert bars[0].width() == pytest.approx(max(size * longest, 2), abs=0.5)
    card.deleteLater()


def test_a_tip_has_the_formula_with_its_numbers(qapp):
    tip = bar_tip(CacheChoice(LLAMA, H100), "GQA", "float16")
    assert "2 × 80 layers × 8 KV heads × 128 × 2 bytes a token" in tip
    assert "(141.2 + 42.95) / 80 GB: 3 GPUs" in tip
    assert "at most 54.6 tokens a second" in tip
    found = scene(CardPicture(CacheChoice(LLAMA, H100)), Style(DARK), QRectF(0, 0, 1100, 800))
    assert found.tip(found.where(("bar", "GQA", "float16")).center()) == tip


def test_many_gpus_are_one_box_and_a_number(card):
    card.choose("model", "DeepSeek-V3")
    words = said(card)
    assert "17 ×" in words
    assert "needs 17 × H100-SXM" in words


@pytest.mark.sweep(keep=12)
@pytest.mark.parametrize("size", [(340, 260), (740, 560), (1744, 940)])
@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("name", ["Gemma-3-27B", "DeepSeek-V3"])
def test_no_words_lie_upon_others_or_outside(qapp, name, scale, size):
    style, place = Style(DARK, scale), QRectF(0, 0, size[0] * scale, size[1] * scale)
    for opened in ("", "table", "formula", "decoding"):
        picture = CardPicture(CacheChoice(models()[name], H100, opened=opened))
        drawn = drawn_words(scene(picture, style, place).paint, place)
        assert min(each.size for each in drawn) >= LABEL * scale - 0.5
        wrong = {*faults(drawn, place)} - {"'…' is cut"}  # the tokens between two cells
        assert size == (340, 260) or not wrong, opened


# --- what opens below -------------------------------------------------------------------------


@pytest.mark.long
def test_links_open_and_close_what_is_below(window, card, qapp):
    assert not card.plot.isVisible()
    press(card, ("open", "curve"))
    assert card.plot.isVisible()
    assert card.bar.isVisible()
    assert card.plot.model.marks[0].label == "42.95 GB"
    press(card, ("open", "table"))
    assert not card.plot.isVisible()
    assert "343.60 GB" in said(card)
    QTest.keyClick(card.picture, Qt.Key.Key_Escape)
    assert card.choice.opened == ""
    press(card, ("open", "less"))
    panel = window.docks.panel("cache")
    assert panel.pressure.isVisible()
    panel.pressure.bar.choose("view", "bytes")
    assert card.isVisible()
    assert set(LINKS) == {"curve", "table", "formula", "decoding", "less"}


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("name", models())
def test_the_curves_are_the_simulators(name):
    model = models()[name]
    choice = CacheChoice(model, H100, 4096)
    for log in (True, False):
        plot = cache_plot(replace(choice, log=log))
        for curve, way in zip(plot.curves, ways(model), strict=True):
            for x, y in zip(curve.xs, curve.ys, strict=True):
                assert y == cache_bytes(way.model, int(x)).window_capped
        assert sum("own" in curve.name for curve in plot.curves) == 1
        assert {weight_bytes(model), H100.memory_bytes, 4096} == {n.value for n in plot.levels}
        assert plot.marks[0].y == choice.needed().cache
    sizes = {way.name: cache_bytes(way.model, 131072).window_capped for way in ways(model)}
    assert {"MHA", "MQA", "MLA", "windowed"} <= set(sizes)
    assert sizes["MHA"] == model.heads * sizes["MQA"]


LEVELS = ("Llama-3-8B", "Llama-2-70B", "Llama-2-7B", "Llama-3.1-405B", "DeepSeek-V3")


@pytest.mark.parametrize("name", LEVELS)
@pytest.mark.parametrize("size", [(724, 165), (1100, 600)])
def test_labels_of_lines_lie_on_no_other_line(size: tuple[int, int], name: str) -> None:
    model = cache_plot(CacheChoice(models()[name], H100, 4096))
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


@pytest.mark.long
def test_a_click_on_the_curve_takes_its_tokens(card, qapp):
    press(card, ("open", "curve"))
    qapp.processEvents()
    curve = card.plot.model.curves[0]
    at = card.plot.where(curve.xs[10], curve.ys[10]).toPoint()
    QTest.mouseMove(card.plot.surface, at)
    assert "allocated" in " ".join(card.plot.spot.details)
    QTest.mouseClick(card.plot.surface, Qt.MouseButton.LeftButton, pos=at)
    assert card.choice.tokens == 1024
    assert card.tokens.value() == 1024


def test_the_table_has_every_way_and_type():
    rows = table_rows(CacheChoice(LLAMA, H100))
    assert len(rows) == 12
    cells = dict(rows)
    assert cells["GQA", "float16"] == (
        "GQA fp16", "42.95 GB", "327.68 kB", "141.20 GB", "3", "54.6", "4",
    )  # fmt: skip
    assert cells["MHA", "int4"][3:6] == ("≈ 159.99 GB", "≈ 4", "≈ 54.5")


def test_the_formula_is_written_with_its_factors():
    choice = CacheChoice(models()["Llama-2-70B"], H100, 1000, "int4")
    found = formula_columns(choice)
    assert [pair for pair in found if pair[1]] == [
        ("80", "layers"), (f"1{SPACE}000", "tokens"), ("2", "K and V"), ("8", "KV heads"),
        ("128", "head size"), ("0.5 B", "int4"), ("1", "conversations"), ("81.92 MB", "all tokens"),
    ]  # fmt: skip
    gemma = formula_columns(CacheChoice(models()["Gemma-3-27B"], H100, 2048))
    text = " ".join(each for each, _ in gemma)
    assert text.startswith(f"( 10 × 2{SPACE}048 + 52 × 1{SPACE}024 ) ×")


@pytest.mark.parametrize("name", models())
def test_counts_are_named_as_the_model_has_windows_or_not(name):
    choice = CacheChoice(models()[name], H100, 4096)
    counts = gpu_lines(choice)[-1]
    capped = bool(choice.model.windowed_layers)
    assert ("window-capped" in counts) == capped
    assert ("all tokens" in counts) != capped
    assert f"allocated {decimal_bytes_text(choice.counts.allocated)}" in counts
    assert not re.search(r"\d [KMGT]iB", " ".join(map(str, gpu_lines(choice))))


@pytest.mark.long
def test_shapes_change_in_the_formula_and_come_back(card):
    card.choose("model", "Llama-3-8B")
    press(card, ("open", "formula"))
    for name, more in (("layers", 1), ("KV heads", 1), ("head size", -1)):
        press(card, ("shape", name, more))
    model = card.choice.model
    assert (model.layers, model.kv_heads, model.head_dim) == (33, 16, 120)
    assert formula_of(card.choice).total == 2 * 33 * 16 * 120 * 131072 * 2
    assert "cache alone: 1 × H100-SXM" in said(card)
    press(card, ("own",))
    assert card.choice.model == models()["Llama-3-8B"]
    latent = CacheChoice(models()["DeepSeek-V3"], H100).shaped("layers", -1)
    assert latent.model.is_latent
    assert latent.model.layers == models()["DeepSeek-V3"].layers - 1
    assert latent.shaped("KV heads", 1).model is latent.model or latent.changed is not None


@pytest.mark.long
def test_choices_of_the_bar_count(card):
    press(card, ("open", "curve"))
    card.choose("model", "gpt-oss-120b")
    for name, value in (("batch", "16"), ("page size", "64"), ("axes", "linear"),
                        ("convention", "allocated")):  # fmt: skip
        card.bar.choose(name, value)
    card.choose("cache type", "fp8")
    model = models()["gpt-oss-120b"]
    counts = cache_bytes(model, 131072, "fp8", 16, 64)
    assert card.plot.model.marks[0].y == counts.allocated
    assert not card.plot.model.x.log
    assert card.choice.needed() == need(model, 131072, H100, "fp8", batch=16)
    assert decimal_bytes_text(counts.window_capped).split()[0] in said(card)


# --- decoding ---------------------------------------------------------------------------------


@pytest.mark.long
def test_decoding_gives_one_token_after_another(card, qtbot):
    card.take(replace(card.choice.at(3), opened="decoding"))
    seen = []
    card._clock.timeout.connect(lambda: seen.append(card.choice.tokens))  # after its own slot
    press(card, ("decode",))
    qtbot.waitUntil(lambda: len(seen) >= 4)
    press(card, ("decode",))
    assert not card._clock.isActive()
    assert seen == list(range(seen[0], seen[0] + len(seen)))


def test_decoding_stops_when_it_is_not_seen_and_at_the_end(window, card):
    card.take(replace(card.choice, opened="decoding", decodes=True))
    assert card._clock.isActive()
    window.docks["cache"].hide()
    assert not card._clock.isActive()
    card.take(replace(card.choice.at(MOST_TOKENS), decodes=True))
    card._tick()
    assert not card._clock.isActive()


@pytest.mark.parametrize("name", models())
def test_a_step_is_told_in_powers_of_ten_on_the_gpus_that_are_needed(name):
    choice = CacheChoice(models()[name], H100)
    step = decode_step(choice.model, choice.tokens)
    words = step_words(choice, step)[0], time_words(choice, step)[0]
    assert f"{decimal_bytes_text(step.written)} written" in words[0]
    assert f"{decimal_bytes_text(step.read)} read" in words[0]
    assert f"on {choice.needed().gpus} × H100-SXM" in words[1]
    for group in step.groups:
        words += group_words(group)[1]
    assert not re.search(r"\d [KMGT]iB", " ".join(words))


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


# --- beside others ----------------------------------------------------------------------------


@pytest.mark.sweep(keep=24)
@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
@pytest.mark.parametrize("name", models())
def test_every_model_and_type_has_a_card(qapp, name, dtype):
    choice = CacheChoice(models()[name], H100, dtype=dtype)
    found = scene(CardPicture(choice), Style(DARK), QRectF(0, 0, 1100, 800))
    assert found.where(("bar", choice.model.kind, dtype)).width() > 0


def test_without_known_weights_nothing_is_said_of_gpus_and_tokens_a_second():
    own = AttentionModel("own", 80, 64, 128, kv_heads=8)
    choice = CacheChoice(own, H100)
    assert "tokens/s" not in time_words(choice, decode_step(own, 9))[0]
    assert gpu_lines(choice)[0] == "GPUs and tokens a second are not known, as the weights are not."


@pytest.mark.long
def test_head_sharing_follows_model_length_and_type(window, card, tmp_path):
    heads = window.docks.panel("heads")
    assert heads.of == "scenario"
    card.choose("model", "Falcon-7B")
    card.tokens.setValue(5000)
    card.choose("cache type", "fp8")
    assert (heads.of, heads.model) == ("model", "Falcon-7B")
    state = heads.state
    assert (state.title, state.tokens, state.dtype) == ("Falcon-7B", 5000, "fp8")
    heads.slider.setValue(0)
    card.tokens.setValue(6000)
    assert (heads.state.at, heads.state.tokens) == (0, 6000)  # the sharing that was supposed stays
    heads.bar.choose("of", "scenario")
    assert heads.state.title == "this scenario"
    own = tmp_path / "mine.toml"
    own.write_text("layers = 2\nheads = 4\nkv_heads = 2\nhead_dim = 8\n")
    card.open_model(own)
    assert heads.state.title == "mine"


@pytest.mark.long
def test_a_lesson_chooses_model_tokens_and_what_is_open(card):
    card.take(card.choice.taking("MHA", "fp8"))
    card.take_choices(ChooseTable(model="Llama-2-70B", tokens=4096, card="curve"))
    assert card.plot.isVisible()
    assert card.plot.model.marks[0].label == "1.34 GB"
    card.take_choices(ChooseTable())
    c = card.choice
    assert (c.model.name, c.tokens, c.opened) == ("Llama-3-8B", 4096, "")
    assert count_text(c.tokens) == card.tokens.text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("Llama-2-70B", ["Llama-2-70B"]),
        ("Mistral-7B-v0.1", ["without a window", "Mistral-7B-v0.1"]),
    ],
)
def test_on_the_stage_a_curve_has_the_card_and_few_words(card, qapp, name, names):
    card.take_choices(ChooseTable(model=name, tokens=4096, card="curve"))
    before = card.plot.height()
    assert len(card.plot.model.curves) > 2
    card.set_stage(True)
    assert card.plot.height() > max(1.5 * before, 0.75 * card.height())
    assert [curve.name for curve in card.plot.model.curves] == names
    assert card.plot.model.note == ""
    assert said(card) == ["with", "tokens in", "on"]  # words that could be changed are no text
    card.set_stage(False)
    assert card.plot.height() == before
