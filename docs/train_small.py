"""Train the small transformer of assets/captures/small with NumPy alone, and build one by hand.

    python docs/train_small.py assets/captures

Two layers of attention and nothing else, no MLP and no norm (Elhage et al. 2021). It reads short
sentences, and words drawn at random that are then said again, and predicts the next word. While it
learns, an induction head appears (Olsson et al. 2022). After the steps in MOMENTS the weights are
written, with what every layer is given for one text. The seed determines everything, up to the
rounding of the matrix products. assets/captures/README.md says what the files contain.

The one built by hand, in by-hand, does with four heads exactly what the trained one does roughly.
"""

import json
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np

SEED, STEPS, BATCH = 17, 2000, 32
LENGTH, WIDTH, HEADS, LAYERS = 32, 48, 4, 2
RATE, WARM = 8e-3, 100
MOMENTS = (0, 100, 200, 300, 350, 400, 450, 500, 600, 800, 1200, 2000)
TEXT_PERIOD, HELD_OUT = 15, 16
"""Different words in the text that the layers' x is of; sequences of each kind for the loss."""

START, STOP = "<s>", "."
KINDS = {
    "article": "the a",
    "noun": "cat dog robot ball mat tree bird fish box door lamp kite",
    "name": "Ann Bob Cleo Dan Eve Finn",
    "verb": "sees finds likes holds wants moves hears takes",
    "adjective": "red blue small big old new soft loud",
    "place": "on under near behind",
    "link": "and then",
    "rest": "because it was is",
}
OF = {kind: words.split() for kind, words in KINDS.items()}
WORDS = (START, STOP, *(word for words in OF.values() for word in words))
NUMBER = {word: n for n, word in enumerate(WORDS)}


# --- what it reads ------------------------------------------------------------------------------


def sentence(rng):
    """Return one short sentence as a list of words."""

    def one(kind):
        return str(rng.choice(OF[kind]))

    def thing():
        kind = rng.integers(3)
        if kind == 0:
            return [one("name")]
        return [one("article"), *([one("adjective")] if kind == 1 else []), one("noun")]

    said = [*thing(), one("verb"), *thing()]
    kind = rng.integers(4)
    if kind == 0:
        said += [one("place"), "the", one("noun")]
    elif kind == 1:
        said += [one("link"), one("verb"), *thing()]
    elif kind == 2:
        said += ["because", "it", str(rng.choice(["was", "is"])), one("adjective")]
    return [*said, STOP]


def sentences(rng):
    """Return numbers of words, (LENGTH,): the start and then short sentences."""
    said = [START]
    while len(said) < LENGTH:
        said += sentence(rng)
    return np.array([NUMBER[word] for word in said[:LENGTH]])


