"""The lessons that ship: each step opens, each number is computed, each claim holds."""

import ast
import math
import re
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from simulator.base.assets import LESSONS
from simulator.lesson.course import course, list_lessons, parts
from simulator.lesson.expressions import placeholders
from simulator.lesson.front import PARTS, Level
from simulator.lesson.reader import load_lesson, resolve_step
from simulator.lesson.record import MOST_WORDS, NewStep, record_step, word_count
from simulator.problem.hardware import gpus
from simulator.problem.masks import Mask
from simulator.problem.models import models
from simulator.problem.scenario import Scenario
from simulator.run.trace import simulate
from simulator.run.whole_layer import finished_rows
from simulator.study.captions import program_of
from simulator.study.sweep import figures_of
from tests.helpers.lesson_texts import computed
from tests.helpers.shown_lessons import shipped_lessons, shipped_step
from ui.look.layouts import LAYOUT_PANELS, layout_named
from ui.look.lesson_text import FORMATS

LOADED = shipped_lessons()
STEMS = [*LOADED]
STEPS = [(stem, n) for stem in STEMS for n in range(len(LOADED[stem].steps))]
SMALL = 2048
"""Longest sequence that is run here; longer ones are only counted."""

NAMES = sorted((*models(), *gpus(), *(name.partition("-")[0] for name in gpus())), key=len)[::-1]
ALLOWED = (
    r"\{\{.*?\}\}",
    "|".join(re.escape(name) for name in NAMES),
    r"FlashAttention-[1234]\b",
    r"FlashAttention 2\.1\b",  # a release
    r"GPT-3\b",
    r"H2O\b",
    r"T5-XXL\b",
    r"fp8\b",
    r"\bL2\b",  # a cache
    r"float(16|32|64)\b",
    r"`(F5|0)`",  # keys
    r"\([A-Z][^()]*? (19|20)\d\d(, table \d+)?\)",  # (Dao et al. 2022)
)
QUANTITY = re.compile(
    r"\d|\b(half|halves|quarter|percent|hundreds?|thousands?|millions?|billions?|dozens?)\b"
)


def texts(stem: str, n: int) -> list[str]:
    """Return all that a step says, as its author wrote it."""
    step = LOADED[stem].steps[n]
    return [step.title, step.caption, step.said.question, step.said.answer, step.said.notes]


def typed(text: str) -> list[str]:
    """Return the numbers that were typed into a text."""
    for pattern in ALLOWED:
        text = re.sub(pattern, "", text)
    # A formula may hold the small numbers of its own shape, and no result.
    inside = "".join(re.findall(r"\$(.*?)\$", text))
    found = re.findall(r"\d{2,}|\d\.\d|[5-9]|= *[2-4]", inside)
    return found + [m[0] for m in QUANTITY.finditer(re.sub(r"\$.*?\$", "", text))]


@pytest.mark.sweep(keep=63)
@pytest.mark.parametrize(("stem", "n"), STEPS)
def test_the_row_that_a_step_speaks_of_is_the_row_that_panels_explain(stem: str, n: int) -> None:
    # Panels explain a row of the current row block, whatever row was asked for.
    step = LOADED[stem].steps[n]
    rows = program_of(step.scenario).visit(step.cursor.visit).rows
    spoken = {point.row for point in step.points if point.row is not None}
    spoken |= {p.cell.row for p in step.points if p.cell and p.cell.tensor in ("m", "l", "O")}
    spoken |= {step.row} if step.said.row is not None else set()
    assert all(row in rows for row in spoken)


@pytest.mark.sweep(keep=63)
@pytest.mark.parametrize(("stem", "n"), STEPS)
def test_what_is_pointed_at_can_be_seen(stem: str, n: int) -> None:
    step = LOADED[stem].steps[n]
    for point in step.points:
        if point.line is not None or point.barrier:
            assert "code" in LAYOUT_PANELS[step.layout]
        else:
            assert layout_named(step.layout).board


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Half as much, 4 times", ["4"]),
        ("half as much", ["half"]),
        ("{{ 8 }} on an H100 (Dao et al. 2022), Llama-3-8B, FlashAttention-2 in float16", []),
        (r"$\lceil M/4d \rceil$ and $p^2$ and $O_0$", []),
        ("$d = 64$", ["64"]),
        ("in 2022", ["2", "0", "2", "2"]),
    ],
)
def test_the_search_for_typed_numbers(text, found):
    assert typed(text) == found


