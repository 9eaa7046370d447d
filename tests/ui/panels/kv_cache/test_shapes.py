"""The calculator's formula, the sliders of its shapes, and GPUs for a whole context."""

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtTest import QTest

from simulator.problem.hardware import gpus
from simulator.problem.models import models
from simulator.study.kv_cache.counts import cache_bytes, weight_bytes
from simulator.study.kv_cache.formula import gpus_for
from tests.helpers.random_pages import overlapping
from ui.look.theme import DARK, Style
from ui.panels.kv_cache.formula_line import columns, formula_text, paint_formula
from ui.panels.kv_cache.painter import cache_state, gpu_words
from ui.panels.kv_cache.plot import CacheChoice

H100 = gpus()["H100-SXM"]


@pytest.fixture(scope="module")
def panel(open_for_all, qapp):
    window = open_for_all("kv-cache", (1280, 720))
    window.desk.take("cache")
    qapp.processEvents()
    window.session.settle()
    return window.docks.panel("cache").calculator


def show(panel, model: str) -> None:
    panel.choose("model", model)
    panel.take_tokens(4096)


def test_sliders_begin_at_the_model_and_mark_it_as_changed(panel):
    show(panel, "Llama-3-8B")
    sliders, labels = panel.shapes.sliders, panel.shapes.labels
    assert {name: label.text() for name, label in labels.items()} == {
        "layers": "32 layers", "KV heads": "8 KV heads", "head size": "size 128",
    }  # fmt: skip
    assert not panel.shapes.own.isEnabled()
    sliders["layers"].setFocus()
    QTest.keyClick(sliders["layers"], Qt.Key.Key_Up)
    QTest.keyClick(sliders["KV heads"], Qt.Key.Key_Up)
    QTest.keyClick(sliders["head size"], Qt.Key.Key_Down)
    model = panel.choice.model
    assert (model.layers, model.kv_heads, model.head_dim) == (33, 16, 120)
    assert model.name == "Llama-3-8B, changed"
    assert panel.bar.lists["model"].currentText() == "Llama-3-8B"
    words = panel.picture.accessibleDescription()
    assert words.startswith("Llama-3-8B, changed")
    assert "weights not known" in words
    assert panel.state.formula.total == 2 * 33 * 16 * 120 * 4096 * 2
    assert panel.plot.model.marks[0].y == panel.state.formula.total
    QTest.mouseClick(panel.shapes.own, Qt.MouseButton.LeftButton)
    assert panel.choice.model is models()["Llama-3-8B"]
    assert sliders["layers"].value() == 32


def test_another_model_starts_at_its_own_shapes(panel):
    show(panel, "Llama-3-8B")
    panel.shapes.sliders["layers"].setValue(40)
    show(panel, "DeepSeek-V3")
    assert panel.choice.model is models()["DeepSeek-V3"]
    assert not panel.shapes.sliders["KV heads"].isVisible()
    panel.shapes.sliders["layers"].setValue(10)
    assert panel.choice.model.is_latent
    assert panel.state.formula.total == 10 * 576 * 4096 * 2
    show(panel, "Llama-3-8B")
    assert panel.shapes.sliders["KV heads"].isVisible()


def test_the_formula_is_written_with_its_factors():
    state = cache_state(CacheChoice(models()["Llama-2-70B"], H100, 1000, dtype="int4"))
    found = columns(state.formula, "all tokens")
    assert [(c.text, c.name) for c in found if c.name] == [
        ("80", "layers"), ("1\u2009000", "tokens"), ("2", "K and V"), ("8", "KV heads"),
        ("128", "head size"), ("0.5 B", "int4"), ("1", "sequences"), ("81.92 MB", "all tokens"),
    ]  # fmt: skip
    gemma = cache_state(CacheChoice(models()["Gemma-3-27B"], H100, 2048))
    assert formula_text(gemma.formula, "").startswith("( 10 × 2\u2009048 + 52 × 1\u2009024 ) ×")


@pytest.mark.parametrize("width", [150, 320, 420, 700])
def test_the_formula_stays_in_its_place(qapp, width):
    state = cache_state(CacheChoice(models()["Gemma-3-27B"], H100, 10**6, 256))
    image = QImage(width + 100, 60, QImage.Format.Format_RGB32)
    image.fill(0)
    painter = QPainter(image)
    paint_formula(painter, state.formula, "window-capped", Style(DARK), QRectF(0, 0, width, 40))
    painter.end()
    inked = [x for x in range(image.width()) for y in range(40) if image.pixel(x, y) & 0xFFFFFF]
    assert inked
    assert max(inked) <= width + 1


@pytest.mark.parametrize("name", ["Llama-2-70B", "DeepSeek-V3"])
def test_gpus_are_counted_for_the_cache_and_with_the_weights(name):
    model = models()[name]
    state = cache_state(CacheChoice(model, H100, 10**6, batch=4))
    size = cache_bytes(model, 10**6, batch=4).allocated
    alone, both = gpus_for(size, H100), gpus_for(size + weight_bytes(model), H100)
    words = gpu_words(state)[0]
    assert alone < both
    assert f"{name}: {alone} × H100-SXM hold this cache alone, {both} with the weights" in words


def test_sliders_that_appear_have_their_own_places(panel, qapp):
    """Of a latent there is one slider, as wide as all: those of the next model come back."""
    window = panel.window()
    show(panel, "DeepSeek-V3")
    for layout in ("steps", "cache"):
        window.desk.take(layout)
        window.session.settle()
    show(panel, "Llama-3-70B")
    qapp.processEvents()
    shapes = panel.shapes
    shown = [*shapes.labels.values(), *shapes.sliders.values(), shapes.own]
    assert all(widget.isVisible() for widget in shown)
    assert overlapping(panel) == []
    for name, slider in shapes.sliders.items():
        assert shapes.labels[name].geometry().right() <= slider.x()


@pytest.mark.parametrize(
    ("size", "there"), [((340, 300), False), ((420, 700), False), ((720, 600), True)], ids=str
)
def test_sliders_of_shapes_need_room(panel, qapp, size, there):
    before = panel.size()
    panel.resize(*size)
    qapp.processEvents()
    assert panel.shapes.isVisible() == there
    if there:
        for slider in panel.shapes.sliders.values():
            assert slider.width() >= 3 * slider.height()
        assert not panel.shapes.geometry().intersects(panel.plot.geometry())
    panel.resize(before)
    qapp.processEvents()
