"""Every exercise of every lesson: its answer is that of plain NumPy, which knows no tiles."""

import re
import tomllib
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file

from simulator.base.assets import ASSETS, CAPTURES, LESSONS, PAGES
from simulator.exercises.check import check, read_answer
from simulator.exercises.made import exercises_of, lesson_name, raw_exercises
from simulator.exercises.ops import calls_of
from simulator.exercises.process import difference
from simulator.exercises.tables import ExerciseTable
from ui.look.lesson_text import FORMATS

SEEDS = range(10)
NAMES = sorted(lesson_name(path) for path in LESSONS.glob("*.md"))
MODELS, GPUS = (
    tomllib.loads((ASSETS / name).read_text(encoding="utf-8"))
    for name in ("models.toml", "gpus.toml")
)
HALF, FLOAT = 2, 4


def soft(*scores):
    """Return the softmax weight of the first of some scores."""
    e = np.exp(np.array(scores, dtype=float))
    return e[0] / e.sum()


def blocks(length, size):
    return int(np.ceil(length / size))


def seen(nq, nk, window=0, sinks=0, dilation=1):
    """Return which pairs a causal mask leaves, aligned at the last row and key."""
    i, j = np.arange(nq)[:, None] + nk - nq, np.arange(nk)
    near = (i - j < window) & ((i - j) % dilation == 0) if window else np.full((nq, nk), True)
    return (j <= i) & (near | (j < sinks))


def visible(n, row, **kinds):
    return int(seen(n, n, **kinds)[row].sum())


def token_bytes(name):
    m = MODELS[name]
    each = (
        m["latent_dim"] + m["rope_dim"] if "latent_dim" in m else 2 * m["kv_heads"] * m["head_dim"]
    )
    return HALF * m["layers"] * each


def tiles(n, rows, cols):
    """Return which tiles of a causal mask have a visible pair."""
    mask = seen(n, n)
    return np.array([
        [mask[i : i + rows, j : j + cols].any() for j in range(0, n, cols)]
        for i in range(0, n, rows)
    ])  # fmt: skip


def scores(head):
    """Return the scores of a head of the sentence of the demo."""
    file = load_file(CAPTURES / "cat-because-layer2.safetensors")
    q, k = (file[name].astype(float).reshape(-1, *file[name].shape[-2:])[head] for name in "qk")
    return q @ k.T / np.sqrt(q.shape[1])


def row_sum(head, row, upto):
    e = scores(head)[row, :upto]
    return np.exp(e - e.max()).sum()


def planted(x, e):
    """Return the fault that fits the numbers which an exercise shows."""
    found = [float(n.replace("\u2212", "-")) for n in re.findall(r"[\u2212-]?\d+\.\d+", e.ask)]
    m, l, *s, m_after, l_after = found
    fit = {
        "no maximum": (0, l + np.exp(s).sum()),
        "forget alpha": (max(m, *s), l + np.exp(s - np.max([m, *s])).sum()),
        "forget this tile's sum": (max(m, *s), l * np.exp(m - max(m, *s))),
    }
    return min(fit, key=lambda name: np.abs(np.subtract(fit[name], (m_after, l_after))).sum())


def best_tile(x, e):
    limit = GPUS[x.gpu]["smem_kib"] * 1024
    fits = [
        (blocks(4096, r), r, c)
        for r in (32, 64, 128, 256, 512)
        for c in (32, 64)
        if HALF * x.d * (r + 2 * c) <= limit
    ]
    return min(fits)[1:]


def fewest(x, e):
    tr, nd = x.n / x.t, x.n * 32
    costs = {
        "naive": HALF * (2 * nd + 2 * tr * nd + 4 * x.n**2),
        "FlashAttention-1": tr * (HALF * nd + FLOAT * 2 * nd + FLOAT * 4 * x.n)
        + HALF * 2 * nd + FLOAT * (nd + 2 * x.n),
        "FlashAttention-2": HALF * (2 * tr * nd + 2 * nd) + FLOAT * x.n,
    }  # fmt: skip
    return min(costs, key=costs.get)


def key_of(x, e):
    keys = np.array([[3, 0], [0, 3], [2, 2]])
    best = keys[np.argmax(keys @ [x.a, x.b])]
    return f"({best[0]}, {best[1]})"


def cap(s, c):
    return c * np.tanh(s / c)


def together(x):
    n = x.m + x.u
    w = np.array([x.l * np.exp(x.m - n), x.k])
    return w @ [x.o, x.p] / w.sum()


