"""What the model can do: losses of held-out texts, jobs of heads, questions, times.

python -m tests.training.measure build/sentence-model/tokens.npz [MODEL]
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simulator.language.continuation import continued
from simulator.language.model import Cache, LanguageModel, read_model
from simulator.language.models import WEIGHTS
from simulator.language.tokenizer import START
from tests.training import templates

SOURCES = ("austen", "addresses", "moby dick", "definitions", "examples", "templates")
OWN = (
    "The animal did not cross the street because it was too tired.",
    "The king saw a ship near the island, and it was burning.",
    "My brother sold the boat last year since it had a hole.",
    "The teacher dropped the glass and it broke into pieces.",
    "We left the dog outside, so it barked all night.",
    "The horse in the stable was afraid when it heard the storm.",
    "She read the letter twice before it was lost.",
    "The captain followed the whale until it went down.",
    "A wolf came to the farm, but it found nothing to eat.",
    "The doctor looked at the old house, which he liked because it was quiet.",
)
"""Sentences that no template makes, and beside them the noun that "it" is."""
NOUNS = ["animal", "ship", "boat", "glass", "dog", "horse", "letter", "whale", "wolf", "house"]
WINDOWS = 36
"""Windows of each source whose loss is told: good to about 0.03 nats."""
PROMPTS = (
    "The cat sat on the mat because it was tired.",
    "Once upon a time there was a little girl named Anna.",
    "The President said that",
    "My dear friend,",
    "When Tom and Anna went to the park, Tom gave a book to",
)


def loss(model: LanguageModel, tokens: NDArray[np.uint16], starts: NDArray[np.int64]) -> float:
    """The mean loss of windows of what the model learned from, in nats a token."""
    n, found = model.shape.learned, []
    for start in starts[np.linspace(0, len(starts) - 1, WINDOWS).astype(int)]:
        window = tokens[start : start + n].astype(int)
        found.append(nats(model.run([START, *window[:-1]]).logits, window).mean())
    return float(np.mean(found))


def nats(logits: NDArray[np.float32], following: NDArray[np.int64]) -> NDArray[np.float32]:
    logits = logits - logits.max(-1, keepdims=True)
    total = np.log(np.exp(logits).sum(-1))
    return total - logits[np.arange(len(following)), following]


def heads_best(scores: NDArray[np.float64]) -> str:
    """The four heads with the largest scores, layer.head from 0."""
    order = np.argsort(-scores, axis=None)[:4]
    places = (np.unravel_index(n, scores.shape) for n in order)
    return ", ".join(f"{a}.{b} = {scores[a, b]:.2f}" for a, b in places)


def single(model: LanguageModel, words: list[str]) -> list[str]:
    return [word for word in words if len(model.tokenizer.encode(word)) == 2]


def answer(model: LanguageModel, text: str) -> str:
    """The most probable next token."""
    tokens = model.tokenizer.encode(text)
    return model.tokenizer.label(int(model.run(tokens, last=True).logits[0].argmax()))


def tired(model: LanguageModel, count: int = 200) -> float:
    """The share of right answers to: what was tired?"""
    rng, right = random.Random(99), 0
    animals, things = single(model, list(templates.ANIMALS)), single(model, list(templates.THINGS))
    for _ in range(count):
        animal, thing = rng.choice(animals), rng.choice(things)
        living = rng.random() < 0.5
        word = rng.choice(templates.LIVING if living else templates.THINGS[thing].split())
        verb = rng.choice(["sat", "stood", "lay", "slept"])
        said = f"The {animal} {verb} on the {thing} because it was {word}. What was {word}? The"
        right += answer(model, said) == f" {animal if living else thing}"
    return right / count


def names(model: LanguageModel, count: int = 200) -> float:
    """The share in which the other name follows "gave a book to"."""
    rng, right = random.Random(98), 0
    for _ in range(count):
        giver, taker = rng.sample(templates.NAMES, 2)
        first, second = rng.sample([giver, taker], 2)
        gift, place = rng.choice(templates.GIFTS), rng.choice(templates.PLACES)
        said = f"When {first} and {second} went to the {place}, {giver} gave {templates.a(gift)} to"
        right += answer(model, said) == f" {taker}"
    return right / count


def same_with_cache(model: LanguageModel, prompt: str, count: int = 200) -> bool:
    tokens = model.tokenizer.encode(prompt)
    kept, anew = (
        [drawn.token for drawn in islice(continued(model, tokens, 0.0, cached=cached), count)]
        for cached in (True, False)
    )
    return kept == anew


def milliseconds(function: Callable[[], object], times: int = 30) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        function()
        took.append(time.perf_counter() - began)
    return 1000 * statistics.median(took)


def main(tokens: Path, weights: Path = WEIGHTS) -> None:
    model, rng = read_model(weights), np.random.default_rng(0)
    shape, encode = model.shape, model.tokenizer.encode
    print(f"{weights.stat().st_size} bytes")
    with np.load(tokens) as file:
        held = {name: file[f"held {name}"] for name in SOURCES}
    (newline,) = encode("\n")[1:]
    for name in SOURCES:
        last = len(held[name]) - shape.learned
        at_lines = np.flatnonzero(held[name][:last] == newline) + 1
        for words, starts in (("lines", at_lines), ("anywhere", np.arange(last))):
            mean = loss(model, held[name], starts)
            said = f"{mean:.2f} nats a token, perplexity {np.exp(mean):.1f}"
            print(f"held out, {name}, from {words}: {said}", flush=True)

    of = shape.layers, shape.heads
    previous, first, induction = np.zeros(of), np.zeros(of), np.zeros(of)
    texts = [held[name][at : at + 127] for name in SOURCES[:5] for at in (1000, 3000, 5000)]
    rows = np.arange(4, 128)
    for text in texts:
        weights_of = np.stack(model.run([START, *text.tolist()]).weights)
        previous += weights_of[:, :, rows, rows - 1].mean(-1) / len(texts)
        first += weights_of[:, :, rows, 0].mean(-1) / len(texts)
    n, again, copied = 50, [], []
    for _ in range(16):
        drawn = rng.integers(257, shape.vocabulary, n)
        found = model.run([START, *drawn, *drawn])
        rows = np.arange(n + 1, 2 * n + 1)
        induction += np.stack(found.weights)[:, :, rows, rows - n + 1].mean(-1) / 16
        again.append(nats(found.logits[n + 1 : -1], drawn[1:]).mean())
        copied.append((found.logits[n + 1 : -1].argmax(-1) == drawn[1:]).mean())
    print(f"{n} random tokens again: {np.mean(again):.2f} nats, {np.mean(copied):.0%} right")
    print(f"previous token: {heads_best(previous)}")
    print(f"first token: {heads_best(first)}")
    print(f"induction: {heads_best(induction)}")

    print(f"What was tired? {tired(model):.0%} right")
    print(f"names: {names(model):.0%} right")
    seen = []
    for said, noun in zip(OWN, NOUNS, strict=True):
        labels = [model.tokenizer.label(token) for token in encode(said)]
        if f" {noun}" in labels:
            found = np.stack(model.run(encode(said)).weights)
            seen.append(found[:, :, labels.index(" it"), labels.index(f" {noun}")].max() >= 0.5)
    print(f"it looks at its noun: {sum(seen)} of {len(seen)} sentences that no template makes")

    for prompt in PROMPTS:
        print(f"200 tokens equal with and without cache: {same_with_cache(model, prompt)}")
    tokens_64 = [START, *texts[0][:63].tolist()]
    cache = Cache()
    model.run(tokens_64, cache)
    print(f"64 tokens: {milliseconds(lambda: model.run(tokens_64)):.1f} ms")
    print(f"one more: {milliseconds(lambda: model.run([300], cache, last=True)):.2f} ms")
    for prompt in PROMPTS:
        drawn = islice(continued(model, encode(prompt), seed=1), 40)
        print("T = 0.8:", model.tokenizer.decode([*encode(prompt), *(one.token for one in drawn)]))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
