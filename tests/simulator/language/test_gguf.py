"""A file in GGUF: numbers of its blocks by the formulas of the format, tokens, what is computed."""

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.language.gguf import read_gguf
from simulator.language.model import LanguageModel
from simulator.language.models import MODELS
from simulator.language.shape import Shape
from simulator.language.tokenizer import BYTE_OF
from simulator.problem.scenario import parse_scenario
from simulator.problem.sentence import computed
from tests.helpers.runs import trace_of
from tests.helpers.small_language_model import weights_of

SIGN_OF = {byte: sign for sign, byte in BYTE_OF.items()}
SPECIAL = ["<|endoftext|>", "<|im_start|>"]
TOKENS = [*SPECIAL, *(SIGN_OF[byte] for byte in range(256)), "Ġt", "he", "Ġthe"]
MERGES = ["Ġ t", "h e", "Ġt he"]
SHAPE = Shape(
    vocabulary=len(TOKENS), width=64, layers=2, heads=4, kv_heads=2, dim=32, hidden=96,
    learned=128, base=5000.0,
)  # fmt: skip
NAMES = {
    "norm1": "attn_norm", "norm2": "ffn_norm", "q": "attn_q", "k": "attn_k", "v": "attn_v",
    "o": "attn_output", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down",
    "embed": "token_embd", "norm": "output_norm",
}  # fmt: skip


def text(said: str) -> bytes:
    return struct.pack("<Q", len(said.encode())) + said.encode()


def value(said: Any) -> bytes:
    if isinstance(said, str):
        return struct.pack("<I", 8) + text(said)
    if isinstance(said, float):
        return struct.pack("<If", 6, said)
    if isinstance(said, int):
        return struct.pack("<II", 4, said)
    kind = 8 if isinstance(said[0], str) else 5
    items = [text(each) if kind == 8 else struct.pack("<i", each) for each in said]
    return struct.pack("<IIQ", 9, kind, len(said)) + b"".join(items)


