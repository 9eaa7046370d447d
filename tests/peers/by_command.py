"""A small model in a folder, captured by the command: its files are what the call returns."""

import contextlib
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from tests.peers.small_architectures import VOCAB

Model = Any  # of transformers, which is imported late
NEAR = 1e-5


def save(model: Model, folder: Path) -> None:
    """Save a model with a tokenizer whose words are w0 to w127."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {f"w{n}" if n else "?": n for n in range(VOCAB)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?").save_pretrained(folder)
    model.save_pretrained(folder)


def faults(model: Model, inputs: dict[str, Any], captured: Any) -> list[str] | str:
    """Return how the files of `capture FOLDER all OUT TEXT` differ from what a call returned.

    Or a text, why there are none: the command may ask for a picture or for sound.

    captured: what the call returned, or why it was refused.
    """
    from ui.app.cli import main

    texts = {name: [f"w{n}" for n in ids[0].tolist()] for name, ids in inputs.items()}
    out, said = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            save(model, folder)
            said.truncate(0)
            status = main(["capture", str(folder), "all", str(Path(name) / "out.safetensors"),
                           *(" ".join(words) for words in texts.values())])  # fmt: skip
        line = said.getvalue().strip("\0\n ")
        if isinstance(captured, str):
            return [] if status == 2 and "\n" not in line else [f"status {status}: {line[:200]}"]
        if status == 2 and line and "\n" not in line:
            return f"the command refuses: {line.removeprefix(str(folder))[:150]}"
        if status != 0:
            return [f"status {status}: {line[:200]}"]
        return [f"{place}: {fault}" for place, each in captured.items()
                if (fault := differs(*each, place, Path(name), len(captured), texts))]  # fmt: skip


def differs(tensors: dict[str, Any], said: dict[str, str], place: str, folder: Path, count: int,
            texts: dict[str, list[str]]) -> str:  # fmt: skip
    """Return what of a place's file is not what the call returned, or its tokens are not."""
    from safetensors import safe_open

    path = folder / ("out.safetensors" if count == 1 else f"out-{place}.safetensors")
    if not path.exists():
        return "has no file"
    with safe_open(path, "pt") as file:
        own = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    if own.keys() != tensors.keys():
        return f"has {sorted(own)}, and not {sorted(tensors)}"
    for name, tensor in tensors.items():
        if own[name].shape != tensor.shape:
            return f"{name} is {tuple(own[name].shape)}"
        off = (own[name].double() - tensor.double()).abs().max()
        if not off <= NEAR * tensor.double().abs().max():
            return f"{name} is another, off by {off:.1e}"
    if other := [key for key, text in said.items() if key != "scale" and metadata[key] != text]:
        return f"says {other[0]} = {metadata[other[0]]!r}"
    tokens = {key: json.loads(metadata[key]) for key in ("tokens", "query_tokens")
              if key in metadata}  # fmt: skip
    keys, queries = own["k"].shape[1], own["q"].shape[1]
    known = {len(words) for words in texts.values()}
    if "tokens" not in tokens:  # the text may not be what a stack of another name reads
        usual = re.match(r"\d|encoder|decoder|cross", place)
        return f"has no tokens of its {keys} keys" if usual and keys in known else ""
    words = texts["decoder_input_ids" if place.startswith("decoder") else "input_ids"]
    if tokens["tokens"] != words or len(words) != keys:
        return f"{keys} keys, tokens {tokens['tokens'][:3]} ... are not those that it was given"
    if (
        queries != keys
        and queries in known
        and tokens.get("query_tokens") != texts["decoder_input_ids"]
    ):
        return f"{queries} queries, query_tokens {tokens.get('query_tokens', [])[:3]} ..."
    return ""