def repeated(rng, period=None, words=None, length=LENGTH):
    """Return numbers of words, (length,): the start, then different words, again and again."""
    words, period = words or len(WORDS), period or int(rng.integers(4, length // 2))
    drawn = rng.choice(np.arange(1, words), period, replace=False)
    return np.concatenate([[NUMBER[START]], np.resize(drawn, length - 1)])


def batch(rng, size=BATCH):
    """Return numbers of words, (size, LENGTH): sentences first, then what is repeated."""
    kinds = [sentences] * (size // 2) + [repeated] * (size - size // 2)
    return np.stack([kind(rng) for kind in kinds])


# --- the model ----------------------------------------------------------------------------------


def make(rng, kv_heads=HEADS):
    """Return weights to start from, float32; `kv_heads` is HEADS, or 1 for keys that all share."""

    def normal(size, *shape):
        return (size * rng.standard_normal(shape)).astype(np.float32)

    # Places start as sines and cosines (Vaswani et al. 2017, section 3.5), and are learned.
    angles = np.arange(LENGTH)[:, None] * 1000.0 ** (-np.arange(WIDTH // 2) / (WIDTH // 2))
    waves = np.concatenate([np.sin(angles), np.cos(angles)], 1)
    out = {
        "embed": normal(0.5, len(WORDS), WIDTH),
        "positions": (0.5 * waves).astype(np.float32),
        "unembed": normal(0.1, WIDTH, len(WORDS)),
        "bias": np.zeros(len(WORDS), np.float32),
    }
    for layer in range(LAYERS):
        for name in "qkvo":
            wide = WIDTH * kv_heads // HEADS if name in "kv" else WIDTH
            drawn = normal(WIDTH**-0.5 / (1 + (name == "o")), WIDTH, WIDTH)
            out[f"w{name}{layer}"] = np.ascontiguousarray(drawn[:, :wide])
            out[f"b{name}{layer}"] = np.zeros(wide, np.float32)
    return out


def split(values, heads):
    """Return (B, N, heads d) as (B, heads, N, d)."""
    return values.reshape(*values.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def join(values):
    """Return (B, heads, N, d) as (B, N, heads d)."""
    return values.transpose(0, 2, 1, 3).reshape(values.shape[0], values.shape[2], -1)


def flat(values):
    """Return (B, N, wide) as (B N, wide)."""
    return values.reshape(-1, values.shape[-1])


def forward(weights, words, heads=HEADS, divided=True):
    """Return the logits, (B, N, words), and what the way back needs.

    Fewer columns of W_K and W_V than of W_Q: one head of them for all. `divided`: by √d.
    """
    n = words.shape[1]
    hidden = np.triu(np.full((n, n), -np.inf, weights["embed"].dtype), 1)
    x = weights["embed"][words] + weights["positions"][:n]
    kept = []
    for layer in range(LAYERS):
        made = [x @ weights[f"w{c}{layer}"] + weights[f"b{c}{layer}"] for c in "qkv"]
        d = made[0].shape[-1] // heads
        kv_heads = made[1].shape[-1] // d
        q, k, v = map(split, made, (heads, kv_heads, kv_heads))
        scores = q @ k.swapaxes(-1, -2) * (d**-0.5 if divided else 1.0) + hidden
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        o = join(p @ v)
        kept.append((x, q, k, v, p, o))
        x = x + o @ weights[f"wo{layer}"] + weights[f"bo{layer}"]
    return x @ weights["unembed"] + weights["bias"], (x, kept)


def losses(logits, words):
    """Return −log of the probability that each next word was given, (B, N − 1)."""
    logits = logits[:, :-1] - logits[:, :-1].max(-1, keepdims=True)
    total = np.log(np.exp(logits).sum(-1))
    return total - np.take_along_axis(logits, words[:, 1:, None], -1)[..., 0]


def loss_and_gradients(weights, words, heads=HEADS, divided=True):
    """Return the mean loss of a batch, and its derivative by every weight."""
    logits, (x, kept) = forward(weights, words, heads, divided)
    found, out = losses(logits, words), {}
    # Of softmax and cross entropy: the probabilities, less one where the next word is.
    d_logits = np.exp(logits - logits.max(-1, keepdims=True))
    d_logits /= d_logits.sum(-1, keepdims=True)
    d_logits[:, -1] = 0
    rows, columns = np.indices(found.shape)
    d_logits[rows, columns, words[:, 1:]] -= 1
    d_logits /= found.size
    out["unembed"], out["bias"] = flat(x).T @ flat(d_logits), d_logits.sum((0, 1))
    d_x = d_logits @ weights["unembed"].T
    for layer in reversed(range(LAYERS)):
        x, q, k, v, p, o = kept[layer]
        out[f"wo{layer}"], out[f"bo{layer}"] = flat(o).T @ flat(d_x), d_x.sum((0, 1))
        d_o = split(d_x @ weights[f"wo{layer}"].T, heads)
        d_p = d_o @ v.swapaxes(-1, -2)
        scale = q.shape[-1] ** -0.5 if divided else 1.0
        d_s = p * (d_p - (d_p * p).sum(-1, keepdims=True)) * scale
        made = d_s @ k, d_s.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ d_o
        if k.shape[1] < heads:
            made = made[0], *(each.sum(1, keepdims=True) for each in made[1:])
        for c, d_made in zip("qkv", map(join, made), strict=True):
            out[f"w{c}{layer}"], out[f"b{c}{layer}"] = flat(x).T @ flat(d_made), d_made.sum((0, 1))
            d_x = d_x + d_made @ weights[f"w{c}{layer}"].T
    out["embed"] = np.zeros_like(weights["embed"])
    np.add.at(out["embed"], words, d_x)
    out["positions"] = np.zeros_like(weights["positions"])
    out["positions"][: words.shape[1]] = d_x.sum(0)
    return float(found.mean()), out


def begin(seed=SEED, kv_heads=HEADS):
    """Return the state before the first step: all that the next step depends on."""
    weights = make(np.random.default_rng([seed, 0]), kv_heads)
    zeros = [{name: np.zeros_like(value) for name, value in weights.items()} for _ in range(2)]
    rng = np.random.default_rng([seed, 1])
    return {"done": 0, "weights": weights, "mean": zeros[0], "square": zeros[1], "rng": rng}


def train(steps=STEPS, seed=SEED, state=None, **kind):
    """Yield the number of steps done, the weights and the loss of the batch, before every step.

    Adam (Kingma & Ba 2014) with a rate that rises, then falls as a cosine, and gradients of at most
    length 1. A `state` of `begin` is changed step by step, and goes on from where it is; `kind` are
    arguments of `forward`.
    """
    state = state or begin(seed)
    weights, mean, square = (state[name] for name in ("weights", "mean", "square"))
    for n in range(state["done"] + 1, steps + 2):
        rng = deepcopy(state["rng"])
        loss, gradients = loss_and_gradients(weights, batch(rng), **kind)
        yield n - 1, weights, loss
        rate = RATE * min(1, n / WARM) * (0.525 + 0.475 * np.cos(np.pi * n / steps))
        size = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
        for name, gradient in gradients.items():
            gradient = gradient / max(1, size)
            mean[name] = 0.9 * mean[name] + 0.1 * gradient
            square[name] = 0.98 * square[name] + 0.02 * gradient**2
            root = np.sqrt(square[name] / (1 - 0.98**n)) + 1e-8
            weights[name] -= (rate * mean[name] / (1 - 0.9**n) / root).astype(np.float32)
        state["done"], state["rng"] = n, rng


# --- variants of it -----------------------------------------------------------------------------

VARIANTS = {
    "usual": {},
    "no root": {"divided": False},
    "one head": {"heads": 1},
    "one head, no root": {"heads": 1, "divided": False},
    "MQA": {"kv_heads": 1},
}
"""What is different from the model that ships: nothing, scores not divided by √d, one head of the
whole width, both, one head of keys and values for all."""
SEEDS, EVERY = (17, 18), 100


def held_out():
    """Return the text of the layers' x, and sequences that the loss is measured on, by kind."""
    rng = np.random.default_rng([SEED, 2])
    text = repeated(rng, TEXT_PERIOD)
    kinds = {"sentences": sentences, "repeated": repeated}
    return text, {
        kind: np.stack([draw(rng) for _ in range(HELD_OUT)]) for kind, draw in kinds.items()
    }


def measured(weights, held, **kind):
    """Return the loss of held-out sentences, and where a repeated sequence says a word again."""
    exact = {name: value.astype(np.float64) for name, value in weights.items()}
    found = {name: losses(forward(exact, words, **kind)[0], words) for name, words in held.items()}
    words = held["repeated"][:, :-1]
    again = (np.tril(words[:, :, None] == words[:, None, :], -1)).any(2)
    return float(found["sentences"].mean()), float(found["repeated"][again].mean())


def course(variant, seed, held, steps=STEPS):
    """Return the losses of `measured` over training, (moments, 2)."""
    kind = dict(VARIANTS[variant])
    state = begin(seed, kind.pop("kv_heads", HEADS))
    found = [
        measured(weights, held, **kind)
        for done, weights, _ in train(steps, seed, state, **kind)
        if done % EVERY == 0
    ]
    return np.array(found)


def write_variants(path):
    """Train every variant from three seeds, and write its losses, (seeds, moments)."""
    _, held = held_out()
    out = {"made_by": "docs/train_small.py", "seeds": SEEDS, "every": EVERY, "variants": {}}
    for name in VARIANTS:
        found = np.array([course(name, seed, held) for seed in SEEDS]).round(4)
        out["variants"][name] = {
            "sentences": found[..., 0].tolist(),
            "again": found[..., 1].tolist(),
        }
        print(f"{name}: at the end {found[:, -1].round(3).tolist()}", flush=True)
    path.write_text(json.dumps(out) + "\n")


# --- one that is built by hand ------------------------------------------------------------------


def by_hand(words=9, length=18, sure=60.0):
    """Return weights whose heads do their jobs exactly, with nothing trained.

    A row of x has four parts: its word, its place, the word before it and what comes next. In layer
    0, head 0 finds the place before and copies its word to the third part; head 1 finds the first
    place. In layer 1, head 0 finds the word of its row in the third part of others, which is
    induction, and copies the word of what it found to the fourth; head 1 finds the same word
    before.

    Parameters
    ----------
    words, length : int
        Words, of which the first is the start, and places.
    sure : float
        By how much the score of the right key is larger than those of the others.
    """
    word, place = np.eye(words), np.eye(length)
    before, wide = words + length, 3 * words + length
    out = {"embed": np.zeros((words, wide)), "positions": np.zeros((length, wide))}
    out["embed"][:, :words] = word
    out["positions"][:, words:before] = place
    for layer, d in enumerate((length, words + length + 1)):
        for c, columns in zip("qkv", (2 * d, 2 * d, 2 * words), strict=True):
            out[f"w{c}{layer}"], out[f"b{c}{layer}"] = np.zeros((wide, columns)), np.zeros(columns)
        out[f"wo{layer}"], out[f"bo{layer}"] = np.zeros((2 * words, wide)), np.zeros(wide)
    copied = np.diag([0.0] + [1.0] * (words - 1))  # the start stands for nothing
    sharp = sure * np.sqrt(length)
    out["wq0"][words + 1 : before, : length - 1] = sharp * place[1:, 1:]
    out["wk0"][words:before] = np.hstack([place, place])
    out["bq0"][length] = sharp
    out["wv0"][:words, :words] = copied
    out["wo0"][:words, before : before + words] = word
    d = words + length + 1
    sharp = sure * np.sqrt(d)
    out["wq1"][:words, :words] = sharp * word
    out["wk1"][before : before + words, :words] = word
    # A word that was not there before rests on the start, which all others pass over.
    out["bq1"][words], out["wk1"][0, words] = sharp / 2, 1
    out["wv1"][:words, :words] = copied
    out["wo1"][:words, before + words :] = word
    out["wq1"][:before, d : d + before] = np.diag([sharp] * words + [-sharp] * length)
    out["wk1"][:before, d : d + before] = np.eye(before)
    out["unembed"] = np.zeros((wide, words))
    out["unembed"][before + words :] = 20 * word
    out["bias"] = np.zeros(words)
    return out


# --- files --------------------------------------------------------------------------------------


def save(tensors, path, said):
    """Write a safetensors file whose bytes depend on nothing but what is in it."""
    header, start = {"__metadata__": dict(sorted(said.items()))}, 0
    # Wide elements first, so that every tensor is aligned.
    for name, value in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        ends = [start, start := start + value.nbytes]
        header[name] = {
            "dtype": f"F{8 * value.itemsize}",
            "shape": value.shape,
            "data_offsets": ends,
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = [tensors[name].tobytes() for name in list(header)[1:]]
    path.write_bytes(b"".join([len(text).to_bytes(8, "little"), text, *data]))


def write_moment(folder, step, weights, heads, vocabulary, text, model):
    """Write the two layers and the rest of the weights, all rounded to float16.

    x of every layer is what the rounded weights make of `text`.
    """
    half = {name: value.astype(np.float16) for name, value in weights.items()}
    exact = {name: value.astype(np.float64) for name, value in half.items()}
    _, (_, kept) = forward(exact, text[None], heads)
    said = {"model": model, "license": "MIT", "made_by": "docs/train_small.py"}
    words = json.dumps([vocabulary[n] for n in text])
    for layer, (x, q, *_) in enumerate(kept):
        names = [f"{kind}{c}" for kind in "wb" for c in "qkvo"]
        tensors = {name: half[f"{name}{layer}"] for name in names}
        tensors["x"] = x[0].astype(np.float16)
        scale = str(q.shape[-1] ** -0.5)
        more = {"tokens": words, "layer": str(layer), "scale": scale, "causal": "true"}
        save(tensors, folder / f"step-{step:04}-layer{layer}.safetensors", {**said, **more})
    rest = {name: half[name] for name in ("embed", "positions", "unembed", "bias")}
    rest["heads"], rest["step"] = np.float32([heads]), np.float32([step])
    path = folder / f"step-{step:04}-rest.safetensors"
    save(rest, path, {**said, "tokens": json.dumps(vocabulary)})


def write_held_out(folder, sequences):
    """Write the numbers of words that the loss is measured on, by their kind."""
    found = {kind: np.asarray(words, np.float16) for kind, words in sequences.items()}
    save(found, folder / "held-out.safetensors", {"made_by": "docs/train_small.py"})


def write_small(folder):
    """Train, and write the moments."""
    text, held = held_out()
    folder.mkdir(exist_ok=True)
    write_held_out(folder, held)
    for step, weights, loss in train():
        if step in MOMENTS:
            write_moment(
                folder, step, weights, HEADS, WORDS, text, f"small transformer, step {step}"
            )
            print(f"step {step}: loss of a batch {loss:.3f}", flush=True)


def write_by_hand(folder):
    """Write the one that is built by hand."""
    weights = by_hand()
    words, length = len(weights["embed"]), len(weights["positions"])
    vocabulary = (START, *"abcdefghijklmnopqrstuvwxyz"[: words - 1])
    text = np.concatenate([[0], np.resize(np.arange(1, words), length - 1)])
    rng = np.random.default_rng([SEED, 3])
    folder.mkdir(exist_ok=True)
    drawn = [repeated(rng, period, words, length) for period in range(3, words)]
    write_held_out(folder, {"repeated": drawn})
    write_moment(folder, 0, weights, 2, vocabulary, text, "two layers built by hand")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    write_by_hand(Path(sys.argv[1]) / "by-hand")
    write_small(Path(sys.argv[1]) / "small")
    write_variants(Path(sys.argv[1]) / "small-variants.json")