def test_the_list_is_in_order():
    found = list_lessons()
    assert len(found) >= 10
    places = [lesson.order for lesson in found]
    assert places == sorted(set(places))
    assert all(lesson.title and lesson.summary for lesson in found)


def test_the_course_has_four_parts_in_the_order_of_what_they_need():
    *four, beside = parts()
    assert [part.title for part in four] == list(PARTS)
    assert [lesson for part in four for lesson in part.lessons] == list(course())
    assert [[lesson.path.stem[:2] for lesson in part.lessons] for part in four] == [
        ["01", "13", "02", "34", "03", "22", "19", "18", "14", "15"],
        ["12", "04", "05", "06", "07", "32", "08", "24", "26", "20"],
        ["27", "09", "29", "10", "23", "40", "11", "33", "41", "25", "30"],
        ["21", "16", "35", "42", "28", "36", "43", "17", "44"],
    ]
    assert [lesson.level for lesson in beside.lessons] == ["lecturers"]


@pytest.mark.parametrize("lesson", list_lessons(), ids=lambda lesson: lesson.path.stem)
def test_a_lesson_takes_about_a_minute_a_step(lesson):
    assert lesson.level in get_args(Level)
    if lesson.level == "lecturers":
        assert lesson.minutes == 3
    elif lesson.path.stem.endswith("one-minute"):
        assert lesson.minutes == 1
    else:
        assert 0.7 <= lesson.minutes / len(lesson.steps) <= 1.5


@pytest.mark.parametrize("stem", STEMS)
def test_lessons_open_whole(stem):
    lesson = LOADED[stem]
    assert [str(mistake) for mistake in lesson.mistakes] == []
    assert 3 <= len(lesson.steps) <= 9
    film = stem.endswith("one-minute")  # nobody stops it to answer
    assert film is not any(step.said.question for step in lesson.steps)
    assert any(step.said.notes for step in lesson.steps)
    assert {step.layout for step in lesson.steps} <= set(LAYOUT_PANELS)


@pytest.mark.parametrize("stem", STEMS)
def test_every_lesson_asks_before_it_shows(stem):
    asked = [step.said.predict for step in LOADED[stem].steps if step.said.predict is not None]
    assert asked
    for each in asked:
        assert word_count(each.ask) <= 30
        assert not typed(each.ask)


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("stem", STEMS)
def test_a_copy_elsewhere_means_the_same(stem, tmp_path):
    lesson, path = LOADED[stem], tmp_path / "mine.md"
    end = lesson.steps[-1]
    count = record_step(path, NewStep("Mine", end.scenario, end.cursor), LESSONS / f"{stem}.md")
    copy = load_lesson(path, LAYOUT_PANELS)
    assert count == len(copy.steps) == len(lesson.steps) + 1
    assert copy.steps[:-1] == lesson.steps
    assert not copy.mistakes
    assert copy.steps[-1].scenario == end.scenario


@pytest.mark.sweep(keep=5)
@pytest.mark.parametrize(("stem", "n"), STEPS)
def test_steps_resolve_and_are_short(stem, n):
    step = shipped_step(stem, n)
    if step.prediction is not None:
        assert math.isfinite(step.prediction.truth)
    for text in (step.title, step.caption, step.notes, step.question, step.answer):
        assert "{{" not in text
        assert "NaN" not in text
        assert text.count("$") % 2 == 0
    assert 8 <= len(step.caption.split()) <= MOST_WORDS, step.caption
    assert word_count(LOADED[stem].steps[n].caption) <= MOST_WORDS
    assert len(step.title) <= 40


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(("stem", "n"), STEPS)
def test_steps_stand_where_the_run_has_numbers(stem, n):
    step = LOADED[stem].steps[n]
    if (step.scenario.attention.seqlen_q or 0) > SMALL:
        return  # the reader has found the cursor in its tile program, by arithmetic
    trace = simulate(step.scenario)
    snapshot = trace.snapshot(step.cursor.visit, step.cursor.op)
    assert snapshot.cursor == step.cursor
    if step.start:
        assert trace.snapshot(step.start.visit, step.start.op).cursor <= step.cursor