def stored(x):
    """Return bytes of weights that stay beside a cache, as many conversations as fit."""
    free = GPUS[x.gpu]["memory_gb"] * 10**9 - HALF * MODELS[x.model]["params_billion"] * 10**9
    return int(free // (token_bytes(x.model) * x.t))


PLAIN = {
    "soft-lookup": {
        "weight": lambda x, e: soft(x.a, x.b, x.c),
        "blend": lambda x, e: soft(x.a, x.b) * x.v + soft(x.b, x.a) * x.w,
        "which-key": key_of,
    },
    "why-sqrt-d": {
        "spread": lambda x, e: np.sqrt(x.d),
        "ratio": lambda x, e: soft(x.gap / np.sqrt(x.d), 0) / soft(0, x.gap / np.sqrt(x.d)),
        "scores": None,
    },
    "causal-mask": {
        "pairs": lambda x, e: np.tri(x.n).sum(),
        "last-cell": lambda x, e: (x.r, np.flatnonzero(np.tri(64)[x.r]).max()),
        "hidden": lambda x, e: soft(x.a, x.b, -np.inf),
        "mask": None,
    },
    "skipped-tiles": {
        "skipped": lambda x, e: (~tiles(x.n, x.t, x.t)).sum(),
        "last-tile": lambda x, e: (x.i, np.flatnonzero(tiles(256, 32, 16)[x.i]).max()),
        "saved": lambda x, e: tiles(x.n, x.t, x.t).mean(),
    },
    "naive-waits": {
        "bytes-of-s": lambda x, e: 2 * np.zeros((x.n, x.n), np.float16).nbytes,
        "flops": lambda x, e: 2 * 2 * x.n * x.n * x.d,
        "share": lambda x, e: 4 * x.n**2 / (4 * x.n**2 + 4 * x.n * x.d),
        "growth": lambda x, e: np.zeros((x.a, x.a, x.b)).size,
    },
    "online-softmax": {
        "alpha": lambda x, e: np.exp(x.old - (x.old + x.up)),
        "new-sum": lambda x, e: row_sum(3, 4 * x.i + x.r, 3 * x.j + 3),
        "row-sum": None,
        "fault": planted,
    },
    "flash-attention-1": {
        "bytes-of-o": lambda x, e: FLOAT * x.n * x.d * (1 + 2 * x.n // x.t),
        "join": lambda x, e: x.l * np.exp(-x.u) + x.k,
        "k-once": lambda x, e: "O",
    },
    "flash-attention-2": {
        "bytes-of-k": lambda x, e: HALF * x.n * x.d * blocks(x.n, x.t),
        "fewest": fewest,
        "rescale": None,
    },
    "tiles-and-sram": {
        "tile": best_tile,
        "shared": lambda x, e: HALF * x.d * (x.r + 2 * x.c),
        "taller": lambda x, e: blocks(x.n, x.r) / blocks(x.n, x.r * x.f),
    },
    "one-minute": {
        "visits": lambda x, e: blocks(x.n, x.r) * blocks(x.n, x.c),
        "next-tile": lambda x, e: list(np.ndindex(4, 5))[5 * x.i + 5],
        "bytes-of-o": lambda x, e: np.zeros((x.n, x.d), np.float16).nbytes,
    },
    "kv-cache": {
        "per-token": lambda x, e: token_bytes(x.model),
        "conversation": lambda x, e: token_bytes(x.model) * x.t,
        "fit": lambda x, e: stored(x),
    },
    "sharing-heads": {
        "share": lambda x, e: x.g / x.h,
        "whose": lambda x, e: np.repeat(np.arange(x.g), x.n)[x.k * x.n + x.r],
        "least": lambda x, e: min((token_bytes(o.text.split(",")[0]), o.text) for o in e.options)[
            1
        ],
    },
    "window": {
        "visible": lambda x, e: visible(64, x.r, window=x.w),
        "first-key": lambda x, e: (x.r, np.flatnonzero(seen(64, 64, x.w)[x.r]).min()),
        "reach": lambda x, e: heard(600, x.w, x.l)[550],
    },
    "sinks": {
        "visible": lambda x, e: visible(64, x.r, window=x.w, sinks=x.s),
        "logit": lambda x, e: 1 - soft(x.s, x.a, x.b),
        "hidden": lambda x, e: next(
            o.text for o in e.options if not seen(64, 64, x.w, x.s)[x.r, int(o.text.split()[1])]
        ),
    },
    "whole-layer": {
        "product": lambda x, e: (np.array([x.x, x.y]) @ [[x.a, x.b], [x.c, x.e]])[1],
        "parameters": lambda x, e: sum(
            np.prod(s) for s in [(x.w, x.h * x.d)] * 3 + [(x.h * x.d, x.w)]
        ),
        "flops": lambda x, e: x.n * x.k * (2 * x.w),
    },
    "many-heads": {
        "width": lambda x, e: len(np.split(np.zeros(x.w), x.h)[0]),
        "place": lambda x, e: np.ravel_multi_index((x.h, x.c), (8, x.d)),
        "scores": lambda x, e: sum(2 * x.n * x.n * (x.w // x.h) for _ in range(x.h)),
    },
    "heads-and-jobs": {
        "previous": lambda x, e: (x.r, np.argmax(np.eye(13, k=-1)[x.r])),
        "induction": lambda x, e: (
            x.p + x.k,
            1 + np.flatnonzero(np.tile(np.arange(x.p), 2)[: x.p] == x.k)[0],
        ),
        "score": lambda x, e: np.mean([x.a, x.b, x.c, x.e]),
    },
    "kernels": {
        "three-factors": lambda x, e: np.sqrt(x.q * x.k) * np.cos(angle(x)),
        "gaussian": lambda x, e: soft(-(x.a**2) / (2 * x.h**2), -(x.b**2) / (2 * x.h**2)),
        "sharpest": lambda x, e: (
            max(
                e.options,
                key=lambda o: soft(-(x.a**2) / (2 * h_of(o) ** 2), -(x.b**2) / (2 * h_of(o) ** 2)),
            ).text
        ),
    },
    "linear-attention": {
        "state": lambda x, e: np.zeros((x.f, x.v + 1), np.float32).nbytes,
        "phi": lambda x, e: np.where(x.x > 0, x.x, np.expm1(x.x)) + 1,
        "forget": lambda x, e: np.prod(np.full(x.n, x.g)),
    },
    "linear-costs": {
        "fewer-bytes": lambda x, e: (
            "the cache"
            if np.zeros((2, x.n, x.d), np.float16).nbytes
            < np.zeros((x.d, x.d + 1), np.float32).nbytes
            else "the state"
        ),
        "bytes": lambda x, e: np.zeros((4, x.n, x.d), np.float16).nbytes,
        "growth": lambda x, e: x.f,
        "performer": lambda x, e: np.prod([np.exp(x.w * v - v * v / 2) for v in (x.q, x.k)]),
    },
    "claims-checked": {
        "flash-flops": lambda x, e: 1.0,
        "gradient": lambda x, e: (
            np.diag([x.p, 1 - x.p]) - np.outer([x.p, 1 - x.p], [x.p, 1 - x.p])
        )[0, 0],
        "users": lambda x, e: (
            "it doubles" if (x.m - x.w) / (x.c / 2) == 2 * ((x.m - x.w) / x.c) else ""
        ),
    },
    "cross-attention": {
        "scores": lambda x, e: np.zeros((x.q, x.k)).size,
        "last": lambda x, e: np.unravel_index(x.q * x.k - 1, (x.q, x.k)),
        "keys-once": lambda x, e: np.zeros((2, x.k, x.d), np.float16).nbytes,
    },
    "rotary-positions": {
        "angle": lambda x, e: x.p * np.power(1e4, -2 * x.n / x.d),
        "same-score": lambda x, e: next(
            o.text for o in e.options if np.subtract(*map(int, re.findall(r"\d+", o.text))) == x.e
        ),
        "full-turn": lambda x, e: 2 * np.pi / np.power(1e4, -2 * x.n / x.d),
    },
    "skipped-rescales": {
        "largest": lambda x, e: np.exp2(x.t),
        "moves": lambda x, e: "yes" if np.log2(np.exp(x.u)) > x.t else "no",
        "stale": lambda x, e: np.exp(x.m + x.u - x.m),
    },
    "soft-caps": {
        "capped": lambda x, e: cap(x.s, x.c),
        "slope": lambda x, e: (cap(x.s + 1e-5, x.c) - cap(x.s - 1e-5, x.c)) / 2e-5,
        "too-early": lambda x, e: cap(-np.inf, x.c),
    },
    "sparse-masks": {
        "documents": lambda x, e: same_text(x.a, x.b, 64 - x.a - x.b).sum(),
        "dilated": lambda x, e: visible(64, x.r, window=x.w, dilation=x.n),
        "whole-tiles": lambda x, e: (
            ~same_text(x.k * x.t, x.k * x.t).reshape(2 * x.k, x.t, 2 * x.k, x.t).any(axis=(1, 3))
        ).sum(),
    },
    "order": {
        "reach": lambda x, e: heard(600, x.w, x.l)[550],
        "one-global": lambda x, e: x.t + 1,
        "shuffled": lambda x, e: (x.c, x.e),
    },
    "one-latent": {
        "bytes": lambda x, e: np.zeros(x.c + x.r, np.float16).nbytes,
        "smaller": lambda x, e: 2 * x.h * x.d / (x.c + x.r),
        "loaded": lambda x, e: np.zeros((x.n, x.c + x.r), np.float16).nbytes,
    },
    "schedules": {
        "blocks": lambda x, e: x.h * blocks(x.n, x.t),
        "waves": lambda x, e: blocks(x.k * x.s + x.r, x.s),
        "idle": lambda x, e: 1 - (x.s + x.r) / (blocks(x.s + x.r, x.s) * x.s),
    },
    "pages": {
        "pages": lambda x, e: blocks(x.k * x.p + x.r, x.p),
        "empty": lambda x, e: -(x.k * x.p + x.r) % x.p,
        "where": lambda x, e: (np.array([x.a, x.b, x.c])[:, None] * x.p + np.arange(x.p)).ravel()[
            x.i * x.p + x.r
        ],
    },
    "backward": {
        "score-gradient": lambda x, e: x.p * (x.g - x.e),
        "flops": lambda x, e: 5 * 2 * x.n * x.n * x.d,
        "kept": lambda x, e: (
            np.zeros((x.n, x.n), np.float16).nbytes / np.zeros(x.n, np.float32).nbytes
        ),
    },
    "generation": {
        "scores": lambda x, e: np.tri(x.p + x.t)[-1].sum(),
        "bytes": lambda x, e: np.zeros((2, x.n, x.d), np.float16).nbytes,
        "all-steps": lambda x, e: np.tri(x.p + x.s)[x.p :].sum(),
    },
    "ring-attention": {
        "sent": lambda x, e: (x.g - 1) * np.zeros((2, x.n // x.g, x.d), np.float16).nbytes,
        "zigzag": lambda x, e: np.arange(2 * x.g)[::-1][x.n],
        "merge": lambda x, e: together(x),
    },
    "two-corners": {
        "last-key": lambda x, e: (x.r, np.flatnonzero(seen(x.q, x.k)[x.r]).max()),
        "visible": lambda x, e: seen(x.q, x.k)[x.r].sum(),
        "nothing": lambda x, e: (~seen(x.q, x.k).any(axis=1)).sum(),
    },
    "batch-invariance": {
        "split-keys": lambda x, e: 4 * blocks(x.n // 4, x.s),
        "fixed-size": lambda x, e: blocks(x.k * x.z + x.r, x.z),
        "same-bits": lambda x, e: "splits of a fixed size",
    },
    "give-a-talk": {
        "minutes": lambda x, e: x.s * x.m / 60,
        "answer-key": lambda x, e: " or ".join({o.text for o in e.options} & {"A", "PgDn"}),
        "what-if": lambda x, e: "Alt+C, then \u2191 or \u2193",
    },
    "what-quality-costs": {
        "one-kv-head": lambda x, e: np.zeros((x.w, x.d)).size + np.zeros((x.w, x.d)).size,
        "same-weights": lambda x, e: sum([x.d] * x.h),
        "undivided": lambda x, e: np.sqrt(sum([1.0] * x.d)),
    },
    "other-ways-to-mix": {
        "forgotten": lambda x, e: np.prod([x.a] * x.n),
        "layers": lambda x, e: layers_until(x.n, x.w),
        "hybrid": lambda x, e: np.zeros((x.l // x.e, 2, 8, 128), np.float16).nbytes * x.n,
    },
    "not-only-text": {
        "patches": lambda x, e: len(range(0, x.s, x.p)) ** 2 + 1,
        "rerank": lambda x, e: x.n * np.ones((x.q + x.p, x.q + x.p)).sum(),
        "sound": lambda x, e: x.f * np.ones(x.w).sum(),
    },
    "claims-about-flash": {
        "square": lambda x, e: np.ones((x.a, x.a)).sum(),
        "loads": lambda x, e: blocks(x.n, x.r),
        "backward": lambda x, e: 2 * np.prod([x.n, x.n, x.d]),
    },
    "less-of-the-cache": {
        "share": lambda x, e: np.mean((np.arange(x.n) < x.s) | (np.arange(x.n) >= x.n - x.w)),
        "bits": lambda x, e: (x.b * x.g + 16) / x.g,
        "kept-weight": lambda x, e: soft(*np.log([x.a, x.b, x.c])),
    },
}
"""By lesson and exercise the answer from what was drawn, without the program; None for an op."""


def h_of(option):
    return float(option.text.split("= ")[1])


def angle(x):
    """Return the angle between two vectors of these lengths; NaN if none has the distance."""
    return np.arccos((x.q + x.k - x.e) / (2 * np.sqrt(x.q * x.k)))


def same_text(*lengths):
    text = np.repeat(np.arange(len(lengths)), lengths)
    return text[:, None] == text


def layers_until(n, window):
    """Return after how many layers the last of n tokens hears the first."""
    one = seen(n, n, window)
    last, layers = one[-1], 1
    while not last[0]:
        last, layers = one[last].any(axis=0), layers + 1
    return layers


def heard(n, window, layers):
    """Return of how many tokens each of n hears through layers of a causal window."""
    one = seen(n, n, window).astype(np.float32)
    far = one
    for _ in range(layers - 1):
        far = (far @ one > 0).astype(np.float32)
    return far.sum(axis=1)


def test_every_lesson_has_three_exercises_and_each_has_a_plain_answer():
    asked = {name: [raw["name"] for raw in raw_exercises(name)] for name in NAMES}
    assert {name: len(found) for name, found in asked.items() if len(found) < 3} == {}
    assert asked == {name: list(PLAIN[name]) for name in NAMES}


def test_every_kind_is_asked_and_no_file_is_of_no_lesson():
    kinds = {raw["kind"] for name in NAMES for raw in raw_exercises(name)}
    assert kinds == {"number", "cell", "choice", "tile", "fault", "op"}
    assert {path.stem for path in (ASSETS / "exercises").iterdir()} == {*NAMES}


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("lesson", NAMES)
def test_the_answer_is_that_of_plain_numpy_and_mistakes_are_told_apart(lesson):
    asked = set()
    for seed in SEEDS:
        for e in exercises_of(lesson, seed, FORMATS):
            asked.add((e.name, e.ask))
            assert "<" not in e.ask
            plain = PLAIN[lesson][e.name]
            if plain is None:
                names: dict = {"np": np}
                exec(e.answer_text, names)
                for call in calls_of(e.op, e.scenario):
                    found = names[e.op.function](*call.given.values())
                    assert difference(e.op, call, found) == ""
                continue
            expected = plain(SimpleNamespace(**e.drawn), e)
            if isinstance(expected, str):
                assert e.answer == expected
            elif e.kind == "tile":
                assert e.tiles[e.answer].requested == e.tiles[expected].requested
            else:
                assert np.allclose(e.answer, np.array(expected, float), rtol=1e-4, atol=1e-4), e.ask
            assert check(e, list(e.answer) if e.kind in ("cell", "tile") else e.answer).right
            if e.kind == "number" and e.answer != int(e.answer):
                assert check(e, float(f"{e.answer:.3g}")).right, "three digits are enough"
            for option in e.options:
                assert read_answer(e, option.text) == option.text
            for mistake, says in e.mistakes:
                told = check(e, list(mistake) if e.kind == "cell" else mistake)
                assert not told.right
                assert told.says in {words for _, words in e.mistakes}
                assert says
    assert len(asked) >= 2 * len(PLAIN[lesson])


def test_wrong_answers_without_a_reason_of_their_own_are_told_something():
    found = {e.name: e for e in exercises_of("flash-attention-2", 1, FORMATS)}
    k = found["bytes-of-k"]
    assert check(k, k.answer * 8).says == "Too large, 8 times the answer."
    assert check(k, k.answer + 1).says == "Too large."
    assert check(k, f"{k.answer:,}".replace(",", " ")).right
    assert [read_answer(k, text) for text in ("0,45", "1,024", "12.5 %", "−3e2")] == [
        0.45, 1024, 0.125, -300,
    ]  # fmt: skip
    cell = exercises_of("two-corners", 1, FORMATS)[0]
    assert check(cell, cell.answer[::-1]).says == "Row and column are the wrong way round."
    tile = exercises_of("tiles-and-sram", 1, FORMATS)[0]
    assert tile.limit < tile.tiles[512, 64].shared
    assert check(tile, "512 x 64").says.startswith("It does not fit")
    assert check(tile, "32 x 32").says.startswith("It fits, but requests")


def test_the_page_lists_the_keys_of_an_exercise():
    page = (PAGES / "exercises.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \| (.*) \|$", page.split("## Writing an exercise")[1], re.M)
    assert told == [(key, f.description) for key, f in ExerciseTable.model_fields.items()]
