"""`capture` of models that cannot be loaded or run, by command: one line, and no file."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.peers
for package in ("torch", "transformers"):
    pytest.importorskip(package, reason=f"{package} is not here: make test-peers brings it")

from tests.peers.small_models import TEXT, saved  # noqa: E402
from ui.app.cli import main  # noqa: E402

Capture = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folders of small models, not to be changed."""
    kinds = ("Bert", "Llama", "T5")
    return {kind: saved(kind, tmp_path_factory.mktemp(kind)) for kind in kinds}


@pytest.fixture
def copied(folders: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return a copy of a small model's folder."""
    return lambda kind: shutil.copytree(folders[kind], tmp_path / "model")


@pytest.fixture
def capture(tmp_path: Path, capsys: Any) -> Capture:
    """Run the command; return its status and what it prints."""

    def run(model: object, layers: object, *texts: object) -> tuple[int, str, str]:
        words = [model, layers, tmp_path / "out.safetensors", *texts]
        status = main(["capture", *map(str, words)])
        out, err = capsys.readouterr()
        assert status == 0 or (status == 2 and len(err.splitlines()) == 1 and not out), err
        assert (status == 0) == bool(list(tmp_path.glob("out*.safetensors")))
        assert not list(tmp_path.glob(".*"))
        return status, out, err

    return run


def check_refused(done: tuple[int, str, str], line: str) -> None:
    assert done[0] == 2, done[1]
    assert line in done[2]


def change(file: Path, **entries: Any) -> None:
    """Change entries of a JSON file."""
    file.write_text(json.dumps(json.loads(file.read_text()) | entries))


def without(folder: Path, *words: str) -> Path:
    """Take weights out of a model's file, whose names have one of some words."""
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    kept = {
        name: tensor
        for name, tensor in load_file(file).items()
        if not any(word in name for word in words)
    }
    save_file(kept, file, {"format": "pt"})
    return folder


def test_a_text_is_needed_and_must_fit(folders: dict[str, Path], capture: Capture) -> None:
    for text in ((), ("",), ("  ",)):
        check_refused(capture(folders["Bert"], 0, *text), "TEXT: expected a text, and it is empty")
    long = capture(folders["Bert"], 0, "the " * 100)
    check_refused(long, "TEXT: 100 tokens, and the model has 64 positions")
    check_refused(capture(folders["Llama"], 0, "the " * 9000), "9000 tokens, expected at most 8192")


def test_more_than_a_model_was_made_for_is_said(folders: dict[str, Path], capture: Capture) -> None:
    status, out, _ = capture(folders["Llama"], 0, "the " * 100)
    assert status == 0
    assert "TEXT has 100 tokens, and the model was made for 64" in out


def test_a_second_text_that_no_decoder_reads_is_said(
    folders: dict[str, Path], capture: Capture
) -> None:
    status, out, _ = capture(folders["Bert"], 0, TEXT, "the cat")
    assert status == 0
    assert "the second text is left out: the model has no decoder for it" in out


@pytest.mark.parametrize("layers", ["5-3", "1:0", "0,x", "", "0.5.1.2", "head 3"])
def test_what_is_no_layer(layers: str, folders: dict[str, Path], capture: Capture) -> None:
    check_refused(capture(folders["Bert"], layers, TEXT), f"layers {layers!r}: expected ")


def test_layers_that_there_are_not_are_answered_with_those_that_there_are(
    folders: dict[str, Path], capture: Capture
) -> None:
    check_refused(capture(folders["Bert"], 9, TEXT), "no attention layer 9 (it ran 0-1)")
    check_refused(capture(folders["Bert"], "decoder.1", TEXT), "no attention layer decoder.1")
    check_refused(capture(folders["T5"], "cross.9", TEXT, "the cat"), "no attention layer cross.9")
    check_refused(capture(folders["T5"], "cross.0", TEXT), "expected a second text")


def test_one_layer_that_there_is_not_leaves_no_file_of_the_others(
    folders: dict[str, Path], capture: Capture
) -> None:
    check_refused(capture(folders["Bert"], "0,1,2", TEXT), "no attention layer 2")


def test_what_is_no_model(tmp_path: Path, capture: Capture) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + bytes(60))
    (tmp_path / "empty").mkdir()
    expected = "expected a model's folder or its name on the hub"
    wrong = {
        tmp_path / "none": "there is no such folder",
        tmp_path / "model.gguf": "this is a file (of a GGUF file, the folder",
        tmp_path / "empty": "this has no config.json",
        "no such name": "there is no such folder",
    }
    for model, line in wrong.items():
        done = capture(model, 0, TEXT)
        check_refused(done, line)
        assert expected in done[2]


