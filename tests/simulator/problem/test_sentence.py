"""A typed text as input: what a layer of the language model is given, run as a file would be."""

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.base.errors import InputError
from simulator.code.run_script import run_script
from simulator.language.gguf import read_gguf
from simulator.language.model import read_model
from simulator.language.models import MODELS, ModelName
from simulator.problem.masked_file import masked_scenario, write_masked
from simulator.problem.masks import BlockMask, Mask
from simulator.problem.scenario import Scenario, load_scenario, parse_scenario, save_scenario
from simulator.problem.sentence import computed
from simulator.problem.workload import read_inputs, resolve
from tests.helpers.refused import refused
from tests.helpers.runs import trace_of
from tests.helpers.small_language_model import SHAPE, put_in_place

TEXT = "the cat, the mat"
LABELS = ("<s>", " ", "the", " ", *"cat,", " ", "the", " ", *"mat")


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_place(tmp_path, monkeypatch)


def typed(text: str = TEXT, layer: int = 1, **tables: Any) -> Scenario:
    said = {"source": "sentence", "text": text, "layer": layer, **tables.pop("input", {})}
    return parse_scenario({"tiling": {"rows": 4, "cols": 4}, **tables, "input": said})


def test_a_text_says_what_a_file_would() -> None:
    w = resolve(typed())
    assert w.tokens == LABELS
    assert (w.input_heads, w.seqlen_q, w.seqlen_k) == ((SHAPE.heads, SHAPE.kv_heads), 14, 14)
    assert (w.head_dim, w.value_dim, w.dtype) == (SHAPE.dim, SHAPE.dim, "float32")
    assert w.mask == Mask(14, 14, causal=True)
    assert w.scale == SHAPE.dim**-0.5
    assert w.file.title == "sentence model, layer 1"


@pytest.mark.parametrize("layer", range(SHAPE.layers))
def test_attention_of_a_run_is_that_of_the_model(layer: int) -> None:
    found, trace = computed(typed().input), trace_of(typed(layer=layer))
    for head in range(SHAPE.heads):
        v = found.v[layer][head // 3]
        o = np.concatenate([trace.row_block(head, i).o for i in range(4)])
        np.testing.assert_allclose(o, found.weights[layer][head] @ v, rtol=2e-4, atol=2e-5)


def test_heads_are_picked_with_the_keys_that_they_read() -> None:
    found, w = computed(typed().input), resolve(typed(input={"head": [4, 5]}))
    inputs = read_inputs(w)
    np.testing.assert_array_equal(inputs.q, found.q[1][4:])
    np.testing.assert_array_equal(inputs.k, found.k[1][1:])
    assert not inputs.v.flags.writeable


def test_numbers_are_rounded_to_the_dtype_that_is_said() -> None:
    inputs = read_inputs(resolve(typed(attention={"dtype": "float16"})))
    exact = computed(typed().input).q[1]
    np.testing.assert_array_equal(inputs.q, exact.astype(np.float16).astype(np.float32))
    assert not np.array_equal(inputs.q, exact)


@pytest.mark.parametrize(
    ("said", "key", "words"),
    [
        ({"source": "sentence"}, "input.text", 'input.text with source = "sentence"'),
        ({"source": "sentence", "text": ""}, "input.text", "input.text with source"),
        ({"source": "sentence", "text": "a", "layer": 3}, "input.layer", "from 0 to 2"),
        ({"source": "sentence", "text": "a", "head": [6]}, "input.head", "from 0 to 5"),
        ({"source": "sentence", "text": "ab" * 500}, "input.text", "512 tokens: this one has 1002"),
    ],
)
def test_what_no_run_can_have_is_refused(said: dict[str, Any], key: str, words: str) -> None:
    with pytest.raises(InputError, match="input") as caught:
        resolve(parse_scenario({"input": said}))
    assert caught.value.mistakes[0].key == key
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own", 'source = "sentence": expected a model: make sentence-model trains it'),
        ("smollm2", 'model = "smollm2": expected SmolLM2-135M: make sentence-models downloads it'),
    ],
)
def test_without_its_file_a_model_says_in_one_line_what_brings_it(
    name: ModelName, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODELS, name, replace(MODELS[name], path=tmp_path / "none"))
    assert refused(resolve, typed(input={"model": name})) == f"{tmp_path / 'none'}: input.{words}"


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\3\0\0\0" + b"\xff" * 40])
def test_a_file_that_is_no_model_is_told_in_one_line(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    for read, words in ((read_gguf, "GGUF"), (read_model, "no model of ours")):
        known = replace(MODELS["smollm2"], path=path, read=read)
        monkeypatch.setitem(MODELS, "smollm2", known)
        with pytest.raises(InputError, match=rf"broken\.gguf: input\.model.*{words}"):
            resolve(typed(input={"model": "smollm2"}))


def test_a_text_longer_than_what_it_learned_from_is_told() -> None:
    notes = [resolve(typed("a" * n)).file.notes for n in (250, 300)]
    assert notes[0] == ()
    assert "texts of 256 tokens" in notes[1][0]


def test_a_scenario_comes_back_from_its_file(tmp_path: Path) -> None:
    path, said = tmp_path / "typed.toml", typed(input={"head": [2]})
    save_scenario(said, path)
    assert load_scenario(path).input == said.input


def test_the_script_of_a_run_holds_its_numbers(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(run_script(trace_of(typed()), 1, 5), encoding="utf-8")
    command = [sys.executable, "-W", "error", "-I", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "largest" in done.stdout


def test_with_a_mask_of_blocks_it_is_written_to_a_file(tmp_path: Path) -> None:
    w, path = resolve(typed(input={"head": [1]})), tmp_path / "copy.safetensors"
    mask = Mask(14, 14, blocks=BlockMask(7, np.eye(2, dtype=np.bool_)))
    write_masked(w, mask, path)
    copy = resolve(masked_scenario(w, mask, path))
    assert copy.tokens == LABELS
    assert copy.mask.blocks == mask.blocks
    np.testing.assert_array_equal(read_inputs(copy).q, read_inputs(w).q)
    assert math.isclose(copy.scale, w.scale)
