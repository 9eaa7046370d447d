"""Layers of one model that differ, recorded by the command: each file says what is its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simulator.engines.numpy_engine import numpy_engine
from simulator.problem.scenario import parse_scenario
from simulator.run.trace import Trace, simulate, trace_of
from ui.app.cli import main

pytestmark = pytest.mark.peers
for package in ("torch", "transformers"):
    pytest.importorskip(package, reason=f"{package} is not here: make test-peers brings it")

TEXT = (
    "a window of six tokens is shorter than this text of twenty one words so that its edge is seen"
)
WINDOW = 6
SIZES = {"vocab_size": 61, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4,
         "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
         "max_position_embeddings": 128, "initializer_range": 0.2, "sliding_window": WINDOW,
         "bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}  # fmt: skip
LOCAL = ["sliding_attention", "full_attention"] * 2


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., tuple[list[Path], list[np.ndarray]]]:
    """Return files of layers of a small model, and what its output projections were given."""

    def recorded(kind: str, layers: list[int], **settings: Any) -> tuple[list[Path], list[Any]]:
        import torch
        import transformers
        from tokenizers import Tokenizer, models, pre_tokenizers

        words = {word: n for n, word in enumerate(["[UNK]", *dict.fromkeys(TEXT.split())])}
        tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
        folder = tmp_path / "model"
        fast.save_pretrained(folder)
        torch.manual_seed(0)
        config = getattr(transformers, f"{kind}Config")(**SIZES | settings)
        getattr(transformers, f"{kind}Model")(config).save_pretrained(folder)
        model, given = transformers.AutoModel.from_pretrained(folder).eval(), []
        for n in layers:
            model.layers[n].self_attn.o_proj.register_forward_pre_hook(
                lambda own, args: given.append(args[0][0].float().numpy())
            )
        with torch.no_grad():
            model(**fast(TEXT, return_tensors="pt"))
        numbers = ",".join(map(str, layers))
        out = tmp_path / "out.safetensors"
        assert main(["capture", str(folder), numbers, str(out), TEXT]) == 0
        ends = [f"-{n}" for n in layers] if len(layers) > 1 else [""]
        return [tmp_path / f"out{end}.safetensors" for end in ends], given

    return recorded


def opened(path: Path, **mask: Any) -> Trace:
    said = {"input": {"source": "file", "path": str(path)}, "tiling": {"rows": 4, "cols": 4}}
    return simulate(parse_scenario(said | {"mask": mask}))


def joined(heads: np.ndarray) -> np.ndarray:
    """Return numbers of each head, (H, N, dv), as the output projection takes them."""
    return heads.transpose(1, 0, 2).reshape(heads.shape[1], -1)


def off(trace: Trace, given: np.ndarray) -> float:
    return float(np.abs(joined(trace.output) - given).max() / np.abs(given).max())


@pytest.mark.parametrize("kind", ["Gemma2", "Gemma3Text"])
def test_local_and_global_layers_have_their_own_windows(
    kind: str, record: Callable[..., Any]
) -> None:
    paths, given = record(kind, [0, 1, 2, 3], layer_types=LOCAL)
    for path, own, kinds in zip(paths, given, LOCAL, strict=True):
        local = kinds == LOCAL[0]
        trace = opened(path)
        assert trace.workload.mask.window == (WINDOW if local else 0)
        assert off(trace, own) < 1e-5
        assert off(opened(path, window=0 if local else WINDOW), own) > 1e-2


def test_o_of_a_run_with_a_gate_is_what_the_output_projection_is_given(
    record: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    small = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
             "shared_expert_intermediate_size": 32, "linear_num_value_heads": 4,
             "linear_num_key_heads": 2, "linear_key_head_dim": 16,
             "linear_value_head_dim": 16}  # fmt: skip
    (path,), (given,) = record("Qwen3Next", [3], **small)
    trace = opened(path)
    gate = trace.inputs.output_gate
    assert gate is not None
    assert off(trace, given) < 1e-5
    plain = trace.workload.ungated
    ungated = trace_of(plain, trace.inputs, numpy_engine)
    assert off(ungated, given) > 1e-2
    assert np.abs(joined(ungated.output * gate) - given).max() < 1e-5 * np.abs(given).max()
    scenario = path.with_suffix(".toml")
    scenario.write_text(f'[input]\nsource = "file"\npath = "{path.name}"\n', encoding="utf-8")
    capsys.readouterr()
    assert main(["run", str(scenario)]) == 0
    said = capsys.readouterr().out
    assert "O is multiplied by the gate of the file" in said
    assert "After attention the recorded layer" not in said
