"""Write down the cross attention of assets/scenarios/translation.safetensors with NumPy alone.

    python docs/make_translation.py assets/scenarios/translation.safetensors

A German sentence asks an English one. Nothing is trained: each word is the sum of vectors of its
meanings, of a little of its place, and of noise from a seed. Head 0 looks for a word of the same
meaning; head 1 looks for the word that stands as far into its sentence.
"""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

SEED, DIM = 4, 16
ENGLISH = {
    "the": "the 1st", "cat": "cat", "did": "want", "not": "not", "want": "want", "to": "sleep",
    "sleep": "sleep", "on": "on", "the ": "the 2nd", "red": "red", "mat": "mat", ".": "stop",
}  # fmt: skip
GERMAN = {
    "die": "the 1st", "Katze": "cat", "wollte": "want", "nicht": "not", "auf": "on",
    "der": "the 2nd", "roten": "red", "Matte": "mat", "schlafen": "sleep", ".": "stop",
}  # fmt: skip
WEAK = {"did": 0.7, "to": 0.6}
"""Words that carry only a part of a meaning."""
SHARP, LOOSE, NOISE = 4.4, 3.0, 0.25
"""Lengths of the vectors of meaning and of place, and of the noise."""


def meanings(words, vectors):
    """Return the vectors of words, (words, DIM); both articles are nearly one meaning."""
    out = []
    for word, meaning in words.items():
        vector = vectors[meaning]
        if meaning.startswith("the"):
            vector = vectors["the 1st"] + (0.5 * vectors["the 2nd"] if "2nd" in meaning else 0)
        out.append(WEAK.get(word, 1.0) * vector / np.linalg.norm(vector))
    return np.array(out)


def places(count):
    """Return a vector for how far into its sentence a word stands, (count, DIM)."""
    angles = np.pi * (np.arange(count) + 0.5)[:, None] / count * np.arange(1, DIM // 2 + 1)
    waves = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    return waves / np.linalg.norm(waves, axis=1, keepdims=True)


def pair():
    """Return q, k and v, (2, words, DIM) float32 each."""
    rng = np.random.default_rng(SEED)
    names = dict.fromkeys([*ENGLISH.values(), *GERMAN.values()])
    axes = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    vectors = dict(zip(names, axes, strict=False))
    out = {}
    for name, words in (("q", GERMAN), ("k", ENGLISH), ("v", ENGLISH)):
        sense, place = meanings(words, vectors), places(len(words))
        heads = [sense, place] if name != "v" else [sense, sense]
        strength = (SHARP, LOOSE * 1.6) if name != "v" else (1.0, 1.0)
        noise = NOISE * rng.standard_normal((2, len(words), DIM)) * (name != "v")
        out[name] = np.stack([s * h for s, h in zip(strength, heads, strict=True)]) + noise
    return {name: values.astype(np.float32) for name, values in out.items()}


def main(path):
    """Write the file."""
    texts = {
        "tokens": json.dumps([word.strip() for word in ENGLISH]),
        "query_tokens": json.dumps([word.strip() for word in GERMAN]),
        "causal": "false",
        "license": "MIT",
    }
    save_file(pair(), Path(path), texts)


if __name__ == "__main__":
    main(sys.argv[1])