def test_without_a_network_a_name_on_the_hub_is_answered_at_once(tmp_path: Path) -> None:
    words = ["capture", "nobody/nothing", "0", str(tmp_path / "out.safetensors"), TEXT]
    done = subprocess.run(
        [sys.executable, "-m", "ui", *words],
        env={**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)},
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "the hub cannot be reached, and it was not downloaded before" in line


def test_a_folder_with_an_adapter_must_be_merged(
    copied: Callable[[str], Path], capture: Capture
) -> None:
    folder = copied("Bert")
    (folder / "adapter_config.json").write_text("{}")
    check_refused(capture(folder, 0, TEXT), "merge it first: PeftModel")


def test_a_config_that_cannot_be_used(copied: Callable[[str], Path], capture: Capture) -> None:
    config = (folder := copied("Bert")) / "config.json"
    change(config, quantization_config={"quant_method": "of nobody"})
    check_refused(capture(folder, 0, TEXT), "quantised in a way that transformers cannot read")
    change(config, quantization_config={"quant_method": "gptq", "bits": 4})
    check_refused(capture(folder, 0, TEXT), "the model cannot be loaded: ")
    change(config, model_type="of nobody", quantization_config=None)
    check_refused(capture(folder, 0, TEXT), "model type `of nobody`")
    for junk in ("{", "[]", "{}"):
        config.write_text(junk)
        check_refused(capture(folder, 0, TEXT), "expected a model's folder")