def q8_0(numbers: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Stored, and as each number is read: scale times an integer."""
    out, read = [], []
    for block in numbers.reshape(-1, 32):
        scale = np.float16(np.abs(block).max() / 127)
        whole = np.round(block / np.float32(scale)).clip(-127, 127).astype(np.int8)
        out.append(scale.tobytes() + whole.tobytes())
        read.append(np.float32(scale) * whole)
    return b"".join(out), np.array(read, np.float32).reshape(numbers.shape)


def q4_1(numbers: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Stored, and as each number is read: the least one and a scale times 0 to 15."""
    out, read = [], []
    for block in numbers.reshape(-1, 32):
        least = np.float16(block.min())
        scale = np.float16((block.max() - block.min()) / 15)
        whole = np.round((block - np.float32(least)) / np.float32(scale)).clip(0, 15)
        whole = whole.astype(np.uint8)
        pairs = bytes(int(whole[n]) | int(whole[n + 16]) << 4 for n in range(16))
        out.append(scale.tobytes() + least.tobytes() + pairs)
        read.append(np.float32(scale) * whole + np.float32(least))
    return b"".join(out), np.array(read, np.float32).reshape(numbers.shape)


def neighbours(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows of W_Q or W_K as llama.cpp has them: what RoPE turns together lies together."""
    out = rows.copy()
    for head in range(heads):
        for n in range(SHAPE.dim // 2):
            first = head * SHAPE.dim
            out[first + 2 * n] = rows[first + n]
            out[first + 2 * n + 1] = rows[first + n + SHAPE.dim // 2]
    return out


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    """A file of random weights, and these as they are read."""
    s, read, stored = SHAPE, {}, {}
    for name, drawn in weights_of(SHAPE).items():
        drawn = drawn.astype(np.float32)
        *block, last = name.removeprefix("blocks.").split(".")
        heads = {"q": s.heads, "k": s.kv_heads}.get(last)
        there = ".".join([*(f"blk.{n}" for n in block), NAMES[last], "weight"])
        if drawn.ndim == 1:
            kind, data, read[name] = 0, drawn.tobytes(), drawn
        else:
            kind, make = (8, q8_0) if last == "embed" else (3, q4_1)
            data, read[name] = make(drawn)
            if heads:
                data, _ = make(neighbours(drawn, heads))
        stored[there] = (drawn.shape, kind, data)
    said = {
        "general.architecture": "llama", "llama.block_count": s.layers,
        "llama.context_length": s.learned, "llama.embedding_length": s.width,
        "llama.feed_forward_length": s.hidden, "llama.attention.head_count": s.heads,
        "llama.attention.head_count_kv": s.kv_heads, "llama.rope.freq_base": s.base,
        "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.dimension_count": s.dim,
        "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)),
        "tokenizer.ggml.merges": MERGES,
    }  # fmt: skip
    head = b"GGUF" + struct.pack("<IQQ", 3, len(stored), len(said))
    head += b"".join(text(key) + value(each) for key, each in said.items())
    data = b""
    for name, (shape, kind, raw) in stored.items():
        head += text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", size) for size in reversed(shape))
        head += struct.pack("<IQ", kind, len(data))
        data += raw + b"\0" * (-len(raw) % 32)
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return path, read


def test_it_computes_what_the_same_weights_compute(
    written: tuple[Path, dict[str, np.ndarray]],
) -> None:
    path, expected = written
    model = read_gguf(path)
    assert (model.shape.heads, model.shape.kv_heads, model.shape.base) == (4, 2, 5000.0)
    assert model.shape.parameters == sum(values.size for values in expected.values())
    tokens = model.tokenizer.encode("the the cat")
    other = LanguageModel(model.shape, expected, model.tokenizer)
    np.testing.assert_array_equal(model.run(tokens).logits, other.run(tokens).logits)


def test_tokens_are_those_of_the_file(written: tuple[Path, dict[str, np.ndarray]]) -> None:
    tokenizer = read_gguf(written[0]).tokenizer
    said = tokenizer.encode("he the  x12é")
    labels = [tokenizer.label(token) for token in said]
    assert labels[:7] == ["<|endoftext|>", "he", " the", " ", " ", "x", "1"]
    assert tokenizer.decode(said[1:]) == "he the  x12é"
    assert tokenizer.label(1) == "<|im_start|>"


def test_a_scenario_runs_with_it(
    written: tuple[Path, dict[str, np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODELS, "smollm2", replace(MODELS["smollm2"], path=written[0]))
    said = {"source": "sentence", "model": "smollm2", "text": "the the cat", "layer": 1}
    scenario = parse_scenario({"tiling": {"rows": 4, "cols": 4}, "input": said})
    trace, found = trace_of(scenario), computed(scenario.input)
    w, v = trace.workload, np.repeat(found.v[1], 2, axis=0)
    assert w.tokens[:2] == ("<|endoftext|>", "t")
    assert w.file.title == "SmolLM2-135M, layer 1"
    o = np.concatenate([trace.row_block(3, i).o for i in range(w.grid.Tr)])
    np.testing.assert_allclose(o, found.weights[1][3] @ v[3], rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((b"GGUF\3", b"GGUF\2"), "no GGUF of version 3"),
        ((text("llama"), text("gemma")), "no Llama, but gemma"),
        ((text("smollm"), text("llama3")), "no tokenizer of SmolLM"),
        ((text("llama.block_count"), text("llama.block_cOunt")), "no Llama in GGUF"),
    ],
)
def test_another_kind_of_file_is_told(
    written: tuple[Path, dict[str, np.ndarray]],
    change: tuple[bytes, bytes],
    words: str,
    tmp_path: Path,
) -> None:
    path = tmp_path / "other.gguf"
    path.write_bytes(written[0].read_bytes().replace(*change, 1))
    with pytest.raises(ValueError, match=words):
        read_gguf(path)
