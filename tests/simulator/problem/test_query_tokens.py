"""Queries with tokens of their own: cross attention."""

import json
import runpy
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from simulator.base.assets import SCENARIOS
from simulator.lesson.expressions import fill
from simulator.problem.scenario import load_scenario, parse_scenario
from simulator.problem.workload import resolve
from simulator.program.playback import Cursor
from simulator.run.snapshot import Cell
from simulator.run.trace import simulate
from simulator.study.captions import Numbers
from tests.helpers.refused import refused
from ui.board.words import describe
from ui.look.lesson_text import FORMATS

ENGLISH = ["the", "cat", "did", "not", "want", "to", "sleep", "on", "the", "red", "mat", "."]
GERMAN = ["die", "Katze", "wollte", "nicht", "auf", "der", "roten", "Matte", "schlafen", "."]
DEMO = SCENARIOS / "translation.toml"


def test_rows_have_the_tokens_of_queries_and_columns_those_of_keys() -> None:
    w = resolve(load_scenario(DEMO))
    assert not w.file.said.model  # no layer has made it
    assert [w.query_token(row) for row in range(w.queries)] == GERMAN
    assert [w.key_token(key) for key in range(w.seqlen_k)] == ENGLISH
    assert w.key_token(len(ENGLISH)) == ""
    assert w.aligned_tokens == ()  # no key stands where a query stands


def test_packed_heads_have_the_tokens_of_their_queries(tmp_path: Path) -> None:
    stored = load_file(SCENARIOS / "translation.safetensors")
    path = tmp_path / "mine.safetensors"
    save_file({"q": stored["q"], "k": stored["k"][:1], "v": stored["v"][:1]}, path,
              {"query_tokens": json.dumps(GERMAN)})  # fmt: skip
    said = {"input": {"source": "file", "path": str(path)}}
    w = resolve(parse_scenario(said | {"attention": {"algorithm": "split-kv"}}))
    assert [w.query_token(row) for row in range(w.seqlen_q)] == GERMAN * 2


def test_queries_alone_may_have_tokens(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    save_file(load_file(SCENARIOS / "translation.safetensors"), path,
              {"query_tokens": str(GERMAN).replace("'", '"')})  # fmt: skip
    w = resolve(parse_scenario({"input": {"source": "file", "path": str(path)}}))
    assert w.has_tokens
    assert (w.query_token(8), w.key_token(6)) == ("schlafen", "")


def test_the_demo_is_what_its_script_writes(tmp_path: Path) -> None:
    script = runpy.run_path(str(SCENARIOS.parents[1] / "docs/make_translation.py"))
    script["main"](tmp_path / "again.safetensors")
    again = load_file(tmp_path / "again.safetensors")
    for name, values in load_file(SCENARIOS / "translation.safetensors").items():
        np.testing.assert_allclose(again[name], values, atol=1e-5)


def test_a_cell_is_told_by_the_words_of_both_texts() -> None:
    shot = simulate(load_scenario(DEMO)).snapshot(visit=3)
    assert describe(shot, Cell("S", 8, 6)).endswith("“schlafen” → “sleep”")
    assert describe(shot, Cell("Q", 8, 0)).endswith("“schlafen”")
    assert describe(shot, Cell("K", 6, 0)).endswith("“sleep”")


def test_a_lesson_may_say_the_word_of_a_query() -> None:
    numbers = Numbers(load_scenario(DEMO), Cursor(0, 0))
    text = "{{ query_token(8) }} asks {{ token(6) }}"
    assert fill(text, numbers, FORMATS) == "schlafen asks sleep"
    assert "a query with a token, of 10" in refused(fill, "{{ query_token(10) }}", numbers, FORMATS)
