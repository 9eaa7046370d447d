"""Numbers in the text of a lesson: what they are, and that the page names them all."""

import gc
import math
import weakref
from dataclasses import replace

import numpy as np
import pytest

from simulator import InputError
from simulator.base.assets import CAPTURES, SCENARIOS
from simulator.lesson.expressions import FORMATS as FORMAT_NAMES
from simulator.lesson.expressions import FUNCTIONS, fill
from simulator.lesson.numbers import QUANTITIES
from simulator.lesson.origins import origin_of
from simulator.lesson.places import Origin, Pointer
from simulator.lesson.record import NewStep, filled
from simulator.lesson.tables import PlaceTable, StepTable
from simulator.problem.facts import PACKED
from simulator.problem.filling import MAX_BLOCKS
from simulator.problem.hardware import gpus
from simulator.problem.scenario import Scenario, load_scenario, parse_scenario, with_values
from simulator.program.algorithms import ALGORITHMS
from simulator.program.playback import Cursor, first_cursor
from simulator.run.snapshot import Cell
from simulator.run.trace import simulate
from simulator.study.captions import Numbers
from simulator.study.jobs.attention_only import figures, read_model
from simulator.study.sqrt_d.experiment import sqrt_d_experiment
from tests.docs_tables import DOCS, PAGES, renewed
from tests.helpers.lesson_texts import computed
from tests.helpers.refused import refused
from tests.helpers.runs import fitted, needed_mask, pairs_of, program_of, textbook
from tests.helpers.runs import scenario as drawn
from ui.look.lesson_text import FORMATS


