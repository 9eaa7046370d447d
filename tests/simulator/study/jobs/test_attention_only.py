"""The small transformer and the one built by hand: what its heads do, and when they begin to."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from simulator.base.assets import CAPTURES
from simulator.problem.scenario import parse_scenario
from simulator.run.trace import simulate
from simulator.study.attention_map import HeadScores
from simulator.study.jobs.attention_only import (
    Model,
    TrainingFigures,
    figures,
    forward,
    layer_place,
    losses,
    read_model,
    said_before,
)
from simulator.study.jobs.jobs import head_jobs
from tests.helpers.refused import refused

SMALL, BY_HAND = CAPTURES / "small", CAPTURES / "by-hand"


@pytest.fixture(scope="module")
def small() -> Model:
    return read_model(SMALL)


@pytest.fixture(scope="module")
def by_hand() -> Model:
    return read_model(BY_HAND)


@pytest.fixture(scope="module")
def course(small: Model) -> list[TrainingFigures]:
    return [figures(small, moment.step) for moment in small.moments]


def test_two_layers_by_hand_show_induction_exactly(by_hand: Model) -> None:
    found = figures(by_hand, 0)
    jobs = dict(zip(by_hand.heads, found.jobs.scores, strict=True))
    names = ("previous", "next", "first", "self", "same", "induction")
    for head, job in {
        (0, 0): "previous",
        (0, 1): "first",
        (1, 0): "induction",
        (1, 1): "same",
    }.items():
        assert jobs[head][names.index(job)] == pytest.approx(1, abs=1e-12)
    # Where a word was there before, the next one is certain; elsewhere all nine are alike.
    words = by_hand.held_out["repeated"]
    each = losses(forward(by_hand.moments[0], words).logits, words)
    known = said_before(words)
    np.testing.assert_allclose(each[known], 0, atol=1e-6)
    np.testing.assert_allclose(each[~known], np.log(9), atol=1e-9)


def test_induction_by_hand_needs_the_head_before_it(by_hand: Model) -> None:
    """Layer 1's head reads what layer 0's head has written (Elhage et al. 2021)."""
    whole = figures(by_hand, 0)
    without = {head: figures(by_hand, 0, {head}) for head in by_hand.heads}
    assert without[0, 0].jobs.of("induction")[2] < 1e-9
    assert without[0, 0].loss["again"] == pytest.approx(np.log(9))
    assert without[1, 0].loss["again"] == pytest.approx(np.log(9))
    for idle in ((0, 1), (1, 1)):  # they find their keys and copy nothing
        assert without[idle].loss == whole.loss
        assert whole.shares[by_hand.heads.index(idle)] == 0


def test_an_induction_head_appears_between_two_moments(
    small: Model, course: list[TrainingFigures]
) -> None:
    assert (len(small.vocabulary), len(small.text), len(small.heads)) == (48, 32, 8)
    best = [float(each.jobs.of("induction").max()) for each in course]
    steps = [each.step for each in course]
    early, late = steps.index(300), steps.index(800)
    assert max(best[: early + 1]) < 0.1
    assert min(best[late:]) > 0.9
    # So does the head before the row's own place, in the layer before; and the loss falls where
    # the next word is known, not in sentences.
    before = [float(each.jobs.of("previous")[:4].max()) for each in course]
    assert before[early] < 0.3 < 0.5 < min(before[late:])
    again, sentences = ([each.loss[kind] for each in course] for kind in ("again", "sentences"))
    assert again[early] > 2.5
    assert max(again[late:]) < 0.05
    assert abs(sentences[late] - sentences[early]) < 0.1
    assert course[-1].jobs.of("induction").argmax() == 7  # layer 1, head 3


def test_what_a_head_that_is_off_does_to_the_loss(
    small: Model, course: list[TrainingFigures]
) -> None:
    last = course[-1]
    without = {head: figures(small, last.step, {head}) for head in small.heads}
    previous = int(last.jobs.of("previous").argmax())
    assert small.heads[previous] == (0, 3)
    assert without[0, 3].jobs.of("induction")[7] < 0.1
    assert without[0, 3].loss["again"] > 3
    assert without[1, 3].loss["again"] > 2
    others = [without[head].loss["again"] for head in small.heads if head not in ((0, 3), (1, 3))]
    assert max(others) < 0.1


def test_a_head_that_is_off_is_one_whose_rows_of_wo_are_zeros(small: Model) -> None:
    moment = small.at(500)
    for off in small.heads:
        layer, head = off
        wo = moment.layers[layer].weights["wo"].copy()
        wo[12 * head : 12 * head + 12] = 0
        changed = replace(moment.layers[layer], weights={**moment.layers[layer].weights, "wo": wo})
        layers = list(moment.layers)
        layers[layer] = changed
        zeroed = forward(replace(moment, layers=tuple(layers)), small.text[None])
        found = forward(moment, small.text[None], {off})
        np.testing.assert_allclose(found.logits, zeroed.logits, atol=1e-12)
        assert not np.allclose(found.logits, forward(moment, small.text[None]).logits)


def test_the_files_are_what_the_weights_make(small: Model) -> None:
    """A run on a layer's file has the weights that the whole model gives that layer."""
    for layer in (0, 1):
        path = SMALL / f"step-2000-layer{layer}.safetensors"
        tables = {"attention": {"heads": 4}, "input": {"source": "layer", "path": str(path)}}
        trace = simulate(parse_scenario(tables))
        w, inputs = trace.single_heads
        assert w.tokens == small.tokens
        assert w.mask.causal
        maps = HeadScores(w, inputs).maps()
        of_run = head_jobs(maps.weights, w.mask, maps.rows, w.tokens)
        whole = figures(small, 2000)
        np.testing.assert_allclose(
            of_run.scores, whole.jobs.scores[4 * layer : 4 * layer + 4], atol=0.01
        )
        assert trace.run()[0]["layer"]["max_abs_error"] < 0.02  # of float16


