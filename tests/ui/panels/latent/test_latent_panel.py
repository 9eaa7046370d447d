"""The latent dock in the window: both ways over the queries, and what sharing costs."""

import pytest

from simulator.lesson.tables import ChooseTable
from simulator.problem.scenario import with_values
from simulator.study.latent.sharing import shipped_layer
from simulator.study.latent.two_ways import latent_layer
from tests.helpers.by_hand import press

PANEL, DEMO = "latent", "mla"


def test_it_is_made_when_it_is_opened(window, panel):
    assert window.docks["latent"].isVisible()
    model = panel.plot.model
    assert [curve.name for curve in model.curves] == ["absorbed", "K and V made first"]
    assert "same O" in model.note
    assert "this run" in {level.label for level in model.levels}


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("quantity", ["flops", "bytes", "time"])
def test_curves_are_the_prices(window, panel, quantity):
    press(panel, "quantity", quantity)
    layer, model = latent_layer(window.session.trace.single_heads[0]), panel.plot.model
    for way, curve in zip(("absorbed", "projected"), model.curves, strict=True):
        assert curve.xs == tuple(map(float, layer.counts))
        assert curve.ys == tuple(layer.price(way, n).of(quantity) for n in layer.counts)
    at = layer.crossover(quantity)
    assert [level.value for level in model.levels] == [at, 1.0]
    assert f"From {at} queries on" in model.note


@pytest.mark.long
def test_what_sharing_costs_is_of_a_trained_layer(panel):
    press(panel, "view", "sharing")
    model, found = panel.plot.model, shipped_layer()
    assert model.note.startswith("Without retraining.")
    pooled, latent = model.curves
    assert pooled.xs == tuple(each.bytes for each in found.family("pooled")[::-1])
    assert pooled.ys == tuple(each.error for each in found.family("pooled")[::-1])
    assert latent.ys == tuple(each.error for each in found.family("latent")[::-1])
    assert not panel.bar.buttons["quantity", "bytes"].isVisible()
    panel.take_choices(ChooseTable())
    assert panel.plot.model.curves[0].name == "absorbed"


@pytest.mark.long
def test_a_run_without_a_latent_shows_a_model(panel, session, qapp):
    shapes = {"algorithm": "flash2", "latent_dim": None, "rope_dim": None, "head_dim": 8}
    session.propose(with_values(session.trace.workload.scenario, {"attention": shapes}), "shapes")
    session.settle()
    qapp.processEvents()
    session.settle()
    assert "DeepSeek-V2: 128 heads" in panel.plot.model.note
    assert "this run" not in {level.label for level in panel.plot.model.levels}