def test_numbers_of_the_run_are_those_of_a_textbook(sentence):
    trace = simulate(sentence)
    w = trace.workload
    scores = trace.inputs.k[0].astype(float) @ trace.inputs.q[0, 8].astype(float) * w.scale
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    o, _ = textbook(w, trace.inputs, 0)
    assert computed("weight(8, 10)", sentence) == pytest.approx(weights[10], abs=1e-6)
    assert computed("strongest(8)", sentence) == weights.argmax()
    bits = -(weights * np.log2(weights)).sum()
    assert computed("entropy(8)", sentence) == pytest.approx(bits, abs=1e-5)
    assert computed('value("m", 8)', sentence) == pytest.approx(scores.max(), abs=1e-5)
    assert computed('value("O", 8, 3)', sentence) == pytest.approx(o[8, 3], abs=2e-3)
    assert computed("error(8)", sentence) == pytest.approx(
        np.abs(trace.output[0, 8] - o[8]).max(), rel=1e-6
    )
    jump = Cursor(13, 5)
    before, after = scores[:9].max(), scores[:12].max()
    assert computed("old_maximum(8)", sentence, jump) == pytest.approx(before, abs=1e-5)
    assert computed("alpha(8)", sentence, jump) == pytest.approx(math.exp(before - after), rel=1e-5)


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_counts_are_those_of_the_run_itself(sentence, algorithm):
    if needed_mask(algorithm):
        sentence = load_scenario(SCENARIOS / "causal.toml")
    if PACKED.get(algorithm) == "latent":
        sentence = load_scenario(SCENARIOS / f"{algorithm}.toml")
    own = simulate(with_values(sentence, {"attention": {"algorithm": algorithm}}))
    summary = own.summary()["hbm"]
    total = summary["read_bytes"] + summary["write_bytes"]
    assert computed(f'requested("{algorithm}")', sentence) == total
    assert computed("requested_so_far()", own.workload.scenario) == total
    parts = sum(
        computed(f'requested_of("{tensor}", "{algorithm}")', sentence)
        for tensor in own.program.tensors
    )
    assert parts == total
    assert computed(f'visits("{algorithm}")', sentence) == len(own)
    assert computed(f'compulsory("{algorithm}")', sentence) == summary["compulsory_bytes"]
    assert computed(f'shared("{algorithm}")', sentence) == own.summary()["sram"]["peak_bytes"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_bytes_so_far_are_those_of_the_ops_done(algorithm):
    scenario = drawn(algorithm, **fitted(algorithm, nq=5, nk=6))
    program, done = program_of(scenario), 0
    for visit in range(len(program)):
        for number, op in enumerate(program.ops(visit)):
            done += sum(move.bytes for move in op.moves)
            assert computed("requested_so_far()", scenario, Cursor(visit, number)) == done


def test_other_tiles_are_those_of_another_scenario(sentence):
    other = with_values(sentence, {"tiling": {"rows": 5, "cols": 1}})
    assert computed("requested_with(5, 1)", sentence) == computed("requested()", other)
    assert computed("shared_with(5, 1)", sentence) == computed("shared()", other)
    assert computed("requested_with(5, 0)", sentence) == computed("requested()", other)
    other = with_values(sentence, {"tiling": {"rows": 7, "cols": 2}})
    assert computed("requested_with(7, 2)", sentence) == computed("requested()", other)
    assert computed("shared_with(7, 2)", sentence) == computed("shared()", other)


def odd_scenario(**words) -> Scenario:
    """Return a scenario in which no two quantities are the same."""
    mask = {"causal": True, "window": 6, "sinks": 1}
    shape = {"nq": 20, "nk": 23, "d": 12, "dv": 10, "heads": 4, "kv_heads": 2, "rows": 7, "cols": 3}
    return drawn(**(shape | {"dtype": "float16", "mask": mask, "scale": 0.3} | words))


def test_quantities_are_those_of_the_scenario():
    expected = {
        "heads": 4, "kv_heads": 2, "Nq": 20, "Nk": 23, "d": 12, "dv": 10, "Br": 7, "Bc": 3,
        "Tr": 3, "Tc": 8, "window": 6, "sinks": 1, "scale": 0.3, "temperature": 0.7,
        "element_bytes": 2, "splits": 1, "features": 0, "threshold": 0, "softcap": 0,
        "dilation": 1, "documents": 0,
        "split_keys": 24, "batch": 1,
    }  # fmt: skip
    scenario = odd_scenario(temperature=0.7)
    assert {name: computed(name, scenario) for name in QUANTITIES} == expected
    scenario = with_values(scenario, {"mask": {"dilation": 9, "documents": [5, 4, 6, 3, 5]}})
    expected |= {"dilation": 9, "documents": 5}
    assert {name: computed(name, scenario) for name in QUANTITIES} == expected


def test_functions_of_numbers(sentence):
    assert computed("sqrt(2)", sentence) == math.sqrt(2)
    assert computed("exp(0 - 1)", sentence) == math.exp(-1)
    assert computed("log2(10)", sentence) == math.log2(10)
    parts = [math.exp(x) for x in (1, 3, 2)]
    assert computed("softmax(1, 3, 2)", sentence) == pytest.approx(parts[0] / sum(parts))
    assert computed("softmax(1000, 1000)", sentence) == 0.5


def test_counts_of_a_masked_run():
    scenario = odd_scenario()
    w = program_of(scenario).workload
    kinds = pairs_of(w).kinds(7, 3)
    found = {name: computed(f'tiles("{name}")', scenario) for name in (
        "total", "visited", "skipped", "full", "partial",
    )}  # fmt: skip
    assert found == {
        "total": 4 * kinds.size, "visited": 4 * (kinds > 0).sum(),
        "skipped": 4 * (kinds == 0).sum(), "full": 4 * (kinds == 2).sum(),
        "partial": 4 * (kinds == 1).sum(),
    }  # fmt: skip
    assert computed("visits()", scenario) == found["visited"]
    assert computed("launches()", scenario) == 1
    assert computed('launches("naive")', scenario) == 3
    # Q and O of four heads, K and V of two, two bytes each.
    assert computed("floor()", scenario) == 2 * (4 * 20 * (12 + 10) + 2 * 23 * (12 + 10))
    assert computed('flops("naive")', scenario) == 2 * 4 * 20 * 23 * (12 + 10)
    assert computed('memory_seconds("naive")', scenario) == pytest.approx(
        computed('requested("naive")', scenario) / 3.35e12
    )
    assert computed('compute_seconds("naive")', scenario) == pytest.approx(
        computed('flops("naive")', scenario) / 989e12, rel=1e-3
    )
    told = refused(computed, "compute_seconds()", odd_scenario(dtype="float32"))
    assert "float16 or bfloat16" in told
    assert [computed(f"visible({row})", scenario) for row in range(20)] == [
        sum(pairs_of(w).sees(row, key) for key in range(23)) for row in range(20)
    ]


def test_tiles_as_small_as_blocks_can_be_many():
    scenario = drawn(nq=4, nk=MAX_BLOCKS)
    assert computed("requested_with(4, 1)", scenario) > 0
    longer = drawn(nq=4, nk=MAX_BLOCKS + 1)
    told = refused(computed, "requested_with(4, 1)", longer)
    assert f"cols = 1: expected tiles that cut {MAX_BLOCKS + 1} into at most" in told


def test_the_end_of_a_run_is_asked_for_up_to_so_many_scores():
    scenario = drawn(nq=8, nk=6, heads=2)
    error = FUNCTIONS["error"]
    assert error(Numbers(scenario, first_cursor(), 2 * 8 * 6), 0) < 1e-6
    with pytest.raises(InputError, match="a run of at most 95 scores"):
        error(Numbers(scenario, first_cursor(), 2 * 8 * 6 - 1), 0)


def test_figures_of_gpus(sentence):
    a100 = gpus()["A100-80-SXM"]
    assert computed('shared_limit("A100-80-SXM")', sentence) == 163 * 1024
    assert computed("shared_limit()", sentence) == 227 * 1024
    assert computed('sms("A100-80-SXM")', sentence) == 108
    assert computed("sms()", sentence) == 132
    assert computed('flops_per_byte("A100-80-SXM")', sentence) == a100.tflops / a100.tbps
    assert "expected one of" in refused(computed, 'sms("A1000")', sentence)


def test_weights_are_those_of_the_rows_that_see():
    scenario = drawn(nq=5, nk=3, d=1, dv=1, mask={"causal": True})  # two rows see nothing
    w = [[computed(f"weight({row}, {key})", scenario) for key in range(3)] for row in range(5)]
    sums = [computed(f"weight_sum({row})", scenario) for row in range(5)]
    assert sums == [pytest.approx(math.fsum(row), abs=1e-12) for row in w]
    assert sums == pytest.approx([0, 0, 1, 1, 1])
    assert [computed(f"mean_weight({key})", scenario) for key in range(3)] == pytest.approx(
        [math.fsum(row[key] for row in w) / 5 for key in range(3)], rel=1e-12
    )
    assert computed("strongest(4)", scenario) == max(range(3), key=lambda key: w[4][key])
    assert "a row that sees a key" in refused(computed, "strongest(1)", scenario)
    bits = -sum(x * math.log2(x) for x in w[4])
    assert computed("entropy(4)", scenario) == pytest.approx(bits, rel=1e-5)
    assert computed("error(4)", scenario) < 1e-6


@pytest.mark.parametrize(
    ("function", "rows", "cols"),
    [
        ("weight", 8, 6), ("weight_sum", 8, 0), ("strongest", 8, 0), ("entropy", 8, 0),
        ("visible", 8, 0), ("mean_weight", 6, 0), ("error", 8, 0),
    ],
)  # fmt: skip
def test_rows_and_keys_are_those_of_the_matrix(function, rows, cols):
    scenario = drawn(nq=8, nk=6, d=1, dv=1)
    computed(f"{function}({', '.join(str(n - 1) for n in (rows, cols) if n)})", scenario)
    for row, col in (
        {(-1, 0), (rows, 0), (0, -1), (0, cols)} if cols else {(-1, None), (rows, None)}
    ):
        at = f"{row}" if col is None else f"{row}, {col}"
        assert "expected a cell of a matrix of " in refused(computed, f"{function}({at})", scenario)


def test_rows_of_the_current_block(sentence):
    jump = Cursor(13, 5)  # rows 8 to 11
    for row in (8, 11):
        computed(f"alpha({row})", sentence, jump)
    for row in (7, 12):
        told = refused(computed, f"old_maximum({row})", sentence, jump)
        assert "expected a row of the current block, 8 to 11" in told


def test_tokens_are_counted_from_the_first(sentence):
    last = program_of(sentence).workload.seqlen_k - 1
    numbers = Numbers(sentence, first_cursor())
    tokens = program_of(sentence).workload.tokens
    assert fill(f"{{{{ token(0) }}}} {{{{ token({last}) }}}}", numbers, {}) == (
        f"{tokens[0]} {tokens[last]}"
    )
    for key in (-1, last + 1):
        assert "a key with a token" in refused(computed, f"token({key})", sentence)


@pytest.mark.long
def test_the_experiment_is_the_one_that_is_shown(sentence):
    *_, last = sqrt_d_experiment(dims=(16,))
    for scaled, words in ((False, "16"), (False, "16, 0"), (True, "16, 1")):
        point = last.points[0].scaled if scaled else last.points[0].plain
        assert computed(f"score_variance({words})", sentence) == point.variance.mean
        assert computed(f"score_entropy({words})", sentence) == point.entropy.mean
        assert computed(f"score_gradient({words})", sentence) == point.gradient.mean
    assert computed("score_keys()", sentence) == last.keys
    assert computed("score_variance(1024)", sentence) == pytest.approx(1024, rel=0.1)
    told = refused(computed, "score_variance(1025)", sentence)
    assert "d = 1025: expected a whole number from 1 to 1024" in told


def test_caches_of_models(sentence):
    llama = '"Llama-3-8B"'  # 32 layers of 8 KV heads of 128 numbers, K and V, two bytes each
    token = 32 * 2 * 8 * 128 * 2
    assert computed(f'model({llama}, "kv_heads")', sentence) == 8
    assert "a whole number" in refused(computed, f'model({llama}, "learned_sinks")', sentence)
    assert computed(f"kv_per_token({llama})", sentence) == token
    assert computed(f"kv_per_token({llama}, 1)", sentence) == token / 8
    assert computed(f"kv_share({llama})", sentence) == 8 / 32
    assert computed(f"kv_share({llama}, 2)", sentence) == 2 / 32
    assert computed(f"kv_cache({llama}, 1001)", sentence) == 1001 * token
    assert computed(f'kv_cache({llama}, 1001, "allocated")', sentence) == 1008 * token
    gemma = 2 * 16 * 128 * 2  # of a layer: 52 of them keep 1024 tokens, 10 all
    assert computed('kv_cache("Gemma-3-27B", 5000, "window_capped")', sentence) == gemma * (
        52 * 1024 + 10 * 5000
    )
    assert computed(f"decode_seconds({llama}, 1000)", sentence) == pytest.approx(
        1000 * token / 3.35e12
    )
    left = 80e9 - 2 * 8.03e9
    assert computed(f"sequences({llama}, 8192)", sentence) == left // (8192 * token)
    assert computed(f'sequences({llama}, 8192, "H200")', sentence) == (
        (141e9 - 2 * 8.03e9) // (8192 * token)
    )
    assert "expected one of Llama-2-7B" in refused(computed, 'kv_per_token("Llama-9")', sentence)
    assert "a divisor of heads = 32" in refused(computed, f"kv_per_token({llama}, 5)", sentence)


def test_formats(sentence):
    numbers = Numbers(sentence, first_cursor())
    text = (
        "{{ 2 ** 20 | bytes }}, {{ 10 ** 9 | decimal }}, {{ 10 ** 6 }}, {{ 1 / 8 }}, "
        "{{ 1 / 8 | percent 1 }}, {{ 7 / 2 | times }}, {{ 1 / 4 | number 1 }}, "
        "{{ 1 / 1000 | time }}, {{ token(8) | text }}"
    )
    thin, nb = "\u2009", "\u00a0"
    assert fill(text, numbers, FORMATS) == (
        f"1.0{nb}MiB, 1.00{nb}GB, 1{thin}000{thin}000, 0.125, 12.5{nb}%, 3.5{nb}×, 0.2, "
        f"1.0{nb}ms, it"
    )
    assert set(FORMATS) == set(FORMAT_NAMES) - {"text"}


def test_jobs_of_heads_are_those_of_the_study():
    induction = load_scenario(SCENARIOS / "induction.toml")
    model = read_model(CAPTURES / "small")
    whole, off = figures(model, 2000), figures(model, 2000, {(0, 3)})
    for n, head in enumerate(model.heads):
        expected = whole.jobs.of("previous")[n]
        assert computed(f'model_job("previous", {head[0]}, {head[1]})', induction) == expected
    assert computed('model_job("induction", 1, 3, 0, 3)', induction) == off.jobs.of("induction")[7]
    assert computed('model_loss("again")', induction) == whole.loss["again"]
    assert computed('model_loss("again", 0, 3)', induction) == off.loss["again"]
    # Of the run itself, whose Q and K are rounded.
    assert computed('job("induction", 3)', induction) == pytest.approx(
        whole.jobs.of("induction")[7], abs=0.01
    )
    tables = {"input": {"source": "capture", "name": "cat-because-layer2", "head": [8, 3]}}
    capture = parse_scenario(tables)
    inputs = simulate(capture).inputs
    scores = (
        inputs.q[0].astype(float) @ inputs.k[1].astype(float).T / np.sqrt(32)
    )  # keys in order of heads
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert computed('job("next", 8)', capture) == pytest.approx(
        np.diag(weights, 1).mean(), abs=1e-6
    )


@pytest.mark.parametrize(
    ("scenario", "expression", "told"),
    [
        ("induction", 'job("next", 0)', "that a row can do"),
        ("induction", 'job("noun", 0)', "one of previous, next"),
        ("induction", 'job("first", 4)', "a head of the run, of 4"),
        ("induction", 'job(1, "x")', "a head of the run, of 4"),
        ("induction", 'model_job("first", 2, 0)', "a layer and a head of the model"),
        ("induction", 'model_job("first", 0, 0, 0, 9)', "a layer and a head of the model"),
        ("induction", 'model_loss("nouns")', "one of sentences, repeated, again"),
        ("causal", 'model_loss("again")', "a layer whose whole model is beside it"),
        ("causal", 'job("same", 0)', "that a row can do"),
    ],
)
def test_jobs_that_are_none_are_told(scenario, expression, told):
    with pytest.raises(InputError, match=told):
        computed(expression, load_scenario(SCENARIOS / f"{scenario}.toml"))


def test_the_page_names_every_key_and_quantity():
    page = (DOCS / "writing-lessons.md").read_text(encoding="utf-8")
    for name in [*QUANTITIES, *StepTable.model_fields, *PlaceTable.model_fields.keys() - {"end"}]:
        assert f"`{name}" in page, name


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_of_a_page_are_those_of_the_code(name):
    page = (DOCS / name).read_text(encoding="utf-8")
    assert page == renewed(name), "make docs-tables writes them again"


def test_numbers_are_put_in_at_the_cursor_of_the_step(sentence):
    view = NewStep(
        "At {{ Nk }}", sentence, Cursor(13, 5), caption="{{ alpha(8) }}",
        question="{{ 1 }}?", answer="{{ 2 }}", notes="{{ 3 }}",
    )  # fmt: skip
    alpha = computed("alpha(8)", sentence, Cursor(13, 5))
    assert filled(view, FORMATS) == replace(
        view, title="At 13", caption=f"{alpha:.3f}", question="1?", answer="2", notes="3"
    )
    with pytest.raises(InputError, match=r"alpha\(0\)"):
        filled(replace(view, caption="{{ alpha(0) }}"), FORMATS)


@pytest.mark.long
@pytest.mark.parametrize(("length", "kept"), [(64, True), (32768, False)])
def test_a_large_run_goes_with_the_step_that_asks_for_it(length: int, kept: bool) -> None:
    numbers = Numbers(drawn(nq=length, nk=length, d=64, rows=64, cols=64), first_cursor())
    run = weakref.ref(numbers.trace)
    assert numbers.trace is run()
    del numbers
    gc.collect()
    assert (run() is not None) is kept


def test_a_number_comes_from_a_setting_or_from_cells_of_the_run() -> None:
    numbers = Numbers(drawn(nq=8, nk=8), first_cursor())
    assert origin_of("Bc | count", numbers) == Origin((), "Bc")
    assert origin_of("alpha(3) - alpha(1 + 2)", numbers) == Origin((Pointer(cell=Cell("m", 3, 0)),))
    assert origin_of("Nq * Nk", numbers) is origin_of("kv_heads", numbers) is None
