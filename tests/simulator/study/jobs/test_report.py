"""What is said of the heads of a run, with and without the model that its layer is of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.base.assets import CAPTURES, SCENARIOS
from simulator.problem.scenario import load_scenario, parse_scenario, with_values
from simulator.problem.workload import resolve
from simulator.run.trace import Trace, simulate
from simulator.study.attention_part import Limits, fitting_part
from simulator.study.jobs.attention_only import figures, read_model
from simulator.study.jobs.jobs import JOB_NAMES
from simulator.study.jobs.report import HeadReport, head_report, model_place

SMALL = CAPTURES / "small"


def report_of(trace: Trace, **more: Any) -> HeadReport:
    w, inputs = trace.single_heads
    return head_report(w, inputs, fitting_part(w, 0, 0), **more)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("name", ["induction", "induction-early", "induction-by-hand"])
def test_a_layer_of_a_known_model_brings_all_its_heads(name: str) -> None:
    trace = simulate(load_scenario(SCENARIOS / f"{name}.toml"))
    place = model_place(trace.workload)
    assert place is not None
    folder, step, layer = place
    model = read_model(folder)
    found = report_of(trace)
    assert found.heads == model.heads
    assert (found.training.step, found.training.layer, layer) == (step, 1, 1)
    assert found.training.trained is (name != "induction-by-hand")
    expected = figures(model, step)
    np.testing.assert_array_equal(found.jobs.scores, expected.jobs.scores)
    for head, without in zip(model.heads, found.training.without, strict=True):
        assert without.loss == figures(model, step, {head}).loss
    assert [each.step for each in found.training.course] == [each.step for each in model.moments]


@pytest.mark.long
def test_a_head_that_is_off_changes_what_comes_after_it() -> None:
    trace = simulate(load_scenario(SCENARIOS / "induction.toml"))
    told: list[float] = []
    whole, off = report_of(trace), report_of(trace, off=(0, 3), progress=told.append)
    assert off.training.off == (0, 3)
    np.testing.assert_array_equal(off.jobs.scores[:4], whole.jobs.scores[:4])
    assert abs(off.jobs.of("induction")[7] - whole.jobs.of("induction")[7]) > 0.9
    np.testing.assert_array_equal(off.distances[:4, :4], whole.distances[:4, :4])
    assert not np.allclose(off.distances[4:, 4:], whole.distances[4:, 4:])
    heads, moments = len(off.heads), len(off.training.course)
    assert told == pytest.approx([
        *(0.4 * n / heads for n in range(1, heads + 1)),
        *(0.4 + 0.5 * n / moments for n in range(1, moments + 1)),
    ])  # fmt: skip
    # Without it the score of induction rises for a while, by heads that read the previous token
    # less, and falls again.
    best = [float(each.jobs.of("induction").max()) for each in off.training.course]
    assert max(best) < 0.4
    assert best[-1] < 0.1
    assert off.training.course[-1].loss == off.training.now.loss != off.training.whole.loss
    unknown = report_of(trace, off=(7, 7)).training
    assert unknown.off is None


@pytest.mark.parametrize(
    "changes",
    [
        {"attention": {"temperature": 2.0}},
        {"mask": {"window": 3}},
        {"attention": {"algorithm": "split-kv", "temperature": 0.5}},
    ],
)
def test_a_run_that_the_model_does_not_do_stands_for_itself(changes: dict[str, Any]) -> None:
    scenario = with_values(load_scenario(SCENARIOS / "induction.toml"), changes)
    found = report_of(simulate(scenario))
    assert found.training is None
    assert found.heads == tuple((None, head) for head in range(4))
    assert found.shares is not None  # its W_O is known


def test_what_y_loses_is_what_the_layer_says() -> None:
    """Of a layer alone, against O of the run and the layer's own shares."""
    path = SMALL / "step-2000-layer1.safetensors"
    scenario = parse_scenario(
        {
            "attention": {"heads": 4, "temperature": 1.5, "dtype": "float32"},
            "input": {"source": "layer", "path": str(path)},
        }
    )
    trace = simulate(scenario)
    found = report_of(trace)
    layer = trace.inputs.layer
    arrays = trace.run(keep_arrays=True)[1]
    gone = np.linalg.norm(layer.shares(arrays["o"]), axis=(1, 2))
    np.testing.assert_allclose(found.shares, gone / np.linalg.norm(arrays["y"]), rtol=1e-4)


def test_a_capture_has_no_y_and_a_part_says_that_it_is_one() -> None:
    tables = {"input": {"source": "capture", "name": "cat-because-layer2"}}
    trace = simulate(parse_scenario(tables))
    found = report_of(trace)
    assert (found.shares, found.training, found.part, found.tokens) == (None, None, "", True)
    assert found.jobs.scores.shape == (12, len(JOB_NAMES))
    w, inputs = trace.single_heads
    part = fitting_part(w, 5, 3, Limits(of_a_head=20, fewest_rows=2))
    some = head_report(w, inputs, part)
    assert some.heads == ((None, 5),)
    assert "weights of a head are more" in some.part
    picked = {**tables["input"], "head": [7, 3]}
    of_picked = report_of(simulate(parse_scenario({"input": picked})))
    assert of_picked.heads == ((None, 7), (None, 3))
    np.testing.assert_allclose(of_picked.jobs.scores, found.jobs.scores[[7, 3]])


@pytest.mark.parametrize(
    "changes",
    [{"position": {"kind": "rope"}}, {"scores": {"softcap": 3.0}}, {"scores": {"alibi": True}},
     {"scores": {"sink_logits": [0.0] * 4}}, {"attention": {"temperature": 2.0}}],
    ids=str,
)  # fmt: skip
def test_a_run_that_does_something_else_is_no_part_of_the_model(changes) -> None:
    said = load_scenario(SCENARIOS / "induction.toml")
    assert model_place(resolve(said)) is not None
    assert model_place(resolve(with_values(said, changes))) is None


def test_layers_of_others_are_no_model(tmp_path: Path) -> None:
    trace = simulate(load_scenario(SCENARIOS / "layer.toml"))
    assert model_place(trace.workload) is None
    found = report_of(trace)
    assert found.training is None
    assert found.shares == pytest.approx([1.0])  # one head, no bias: Y is its share


@pytest.mark.long
def test_queries_of_another_text_have_no_place_among_the_keys() -> None:
    found = report_of(simulate(load_scenario(SCENARIOS / "translation.toml")))
    assert found.cross
    known = {name for name, each in zip(JOB_NAMES, found.jobs.scores.T, strict=True)
             if not np.isnan(each).any()}  # fmt: skip
    assert known == {"first"}
    assert found.jobs.rows[JOB_NAMES.index("first")] == found.jobs.rows.max()
    assert not report_of(simulate(load_scenario(SCENARIOS / "induction.toml"))).cross
