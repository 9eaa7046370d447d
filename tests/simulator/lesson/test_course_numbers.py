"""Numbers that the course asks for beside those of studies: against plain NumPy."""

import re

import numpy as np
import pytest

from simulator.base.errors import InputError
from simulator.problem.scenario import Scenario, parse_scenario
from simulator.problem.sentence import sentence_model
from simulator.problem.workload import read_inputs, resolve
from simulator.program.playback import Cursor
from simulator.study.heads.published import published_scores
from simulator.study.jobs.trained import trained_variants
from tests.helpers.lesson_texts import computed
from tests.helpers.refused import refused

MAT = "soft-red-mat-layer2"


def asked(expression: str, scenario: Scenario | None = None) -> float:
    return computed(expression, scenario or parse_scenario({}), Cursor(0, 0))


def test_the_largest_weight_of_any_head_is_that_of_plain_numpy() -> None:
    scenario = parse_scenario({"input": {"source": "capture", "name": MAT, "head": "all"}})
    inputs = read_inputs(resolve(scenario))
    scores = np.einsum("hid,hjd->hij", *(x.astype(float) for x in (inputs.q, inputs.k)))
    weights = np.exp(scores * inputs.q.shape[-1] ** -0.5)
    weights /= weights.sum(-1, keepdims=True)
    for row, key in ((7, 8), (2, 3), (2, 8)):
        found = asked(f'most_in("{MAT}", {row}, {key})')
        assert found == pytest.approx(weights[:, row, key].max(), rel=1e-5)
    assert "a cell of a matrix of 10 x 10" in refused(asked, f'most_in("{MAT}", 10, 0)')


def test_a_distance_moves_an_absorbed_query_as_turning_its_pairs_does() -> None:
    said = {"algorithm": "mla", "heads": 2, "seqlen_q": 1, "latent_dim": 16, "rope_dim": 4}
    scenario = parse_scenario({"attention": {**said, "seqlen_k": 8}, "input": {"seed": 3}})
    nope = 16 // 4
    wuk = np.random.default_rng([3, 2]).standard_normal((1, 16, nope))[0] / 4
    q = np.random.default_rng([3, 1]).standard_normal(nope)
    pairs = (q[:2] + 1j * q[2:]) * np.exp(1j * 5 * 10000.0 ** (-np.arange(2) / 2))
    turned = np.concatenate([pairs.real, pairs.imag])
    moved = np.linalg.norm((turned - q) @ wuk.T) / np.linalg.norm(q @ wuk.T)
    assert asked("latent_turned(5)", scenario) == pytest.approx(moved, rel=1e-5)
    assert asked("latent_turned(0)", scenario) == 0


def test_a_temperature_divides_the_logits_of_the_next_word() -> None:
    said = {"source": "sentence", "text": "She was very"}
    scenario = parse_scenario({"input": said, "mask": {"causal": True}})
    model = sentence_model(scenario)
    logits = model.run(model.tokenizer.encode(said["text"])).logits[-1].astype(float)
    for temperature in (0.5, 1.0, 2.0):
        p = np.exp((logits - logits.max()) / temperature)
        p = np.sort(p / p.sum())[::-1]
        for place in (0, 3):
            found = asked(f"next_chance({place}, {temperature})", scenario)
            assert found == pytest.approx(p[place], rel=1e-5)
    for wrong in ("next_chance(-1)", "next_chance(0, 0)"):
        assert refused(asked, wrong, scenario)
    with pytest.raises(InputError, match="a run of a typed text"):
        asked("next_chance(0)", parse_scenario({"input": {"source": "capture", "name": MAT}}))


def test_published_scores_say_their_paper_and_table() -> None:
    found = published_scores()
    assert len(found) >= 10
    for name, row in found.items():
        assert re.search(r" (19|20)\d\d, .*table \d", row.source), name
        assert asked(f'published("{name}")') == row.score
    assert asked('published("T5-XXL GQA", "seconds")') == 0.28
    with pytest.raises(InputError, match="one that is published of dense 7B MQA"):
        asked('published("dense 7B MQA", "cached")')


def test_losses_of_variants_are_means_over_seeds() -> None:
    found = trained_variants()
    assert found.steps == tuple(range(0, 2001, 100))
    for one in found.variants:
        assert one.again.shape == one.sentences.shape == (len(found.seeds), len(found.steps))
        for kind in ("again", "sentences"):
            losses = getattr(one, kind)
            assert asked(f'trained_loss("{one.name}", "{kind}")') == losses[:, -1].mean()
            assert asked(f'trained_loss("{one.name}", "{kind}", 500)') == losses[:, 5].mean()
            of_second = asked(f'trained_loss("{one.name}", "{kind}", 500, 18)')
            assert of_second == losses[found.seeds.index(18), 5]
    assert "one of 0, 100" in refused(asked, 'trained_loss("usual", "again", 50)')
    assert "one of 17, 18" in refused(asked, 'trained_loss("usual", "again", -1, 3)')
