"""Documents as numbers of tokens: learned and held-out parts of every source."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from simulator.language.tokenizer import START, WORDS, Tokenizer
from tests.training import sources, templates

VOCABULARY = 4096
READ = {  # millions of characters of each source that the vocabulary is learned from
    "addresses": 2.5,
    "moby dick": 1.2,
    "austen": 4.0,
    "definitions": 1.5,
    "examples": 3.0,
    "templates": 2.0,
}
HELD = 40
"""One document of so many is held out."""


def lines(document: str) -> str:
    """The document as it is encoded: a space begins every line, so that words look alike."""
    return " " + document.replace("\n", "\n ")


def library() -> Any:
    """A tokenizer of the tokenizers library, with no merges yet."""
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers

    out = tokenizers.Tokenizer(models.BPE())
    out.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    out.decoder = decoders.ByteLevel()
    return out


def learn(texts: Iterable[str], vocabulary: int = VOCABULARY) -> tuple[Any, list[tuple[int, int]]]:
    """The library's tokenizer that these texts make, and its merges as pairs of tokens."""
    from tokenizers import pre_tokenizers, trainers

    out = library()
    out.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary,
            special_tokens=["<s>"],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    model = json.loads(out.to_str())["model"]
    number = model["vocab"]
    pairs = (pair if isinstance(pair, list) else pair.split(" ") for pair in model["merges"])
    merges = [(number[left], number[right]) for left, right in pairs]
    return out, merges


def prepare(folder: Path) -> Path:
    """Write tokens.npz in `folder`, where it is not yet, and return it."""
    path = folder / "tokens.npz"
    if path.exists():
        return path
    texts = sources.read(folder / "packages") | {"templates": templates.documents()}
    rng, read = random.Random(3), []
    parts: dict[str, dict[str, list[str]]] = {"learned": {}, "held": {}}
    for name, documents in texts.items():
        parts["held"][name] = documents[HELD // 3 :: HELD]
        kept = [d for n, d in enumerate(documents) if n % HELD != HELD // 3]
        parts["learned"][name] = kept
        enough = int(READ[name] * 1e6)
        for document in rng.sample(kept, len(kept)):
            read.append(lines(document))
            enough -= len(document)
            if enough < 0:
                break
    encoder, merges = learn(read)
    assert len(Tokenizer(merges).pieces) == VOCABULARY
    arrays = {
        f"{part} {name}": np.array(
            [t for d in documents for t in encoder.encode(lines(d) + "\n").ids], np.uint16
        )
        for part, named in parts.items()
        for name, documents in named.items()
    }
    assert all(START not in tokens for tokens in arrays.values())
    np.savez(path, merges=np.array(merges, np.uint16), **arrays)
    return path