def test_a_layer_knows_its_model(tmp_path: Path) -> None:
    assert layer_place(SMALL / "step-0300-layer1.safetensors") == (SMALL, 300, 1)
    assert layer_place(CAPTURES / "cat-because-layer2.safetensors") is None
    alone = tmp_path / "step-0300-layer1.safetensors"
    shutil.copy(SMALL / alone.name, alone)
    assert layer_place(alone) is None
    assert layer_place(None) is None


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("step-0000-rest", {"embed": None},
         "of these it has bias, heads, positions, step, unembed"),
        ("step-0000-rest", {"bias": np.zeros(7, np.float16)}, "shape of embed = (9, 45)"),
        ("step-0000-rest", {"unembed": np.full((45, 9), np.nan, np.float16)}, "finite numbers"),
        ("step-0000-rest", {"heads": np.zeros(1, np.float32)}, "1 to 256 heads"),
        ("step-0000-rest", {"heads": np.full(1, 257, np.float32)}, "1 to 256 heads"),
        ("step-0000-rest", {"heads": np.full(1, 256, np.float32)}, "a multiple of 256 heads"),
        ("step-0000-rest", {"heads": np.full(1, np.inf, np.float32)}, "finite numbers"),
        ("step-0000-rest", {"heads": np.zeros(0, np.float32)}, "finite numbers, at least one"),
        ("held-out", {"repeated": np.full((2, 5), 9, np.float16)}, "tensor repeated"),
        ("held-out", {"repeated": np.full((2, 5), 0.5, np.float16)}, "tensor repeated"),
        ("held-out", {"repeated": np.zeros((2, 99), np.float16)}, "tensor repeated"),
        ("held-out", {"repeated": None}, "sentences or repeated"),
        ("step-0000-layer1", {"wo": None}, "tensor wo"),
        ("step-0000-layer1", {"x": np.zeros((18, 44), np.float16)}, "expected"),
    ],
)  # fmt: skip
def test_damaged_files_are_refused_in_one_line(
    tmp_path: Path, file: str, change: dict[str, np.ndarray | None], told: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(BY_HAND, folder)
    path = folder / f"{file}.safetensors"
    from safetensors import safe_open

    with safe_open(path, "np") as opened:
        said = opened.metadata()
    arrays = {**load_file(path), **change}
    save_file({name: each for name, each in arrays.items() if each is not None}, path, said)
    assert told in refused(read_model, folder)


def test_text_and_vocabulary_must_fit(tmp_path: Path) -> None:
    for n, (file, tokens) in enumerate(
        {"step-0000-rest": "[1]", "step-0000-layer0": '["<s>", "zebra"]'}.items()
    ):
        folder = tmp_path / str(n)
        shutil.copytree(BY_HAND, folder)
        path = folder / f"{file}.safetensors"
        save_file(load_file(path), path, {"tokens": tokens})
        assert "tokens" in refused(read_model, folder)
    assert "moments = 0" in refused(read_model, tmp_path)
