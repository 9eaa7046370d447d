"""Numbers of masks, layers, models and heads that lessons ask for, against plain NumPy."""

import numpy as np
import pytest

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from simulator.problem.hardware import gpus
from simulator.problem.models import models
from simulator.problem.scenario import load_scenario, with_values
from simulator.program.playback import Cursor
from simulator.run.trace import simulate
from simulator.study.captions import Numbers
from simulator.study.kv_cache.counts import cache_bytes
from tests.helpers.lesson_texts import computed
from tests.helpers.refused import refused


def at(name: str, visit: int = 0) -> Numbers:
    return changed(name, {}, visit)


def changed(name: str, change: dict[str, dict[str, object]], visit: int = 0) -> Numbers:
    return Numbers(with_values(load_scenario(SCENARIOS / f"{name}.toml"), change), Cursor(visit, 0))


def test_zeroing_after_the_softmax_is_right_once_it_is_renormalised() -> None:
    n = at("causal")
    trace = simulate(n.scenario)
    q, k = (each[0].astype(float) for each in (trace.inputs.q, trace.inputs.k))
    row = 8
    scores = q[row] @ k.T * trace.workload.scale
    p = np.exp(scores - scores.max())
    p /= p.sum()
    seen = trace.workload.mask.visible(range(row, row + 1), range(len(p)))[0]
    right = np.where(seen, p, 0) / p[seen].sum()
    assert computed(f"kept({row})", n) == pytest.approx(p[seen].sum(), rel=1e-5)
    off = np.abs(np.where(seen, p, 0) - right).max()
    assert computed(f"zeroed_off({row})", n) == pytest.approx(off, rel=1e-4)
    assert off > 0.01
    assert computed(f"zeroed_off({row}, 1)", n) < 1e-6


def test_what_leaks_is_the_weight_of_other_texts_under_the_causal_mask_alone() -> None:
    n = changed("causal", {"mask": {"documents": [13, 30, 21]}})
    trace = simulate(n.scenario)
    q, k = (each[0].astype(float) for each in (trace.inputs.q, trace.inputs.k))
    row, begins = 45, 43
    e = np.exp(q[row] @ k[: row + 1].T * trace.workload.scale)
    assert computed(f"leaked({row})", n) == pytest.approx(e[:begins].sum() / e.sum(), rel=1e-5)
    assert computed("leaked(12)", n) == 0


def test_a_layers_numbers_are_those_of_its_weights() -> None:
    n = at("induction")
    layer = simulate(n.scenario).inputs.layer
    width = layer.x.shape[1]
    assert computed("layer_width()", n) == width
    assert computed("layer_parameters()", n) == 4 * width**2
    assert computed("layer_flops('q')", n) == 2 * len(layer.x) * width**2
    assert sum(computed(f"given(20, {h})", n) for h in range(4)) == pytest.approx(1)
    wq, wk = (layer.weights[name][:, 12:24].astype(float) for name in ("wq", "wk"))
    a = wq @ wk.T
    apart = np.linalg.norm(a - a.T) / np.linalg.norm(a)
    assert computed("asymmetry(1)", n) == pytest.approx(apart)
    assert 0 < computed("layer_error()", n) < 0.02


def test_the_head_the_layer_and_the_steps_are_those_of_the_files() -> None:
    assert [computed(f"{name}()", at("induction")) for name in ("head", "layer", "steps")] == [
        0, 1, 2000,
    ]  # fmt: skip
    assert computed("head()", at("induction", 39)) == 3
    assert computed("steps()", at("induction-early")) == 300


def test_an_fp8_cache_doubles_what_the_weights_leave_and_no_more() -> None:
    n, gpu, model = at("flash2"), gpus()["H100-SXM"], models()["Llama-3-8B"]
    left = gpu.memory_bytes - computed('model_weights("Llama-3-8B")', n)
    one = cache_bytes(model, 4096, "fp8").allocated
    both = [computed(f'sequences("Llama-3-8B", 4096, "H100-SXM", "{t}")', n) for t in
            ("float16", "fp8")]  # fmt: skip
    assert both == [left // (2 * one), left // one]
    assert computed('gpu_memory("H100-SXM")', n) == gpu.memory_bytes


@pytest.mark.parametrize(
    ("name", "expression", "words"),
    [
        ("flash2", "layer_width()", "a whole layer"),
        ("flash2", "steps()", "a layer of a model"),
        ("layer", "layer_flops('z')", "one of q, k, v"),
        ("induction", "given(32, 0)", "one of 32 rows"),
        ("induction", "given(0, 4)", "one of 4 heads"),
        ("induction", "asymmetry(4)", "one of 4 heads"),
        ("flash2", 'model_weights("Nobody")', "one of"),
    ],
)
def test_what_cannot_be_asked_is_told(name: str, expression: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        computed(expression, at(name))


@pytest.mark.parametrize("expression", ["kept(99)", "zeroed_off(99)", "zeroed_off(-1)"])
def test_rows_that_there_are_not_are_refused(expression: str) -> None:
    assert "a cell of a matrix of 64 x 1" in refused(computed, expression, at("causal"))


def test_what_a_key_has_left_at_a_row_is_the_product_of_the_gates_between() -> None:
    n = at("gla")
    gate = simulate(n.scenario).inputs.gate[0].astype(float)
    for row, key in ((5, 5), (5, 2), (7, 0)):
        left = np.prod(gate[key + 1 : row + 1], axis=0).mean()
        assert computed(f"left_of({row}, {key})", n) == pytest.approx(left, rel=1e-6)
    assert computed("left_of(5, 5)", n) == 1
    for expression in ("left_of(3, 4)", "left_of(3, -1)", f"left_of({len(gate)}, 0)"):
        assert "a key at or before a row of the run" in refused(computed, expression, n)
    for other in ("causal", "deltanet"):
        assert "a run whose state decays" in refused(computed, "left_of(3, 2)", at(other))


def test_what_the_state_has_for_a_key_is_asked_before_its_value_is_written() -> None:
    n = at("deltanet")
    inputs = simulate(n.scenario).inputs
    k, v, strength = (x[0].astype(float) for x in (inputs.k, inputs.v, inputs.gate))
    state = np.zeros((k.shape[1], v.shape[1]))
    other, length = k[2] / np.linalg.norm(k[2]), np.linalg.norm(v[2])
    for row, (key, value, written) in enumerate(zip(k, v, strength, strict=True)):
        own = key / np.linalg.norm(key)
        old = state.T @ own
        if row in (1, 4):
            for col in (0, v.shape[1] - 1):
                told = computed(f"recalled({row}, {col})", n)
                assert told == pytest.approx(old[col], rel=1e-4, abs=1e-6)
        before = state.T @ other
        state += written * np.outer(own, value - old)
        if row in (4, 7):
            moved = np.linalg.norm(state.T @ other - before) / length
            assert computed(f"overwritten({row}, 2)", n) == pytest.approx(moved, rel=1e-4)
            assert moved > 0.01
    for expression in ("recalled(2, -1)", f"recalled(2, {v.shape[1]})"):
        assert "a number of a row of a run that corrects" in refused(computed, expression, n)
    for other in ("causal", "gla"):
        with pytest.raises(InputError, match="a number of a row of a run that corrects"):
            computed("recalled(2, 0)", at(other))
        assert "rows of a run that corrects" in refused(computed, "overwritten(2, 1)", at(other))