@pytest.mark.sweep(keep=63)
@pytest.mark.parametrize(("stem", "n"), STEPS)
def test_numbers_are_computed(stem, n):
    for text in texts(stem, n):
        assert typed(text) == [], text


@pytest.mark.sweep(keep=63)
@pytest.mark.parametrize(("stem", "n"), STEPS)
def test_bare_constants_are_rows_of_the_step(stem, n):
    """A number that is only wrapped is typed all the same, unless the step holds it."""
    step = LOADED[stem].steps[n]
    for text in texts(stem, n):
        for content, _ in placeholders(text):
            node = ast.parse(content.partition("|")[0].strip(), mode="eval").body
            if not any(isinstance(part, ast.Name) for part in ast.walk(node)):
                assert isinstance(node, ast.Constant)
                assert node.value == step.row, text


def exact(stem: str, title: str, expression: str) -> float:
    """Return an expression at a step, with all its digits."""
    step = next(s for s in LOADED[stem].steps if s.title == title)
    return computed(expression, step.scenario, step.cursor)


CLAIMS = [
    ("01-soft-lookup", "Colder: one winner", "weight(8, 10)", ">", 0.99),
    ("02-why-sqrt-d", "One deviation apart", "softmax(0, sqrt(d))", "<", 0.001),
    ("02-why-sqrt-d", "Then learning slows down", "score_gradient(8 * d)", ">", 0.05),
    ("03-causal-mask", "The first row sees itself", 'value("O", 0, 0) - value("V", 0, 0)', "==", 0),
    ("03-causal-mask", "Not zero, after", 'value("S", 0, 0)', "<", 0.5),
    ("04-naive-waits", "Waiting", "memory_seconds() / compute_seconds()", ">", 5),
    ("05-online-softmax", "A first guess", 'value("m", 8)', "<", 4),
    ("05-online-softmax", "Nothing new", "alpha(8)", "==", 1),
    ("05-online-softmax", "The maximum jumps", 'value("m", 8) - old_maximum(8)', ">", 0.1),
    ("05-online-softmax", "The maximum jumps", 'value("S", 8, 10) - value("m", 8)', "==", 0),
    ("05-online-softmax", "Why bother with m", 'value("m", 0) - 128 / log2(exp(1))', ">", 0),
    ("06-flash-attention-1", "What it buys", 'requested("naive") / requested()', ">", 2),
    ("07-flash-attention-2", "What it costs", 'requested_of("K") / requested_of("K", "flash1")',
     ">", 3),
    ("07-flash-attention-2", "All three at once", 'requested("naive") / requested("flash1")',
     ">", 1),
    ("07-flash-attention-2", "All three at once", 'requested("flash1") / requested("flash2")',
     ">", 1),
    ("08-tiles-and-sram", "Where a tile lives", "shared() / shared_limit()", "<", 1),
    ("08-tiles-and-sram", "Taller tiles, fewer trips", "shared() / shared_limit()", "<", 1),
    ("08-tiles-and-sram", "Too large", "shared() / shared_limit()", ">", 1),
    ("08-tiles-and-sram", "Another GPU, another limit", "shared() / shared_limit()", ">", 1),
    ("08-tiles-and-sram", "Another GPU, another limit", 'shared() / shared_limit("H100-SXM")',
     "<", 1),
    ("08-tiles-and-sram", "What FlashAttention-2 ships", "2 * shared() / shared_limit()", "<", 1),
    ("08-tiles-and-sram", "How much reuse", 'flops("naive") / requested("naive")', "<", 100),
    ("09-kv-cache", "It is read at every step", "flops() / compulsory() / flops_per_byte()",
     "<", 0.1),
    ("33-sinks", "The first token is special", "weight(8, 0)", ">", 0.5),
    ("33-sinks", "Take it away", "weight(8, 0)", "==", 0),
    ("33-sinks", "Keep the sinks", "weight(8, 0)", ">", 0.5),
    ("14-heads-and-jobs", "It appears",
     'model_job("induction", 1, 0) - job_at_step("induction", 1, 0, 300)', ">", 0.2),
    ("14-heads-and-jobs", "It appears",
     'model_job("induction", 1, 2) - job_at_step("induction", 1, 2, 300)', ">", 0.2),
    ("14-heads-and-jobs", "It appears",
     'model_job("induction", 1, 1) - job_at_step("induction", 1, 1, 300)', "<", 0.1),
    ("14-heads-and-jobs", "How unlike they are",
     'model_loss("again", 1, 3) / model_loss("again", 1, 2)', ">", 10),
    ("15-kernels", "Again and again", "rows_differ(24, 1)", "<", 0.001),
    ("16-linear-attention", "Overwriting", "overwritten(24, 23)", ">", 0.1),
    ("17-claims-checked", "“It” reads “cat”", "mean_weight(2)", ">", 0.5),
    ("17-claims-checked", "“It” reads “cat”", "weight(8, 2) - weight(6, 2)", "<", 0),
    ("17-claims-checked", "Flash is less exact in float16",
     'rounding_error("standard") / rounding_error("flash")', ">", 3),
    ("17-claims-checked", "Flash is less exact in float16",
     'rounding_error("flash") / rounding_error("float32")', "<", 1.05),
    ("17-claims-checked", "A word reads the words beside it", "weight(7, 8)", ">", 0.5),
    ("17-claims-checked", "A word reads the words beside it",
     'most_in("soft-red-mat-layer2", 2, 3)', "<", 0.19),
    ("17-claims-checked", "A word reads the words beside it",
     'most_in("soft-red-mat-layer2", 2, 3) - weight(2, 3)', ">", 0),
    ("23-one-latent", "Why RoPE is kept apart", "latent_turned(Nk) / latent_turned(1)", ">", 3),
    ("40-what-quality-costs", "One head",
     'trained_loss("one head", "again") / trained_loss("usual", "again")', ">", 5),
    ("40-what-quality-costs", "One head",
     'trained_loss("one head", "sentences") - trained_loss("usual", "sentences")', ">", 0.05),
    ("40-what-quality-costs", "Without √d",
     'trained_loss("no root", "again") / trained_loss("usual", "again")', "<", 1.1),
    ("40-what-quality-costs", "Without √d",
     'trained_loss("one head, no root", "again", -1, 17)', ">", 3),
    ("40-what-quality-costs", "One KV head",
     'trained_loss("MQA", "again", 600) / trained_loss("usual", "again", 600)', ">", 2),
    ("40-what-quality-costs", "One KV head",
     'trained_loss("MQA", "again") - trained_loss("usual", "again")', "<", 0.01),
    ("41-less-of-the-cache", "The newest stay",
     'evicted("window", 61) / evicted("random", 61)', ">", 1.05),
    ("41-less-of-the-cache", "Those that were read stay",
     'evicted("heavy hitters", 61) / evicted("sinks + recent", 61)', "<", 1),
    ("41-less-of-the-cache", "Fewer bits, all tokens",
     'rounded_cache("int8", "token") / evicted("heavy hitters", 247)', "<", 0.2),
    ("42-other-ways-to-mix", "Attention chooses for each query", "weight(8, 10)", ">", 0.5),
    ("44-claims-about-flash", "It loads K and V once",
     'requested_of("K") / requested_of("K", "flash1") - Tr', "==", 0),
    ("44-claims-about-flash", "It does fewer FLOPs", 'both_passes("again") / both_passes("stored")',
     "<", 1),
    ("44-claims-about-flash", "It is an approximation", "error(8)", "<", 0.001),
    ("44-claims-about-flash", "Temperature zero gives one answer", "batch_moves()", ">", 32),
    ("29-two-corners", "One query", 'value("O", 0, 0) - value("V", 0, 0)', "==", 0),
    ("29-two-corners", "The other corner", "visible(Nq - 1) - Nq", "==", 0),
    ("29-two-corners", "The corner that a cache needs", "visible(0) - Nk", "==", 0),
    ("29-two-corners", "More queries than keys", "visible(Nq - Nk - 1)", "==", 0),
    ("29-two-corners", "More queries than keys", "visible(Nq - Nk) - 1", "==", 0),
    ("30-batch-invariance", "Two others come", "batch_moves()", ">", 32),
    ("30-batch-invariance", "A full server", "splits", "==", 1),
    ("30-batch-invariance", "A full server", "batch_moves()", ">", 32),
    ("30-batch-invariance", "A size in place of a number", "batch_moves()", "==", 0),
    ("30-batch-invariance", "The cache grows", "splits - 1 - 60 / split_keys", "==", 0),
    ("25-pages", "One number for a page", 'requested_of("K") / requested_of("table")', ">", 20),
    ("25-pages", "What contiguous caches waste",
     'served_slots("stretches", "inside", 9) / served_slots("shared", "inside", 9)', ">", 5),
    ("25-pages", "What contiguous caches waste", 'served_slots("stretches", "outside", 9)', ">", 0),
    ("25-pages", "Prompts that are shared", 'served_slots("shared", "saved", 9)', ">", 0),
    ("25-pages", "More at once", 'served_at_once("shared") - served_at_once("stretches")', ">", 0),
    ("25-pages", "More at once", 'served_steps("shared") / served_steps("stretches")', "<", 1),
]  # fmt: skip


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize(("stem", "title", "expression", "sign", "limit"), CLAIMS)
def test_what_captions_say_in_words(stem, title, expression, sign, limit):
    found = exact(stem, title, expression)
    holds = {"<": found < limit, ">": found > limit, "==": abs(found - limit) < 1e-6}[sign]
    assert holds, f"{expression} = {found}"


