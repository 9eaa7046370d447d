"""docs/train_small.py: its gradients, its sequences, and that its seed decides what it writes."""

import copy
import json
import runpy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from simulator.base.assets import CAPTURES
from simulator.study.jobs.attention_only import read_model

SCRIPT = Path(__file__).parents[1] / "docs/train_small.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """What docs/train_small.py defines."""
    return runpy.run_path(str(SCRIPT))


VARIANTS = ("usual", "no root", "one head", "one head, no root", "MQA")


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_way_back_is_the_derivative(script: dict[str, Any], variant: str) -> None:
    rng = np.random.default_rng(0)
    kind = dict(script["VARIANTS"][variant])
    weights = {
        name: value.astype(float) + 0.1 * rng.standard_normal(value.shape)
        for name, value in script["make"](rng, kind.pop("kv_heads", script["HEADS"])).items()
    }
    words = script["batch"](rng, 4)
    whole = partial(script["loss_and_gradients"], **kind)
    _, gradients = whole(weights, words)
    assert gradients.keys() == weights.keys()
    for name, value in weights.items():
        # Along a random direction: the sum of all derivatives of this tensor, each weighted.
        along = rng.standard_normal(value.shape)
        ends = []
        for step in (1e-5, -1e-5):
            ends.append(whole({**weights, name: value + step * along}, words)[0])
        numeric = (ends[0] - ends[1]) / 2e-5
        assert numeric == pytest.approx((gradients[name] * along).sum(), rel=1e-5, abs=1e-8), name


def test_it_reads_sentences_and_what_is_repeated(script: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    words = script["WORDS"]
    assert len(words) == len(set(words)) == 48
    for _ in range(20):
        drawn = script["repeated"](rng)
        period = next(n for n in range(1, 32) if drawn[1 + n] == drawn[1])
        assert drawn[0] == 0 < drawn[1:].min()
        assert drawn[1:-period].tolist() == drawn[1 + period :].tolist()
        assert len(set(drawn[1 : 1 + period].tolist())) == period
        told = [words[n] for n in script["sentences"](rng)]
        assert (told[0], len(told)) == ("<s>", 32)
        assert "." in told


def test_the_seed_decides(script: dict[str, Any]) -> None:
    runs = []
    for _ in range(2):
        runs.append(
            [(loss, weights["wq1"].copy()) for _, weights, loss in script["train"](steps=5)]
        )
    assert [loss for loss, _ in runs[0]] == [loss for loss, _ in runs[1]]
    assert np.array_equal(runs[0][-1][1], runs[1][-1][1])
    other = next(script["train"](steps=5, seed=1))
    assert other[2] != runs[0][0][0]


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("variant", VARIANTS)
def test_five_steps_and_five_more_are_ten(script: dict[str, Any], variant: str) -> None:
    kind = dict(script["VARIANTS"][variant])
    begin = partial(script["begin"], 17, kind.pop("kv_heads", script["HEADS"]))

    def trained(state: dict[str, Any], last: int) -> dict[str, Any]:
        for done, _, _ in script["train"](10, 17, state, **kind):
            if done == last:
                return copy.deepcopy(state)
        raise AssertionError(last)

    whole = trained(begin(), 10)
    parts = trained(trained(begin(), 5), 10)
    assert (whole["done"], parts["done"]) == (10, 10)
    assert whole["rng"].bit_generator.state == parts["rng"].bit_generator.state
    for name in ("weights", "mean", "square"):
        for tensor, values in whole[name].items():
            assert np.array_equal(values, parts[name][tensor]), (name, tensor)
    assert whole["weights"]["wk0"].shape[1] == (12 if variant == "MQA" else 48)


@pytest.mark.long
def test_it_learns(script: dict[str, Any]) -> None:
    found = [loss for _, _, loss in script["train"](steps=120)]
    assert np.mean(found[:10]) > 3.8
    assert np.mean(found[-10:]) < 3.4


def test_what_is_shipped_is_what_it_writes(script: dict[str, Any], tmp_path: Path) -> None:
    """All of what is built by hand; of the trained one, what comes before the first product."""
    script["write_by_hand"](tmp_path / "by-hand")
    written = sorted((tmp_path / "by-hand").iterdir())
    shipped = sorted((CAPTURES / "by-hand").iterdir())
    assert [path.name for path in written] == [path.name for path in shipped]
    for mine, theirs in zip(written, shipped, strict=True):
        found, expected = load_file(mine), load_file(theirs)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, atol=1e-3)
    first = next(script["train"]())[1]
    rest = load_file(CAPTURES / "small/step-0000-rest.safetensors")
    assert np.array_equal(rest["embed"], first["embed"].astype(np.float16))
    model = read_model(CAPTURES / "small")
    assert tuple(moment.step for moment in model.moments) == script["MOMENTS"]
    assert model.vocabulary == script["WORDS"]
    with safe_open(CAPTURES / "small/step-2000-layer1.safetensors", "np") as file:
        said = file.metadata()
    assert said["model"] == "small transformer, step 2000"
    assert (said["made_by"], said["license"], said["causal"]) == (
        "docs/train_small.py", "MIT", "true",
    )  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS)
def test_losses_of_variants_begin_as_they_are_stored(script: dict[str, Any], variant: str) -> None:
    """Of each seed the first losses: the later ones take minutes, and rounding grows in them."""
    stored = json.loads((CAPTURES / "small-variants.json").read_text(encoding="utf-8"))
    assert (tuple(stored["seeds"]), stored["every"]) == (script["SEEDS"], script["EVERY"])
    assert tuple(stored["variants"]) == tuple(script["VARIANTS"]) == VARIANTS
    _, held = script["held_out"]()
    for n, seed in enumerate(stored["seeds"]):
        sentences, again = script["course"](variant, seed, held, steps=1)[0]
        found = stored["variants"][variant]
        assert found["sentences"][n][0] == pytest.approx(sentences, abs=1e-3)
        assert found["again"][n][0] == pytest.approx(again, abs=1e-3)
