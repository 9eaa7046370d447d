"""Numbers in the text of a lesson: what they are, and that the page names them all."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulator import InputError
from simulator.lesson_expressions import FORMATS as FORMAT_NAMES
from simulator.lesson_expressions import fill
from simulator.lesson_numbers import FUNCTIONS, QUANTITIES, Numbers
from simulator.lesson_record import (
    NewStep,
    filled,
)
from simulator.lesson_tables import PlaceTable, StepTable
from simulator.playback import first_cursor, last_cursor
from simulator.scenario import Scenario, with_values
from simulator.snapshot import Cursor
from simulator.trace import simulate
from tests.simulator.helpers import program_of, textbook
from ui.lesson_text import FORMATS

DOCS = Path(__file__).resolve().parents[2] / "docs" / "writing-lessons.md"


def computed(expression: str, scenario: Scenario, cursor: Cursor | None = None) -> float:
    """Return an expression with all its digits."""
    at = cursor or last_cursor(program_of(scenario))
    written = {"number": lambda value, _: repr(value)}
    return float(fill(f"{{{{ {expression} | number }}}}", Numbers(scenario, at), written))


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


@pytest.mark.parametrize("algorithm", ["naive", "flash1", "flash2"])
def test_counts_are_those_of_the_run_itself(sentence, algorithm):
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


def test_other_tiles_are_those_of_another_scenario(sentence):
    other = with_values(sentence, {"tiling": {"rows": 5, "cols": 1}})
    assert computed("requested_with(5, 1)", sentence) == computed("requested()", other)
    assert computed("shared_with(5, 1)", sentence) == computed("shared()", other)
    assert computed("requested_with(5, 0)", sentence) == computed("requested()", other)
    other = with_values(sentence, {"tiling": {"rows": 7, "cols": 2}})
    assert computed("requested_with(7, 2)", sentence) == computed("requested()", other)
    assert computed("shared_with(7, 2)", sentence) == computed("shared()", other)


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


def test_the_page_names_everything():
    page = DOCS.read_text(encoding="utf-8")
    keys = [*StepTable.model_fields, *(k for k in PlaceTable.model_fields if k != "end")]
    for name in [*QUANTITIES, *FORMAT_NAMES, *keys]:
        assert f"`{name}" in page, name
    for name in FUNCTIONS:
        assert f"`{name}(" in page, name


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