def test_the_row_of_y_that_a_step_explains_is_whole() -> None:
    shown = [each for lesson in LOADED.values() for each in lesson.steps
             if each.choices is not None and each.choices.layer == "row"]  # fmt: skip
    assert shown
    for step in shown:
        now = simulate(step.scenario).snapshot(step.cursor.visit, step.cursor.op)
        assert finished_rows(now)[:, step.row].all()


def test_no_two_heads_of_the_layer_are_nearer_than_those_that_the_caption_names() -> None:
    here = ("14-heads-and-jobs", "How unlike they are")
    pairs = {
        (a, b): exact(*here, f"heads_apart(1, {a}, 1, {b})") for b in range(4) for a in range(b)
    }
    assert min(pairs, key=pairs.__getitem__) == (2, 3)


def test_the_row_that_attention_smooths_reads_a_key_that_is_not_the_nearest() -> None:
    step = LOADED["15-kernels"].steps[0]
    inputs = simulate(step.scenario).inputs
    q, k = inputs.q[0, 8].astype(float), inputs.k[0].astype(float)
    root = q.size**-0.25  # on the scale on which a score is q·k
    nearest = np.linalg.norm(root * q - root * k, axis=1).argmin()
    assert nearest != (k @ q).argmax()


FACTS = [
    ("02-why-sqrt-d", "They spread", "sqrt(score_variance(d))", 8, 0.02),
    ("02-why-sqrt-d", "They spread", "sqrt(score_variance(8 * d))", 22.6, 0.02),
    ("02-why-sqrt-d", "Divide by √d", "score_variance(d, 1)", 1, 0.03),
    ("02-why-sqrt-d", "One deviation apart", "softmax(1, 0)", 0.731, 1e-3),
    ("04-naive-waits", "The square", "Nq * Nk", 1e10, 0),
    ("08-tiles-and-sram", "Where a tile lives", "shared_limit()", 227 * 1024, 0),
    ("08-tiles-and-sram", "Another GPU, another limit", "shared_limit()", 99 * 1024, 0),
    ("08-tiles-and-sram", "What FlashAttention-2 ships", "1000 * Br + Bc", 128064, 0),
    ("08-tiles-and-sram", "What FlashAttention-3 ships", "1000 * Br + Bc", 192192, 0),
    ("09-kv-cache", "Count it", 'kv_per_token("Llama-3-8B")', 128 * 1024, 0),
    ("09-kv-cache", "It grows", 'kv_per_token("Llama-2-70B")', 327_680, 0),
    ("09-kv-cache", "It grows", 'kv_cache("Llama-2-70B", Nk)', 1.34e9, 0.005),
    ("09-kv-cache", "It grows", 'kv_cache("Llama-2-70B", 8 * Nk)', 10.7e9, 0.005),
    ("10-sharing-heads", "GQA: groups share", "kv_heads / heads", 0.25, 0),
    ("10-sharing-heads", "GQA in the wild", 'kv_share("Llama-3.1-405B")', 8 / 128, 0),
    ("10-sharing-heads", "Count fairly", '1 / kv_share("DeepSeek-V3")', 57, 0.003),
    ("11-window", "Linear, not square", "window", 4096, 0),
    ("11-window", "Reach", 'model("Gemma-3-27B", "windowed_layers")', 52, 0),
    ("20-skipped-rescales", "Small steps are skipped", "2 ** threshold", 256, 0),
]
"""What the literature says, typed here so that the program is held against it."""