def test_code_in_a_models_folder_is_never_run(
    copied: Callable[[str], Path], capture: Capture, tmp_path: Path
) -> None:
    folder, ran = copied("Bert"), tmp_path / "ran"
    code = f"open({str(ran)!r}, 'w')\nfrom transformers import BertConfig as C, BertModel as M\n"
    (folder / "own.py").write_text(code)
    own = {"AutoConfig": "own.C", "AutoModel": "own.M"}
    change(folder / "config.json", model_type="of nobody", auto_map=own)
    check_refused(capture(folder, 0, TEXT), "it needs code of its own (trust_remote_code)")
    change(folder / "config.json", model_type="bert")
    change(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.T", None]})
    assert capture(folder, 0, TEXT)[0] == 0
    assert not ran.exists()


def test_weights_that_cannot_be_read(copied: Callable[[str], Path], capture: Capture) -> None:
    weights = (folder := copied("Bert")) / "model.safetensors"
    whole = weights.read_bytes()
    for part in (whole[: len(whole) // 2], b"junk", b""):
        weights.write_bytes(part)
        check_refused(capture(folder, 0, TEXT), "the model cannot be loaded: ")
    weights.unlink()
    check_refused(capture(folder, 0, TEXT), "no file named model.safetensors")
    weights.write_bytes(whole)
    change(folder / "config.json", intermediate_size=64)
    check_refused(
        capture(folder, 0, TEXT), "weights of another shape than its config says: encoder."
    )


@pytest.mark.parametrize(
    ("kind", "words", "named"),
    [
        ("Bert", ["layer.1.output"], "encoder.layer.1.output.LayerNorm.bias"),
        ("Bert", ["word_embeddings"], "embeddings.word_embeddings.weight"),
        ("Llama", ["norm"], "layers.0.input_layernorm.weight"),
        ("T5", ["shared"], "shared.weight"),
    ],
)
def test_missing_weights_are_no_random_numbers(
    kind: str, words: list[str], named: str, copied: Callable[[str], Path], capture: Capture
) -> None:
    done = capture(without(copied(kind), *words), 0, TEXT, "the cat")
    check_refused(done, "weights are missing in its files: ")
    assert named in done[2]


def test_weights_that_no_layer_depends_on_may_be_missing(
    copied: Callable[[str], Path], capture: Capture, folders: dict[str, Path], tmp_path: Path
) -> None:
    """Checkpoints of masked language models have no pooler; heads that they have are left."""
    from safetensors.numpy import load_file

    assert capture(folders["Bert"], 1, TEXT)[0] == 0
    out = tmp_path / "out.safetensors"
    own = load_file(out)
    assert capture(without(copied("Bert"), "pooler"), 1, TEXT)[0] == 0
    again = load_file(out)
    assert all((own[name] == again[name]).all() for name in own)


def test_tied_weights_are_not_missing(capture: Capture, copied: Callable[[str], Path]) -> None:
    import transformers

    folder = copied("Llama")
    config = transformers.AutoConfig.from_pretrained(folder, tie_word_embeddings=True)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    assert capture(folder, 0, TEXT)[0] == 0


def test_a_tokenizer_of_another_model(copied: Callable[[str], Path], capture: Capture) -> None:
    file = (folder := copied("Bert")) / "tokenizer.json"
    words = json.loads(file.read_text())
    words["model"]["vocab"]["cat"] = 99
    file.write_text(json.dumps(words))
    check_refused(capture(folder, 0, TEXT), "its tokenizer gives token 99, and the model has 61")
    for each in folder.glob("*token*"):
        each.unlink()
    check_refused(capture(folder, 0, TEXT), "it has no tokenizer, which the text needs")


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_numbers_keep_their_type_but_float64(
    kind: str, folders: dict[str, Path], capture: Capture, tmp_path: Path
) -> None:
    import torch
    import transformers
    from safetensors.torch import load_file

    model = transformers.AutoModel.from_pretrained(folders["Llama"]).to(getattr(torch, kind))
    model.save_pretrained(tmp_path / "other")
    for file in folders["Llama"].glob("token*"):
        shutil.copy(file, tmp_path / "other")
    status, out, _ = capture(tmp_path / "other", 1, TEXT)
    assert status == 0
    q = load_file(tmp_path / "out.safetensors")["q"]
    assert str(q.dtype) == f"torch.{kind if kind != 'float64' else 'float32'}"
    assert ("computes in float64: the numbers are rounded" in out) == (kind == "float64")


def test_where_no_file_can_be(folders: dict[str, Path], tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "folder.safetensors").mkdir()
    wrong = {
        "out.npz": "expected a name that ends in .safetensors",
        "none/out.safetensors": "expected a file in a folder that there is",
        "folder.safetensors": "expected a file in a folder that there is",
    }
    for name, line in wrong.items():
        words = ["capture", str(folders["Bert"]), "0", str(tmp_path / name), TEXT]
        assert main(words) == 2
        assert line in capsys.readouterr().err


def test_files_are_written_whole_or_not_at_all(
    folders: dict[str, Path], tmp_path: Path, capsys: Any
) -> None:
    """What was there before stays, where the disk is full and where the second file cannot be."""
    resource = pytest.importorskip("resource", reason="no limit can be set here")
    words = ["capture", str(folders["Bert"]), "0,1", str(tmp_path / "out.safetensors"), TEXT]
    assert main(words) == 0
    first, second = (tmp_path / f"out-{n}.safetensors" for n in (0, 1))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == {first, second}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    words[-1] = "the mat"
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        status = main(words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert status == 2
    assert "cannot be written: " in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    second.unlink()
    second.mkdir()
    assert main(words) == 2
    assert "this is a folder" in capsys.readouterr().err
    assert first.read_bytes() == before[first]


# --- by call --------------------------------------------------------------------------------------


@pytest.fixture
def llama(folders: dict[str, Path]) -> Any:
    """Return the small Llama."""
    import transformers

    return transformers.AutoModel.from_pretrained(folders["Llama"])


def test_one_sequence_at_a_time_by_call(script: dict[str, Any], llama: Any) -> None:
    import torch

    ids = torch.arange(1, 10)[None]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"input_ids": ids.repeat(2, 1)}, "one sequence at a time"),
        ({"inputs_embeds": torch.zeros(2, 9, 32)}, "one sequence at a time"),
        ({"input_ids": ids[:, :0]}, "has no tokens"),
        ({"input_ids": ids + 60}, "has token 69, and the model knows 0 to 60"),
        ({"input_ids": ids - 5}, "has token"),
        ({"input_ids": ids.float()}, "the model does not run on this"),
        ({}, "the model does not run on this"),
    ]
    for given, line in wrong:
        with pytest.raises(script["CaptureError"], match=line) as caught:
            script["capture"](llama, ["0"], **given)
        assert "\n" not in str(caught.value)


def test_padding_is_a_mask_of_the_file(script: dict[str, Any], llama: Any) -> None:
    import torch

    ids, sees = torch.arange(1, 10)[None], torch.ones(1, 9, dtype=torch.long)
    sees[0, :3] = 0
    tensors, texts = script["capture"](llama, ["0"], input_ids=ids, attention_mask=sees)["0"]
    mask = np.unpackbits(tensors["mask"].numpy(), axis=-1)[..., :9]
    assert json.loads(texts["mask_shape"]) == [9, 9]
    expected = np.tril(np.ones((9, 9))) * sees.numpy()
    assert (mask[3:] == expected[3:]).all()


def test_more_that_a_model_takes_changes_nothing(script: dict[str, Any], folders: Any) -> None:
    import torch
    import transformers

    model = transformers.LlamaForCausalLM.from_pretrained(folders["Llama"]).eval()
    ids = torch.arange(1, 10)[None]
    plain = script["capture"](model, ["1"], input_ids=ids)["1"]
    for more in ({"labels": ids}, {"output_attentions": True}, {"return_dict": False}):
        tensors, texts = script["capture"](model, ["1"], input_ids=ids, **more)["1"]
        assert texts == plain[1]
        assert all((tensors[name] == plain[0][name]).all() for name in plain[0])


def test_a_model_in_training_is_left_as_it_was(script: dict[str, Any], folders: Any) -> None:
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(folders["Bert"], hidden_dropout_prob=0.5)
    ids = torch.arange(1, 10)[None]
    calm = script["capture"](model.eval(), ["1"], input_ids=ids)["1"][0]
    model.train()
    model.encoder.layer[0].eval()
    before = [module.training for module in model.modules()]
    drawn = torch.get_rng_state()
    tensors, _ = script["capture"](model, ["1"], input_ids=ids)["1"]
    assert (tensors["q"] == calm["q"]).all()
    with pytest.raises(script["CaptureError"]):
        script["capture"](model, ["9"], input_ids=ids)
    assert [module.training for module in model.modules()] == before
    assert (torch.get_rng_state() == drawn).all()
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_a_model_without_numbers(script: dict[str, Any], llama: Any) -> None:
    import torch
    import transformers

    with torch.device("meta"):
        empty = transformers.LlamaModel(llama.config)
    ids = torch.arange(1, 10)[None]
    with pytest.raises(script["CaptureError"], match="on the device meta"):
        script["capture"](empty, ["0"], input_ids=ids)
    llama.layers[0].self_attn.q_proj.weight.data[0, 0] = float("nan")
    with pytest.raises(script["CaptureError"], match="NaN"):
        script["capture"](llama, ["0"], input_ids=ids)


def test_a_step_of_decoding_leaves_its_cache(script: dict[str, Any], llama: Any) -> None:
    import torch

    ids = torch.arange(1, 10)[None]
    with torch.no_grad():
        past = llama(ids[:, :8], use_cache=True).past_key_values
    whole = script["capture"](llama, ["1"], input_ids=ids)["1"][0]
    step = script["capture"](llama, ["1"], input_ids=ids[:, 8:], past_key_values=past)["1"][0]
    assert past.get_seq_length() == 8
    assert step["q"].shape == (2, 1, 16)
    for name, part in (("q", whole["q"][:, 8:]), ("k", whole["k"]), ("v", whole["v"])):
        assert (step[name] - part).abs().max() <= 1e-5 * part.abs().max()