@pytest.mark.parametrize(("stem", "title", "expression", "fact", "tolerance"), FACTS)
def test_figures_are_those_of_the_literature(stem, title, expression, fact, tolerance):
    assert exact(stem, title, expression) == pytest.approx(fact, rel=max(tolerance, 1e-12))


def test_going_back_gives_the_same_state():
    lesson = LOADED["05-online-softmax"]
    forward = [resolve_step(lesson, n, FORMATS) for n in range(len(lesson.steps))]
    back = [resolve_step(lesson, n, FORMATS) for n in reversed(range(len(lesson.steps)))]
    assert forward == back[::-1]
    assert all(isinstance(step.scenario, Scenario) for step in forward)
    assert len({step.cursor for step in forward}) == len(forward)


@pytest.mark.parametrize("stem", STEMS)
def test_no_lesson_sets_the_modelled_times_of_two_algorithms_beside_each_other(stem: str) -> None:
    """The model of a schedule takes every reload from HBM, so their ratio is not one of kernels."""
    for n in range(len(LOADED[stem].steps)):
        timed = re.findall(r'schedule_seconds\("([^"]*)"', " ".join(texts(stem, n)))
        assert len({*timed} - {""}) <= 1


def said_by(stem: str, title: str) -> tuple[Scenario, str]:
    """Return the scenario and the caption of a step, its numbers filled in."""
    (n,) = (n for n, step in enumerate(LOADED[stem].steps) if step.title == title)
    return LOADED[stem].steps[n].scenario, shipped_step(stem, n).caption


def test_the_lesson_on_the_cache_says_what_the_weights_are_beside_it() -> None:
    scenario, said = said_by("09-kv-cache", "How long that takes")
    tokens, gpu = scenario.attention.seqlen_k, gpus()[scenario.hardware.preset]
    counts = {}
    for name in ("Llama-3-8B", "Llama-2-70B"):
        model = models()[name]
        cache = 2 * model.layers * model.kv_heads * model.head_dim * tokens * 2
        counts[name] = model.params_billion * 1e9 * 2 / cache
        assert re.search(rf"\b{counts[name]:.0f}\b", said)
    assert f"{counts['Llama-3-8B'] * 536_870_912 / gpu.tbps / 1e9:.1f}\u00a0ms" in said


def test_what_of_the_saving_is_the_mask_multiplies_out() -> None:
    scenario, said = said_by("12-one-minute", "The saving")
    tiles, mask = (float(each) for each in re.findall(r"([\d.]+)\s×", said))
    w = program_of(scenario).workload
    naive, flash, dense = (
        figures_of(each).bytes
        for each in (w.as_algorithm("naive"), w, replace(w, mask=Mask(w.seqlen_q, w.seqlen_k)))
    )
    assert tiles == pytest.approx(naive / dense, abs=0.005)
    assert mask == pytest.approx(dense / flash, abs=0.005)
    assert tiles * mask == pytest.approx(naive / flash, rel=0.01)
