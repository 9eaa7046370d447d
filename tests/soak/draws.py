"""What is opened, typed and changed in a soak: right, wrong, and not there."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.problem.hardware import gpus
from simulator.problem.scenario import Scenario, with_values
from simulator.program.algorithms import ALGORITHMS

TYPED = ("0", "1", "7", "64", "13", "-3", "1e9", "0.5", "abc", "π", "4097", "99999999999", " ", "")
"""What is typed into fields: some of it is right somewhere, nothing is right everywhere."""
CAPTURES = ("cat-because-layer2", "soft-red-mat-layer2", "robot-ball-layer2", "nobody-has-this")


def make_files(folder: Path) -> list[Path]:
    """Make files to open: right ones, wrong ones, and one that is not there."""
    out = [*SCENARIOS.glob("*.toml"), *LESSONS.glob("*.md"), folder / "nowhere.toml"]
    for name, text in (
        ("broken.toml", "[attention\nheads = 2"),
        ("wrong.toml", '[attention]\nheads = 0\nkind = "soft"\n'),
        ("absent.toml", '[input]\nsource = "file"\npath = "nowhere.npz"\n'),
        ("empty.md", ""),
        ("odd.md", "# Odd\n\n## A step\n\n```toml\nlayout = \"nowhere\"\n```\nWords.\n"),
    ):  # fmt: skip
        out.append(folder / name)
        out[-1].write_text(text, encoding="utf-8")
    rng = np.random.default_rng(1)
    for name, heads, rows in (("tensors.npz", 2, 40), ("more.npz", 4, 17)):
        arrays = {key: rng.standard_normal((heads, rows, 8), np.float32) for key in "qkv"}
        out.append(folder / name)
        np.savez(out[-1], **arrays)
    out.append(folder / "junk.safetensors")
    out[-1].write_bytes(b"\xff" * 64)
    return out


def random_changes(draw: random.Random) -> dict[str, dict[str, object]]:
    """Return some values of a scenario; now and then such as are refused."""
    heads = draw.choice((1, 2, 3, 4, 6))
    length = draw.choice((1, 5, 16, 33, 64, 70, 96, 257, 1024))
    attention = draw.choice((
        {"algorithm": draw.choice(tuple(ALGORITHMS))},
        {"heads": heads, "kv_heads": draw.choice((1, heads, 5))},
        {"seqlen_q": length, "seqlen_k": draw.choice((length, 40, None))},
        {"head_dim": draw.choice((1, 8, 32, 64, 0))},
        {"dtype": draw.choice(("float32", "float16", "bfloat16", "int3"))},
        {"scale": draw.choice((0.1, 1.0, -1.0, None)), "temperature": draw.choice((0.5, 1.0, 2.0))},
    ))  # fmt: skip
    rows = draw.choice((1, 4, 16, 24, 64))
    return draw.choice((
        {"attention": attention}, {"attention": attention}, {"attention": attention},
        {"mask": {"causal": draw.choice((True, False)), "window": draw.choice((0, 0, 5, 24)),
                  "sinks": draw.choice((0, 2))}},
        {"tiling": {"rows": rows, "cols": draw.choice((4, 16, 20, 64)), "rule": None}},
        {"tiling": {"splits": draw.choice((None, "auto", 1, 2, 7, 0)), "split_size": None}},
        {"tiling": {"splits": None, "split_size": draw.choice((4, 16, 33, 64))}},
        {"tiling": {"rows": None, "cols": None, "rule": draw.choice(("paper", "fa2", "fa3"))}},
        {"input": {"source": "random", "seed": draw.randrange(9), "path": None, "name": None}},
        {"input": {"source": "capture", "name": draw.choice(CAPTURES), "path": None}},
        {"hardware": {"preset": draw.choice((*gpus(), "Abacus"))}},
        {"faults": {name: draw.random() < 0.4 for name in
                    ("forget_alpha", "no_maximum", "late_mask", "half_accumulator")}},
    ))  # fmt: skip


def small(draw: random.Random) -> Scenario:
    """Return a scenario of a few tiles."""
    return with_values(Scenario(), {
        "attention": {
            "algorithm": draw.choice(tuple(ALGORITHMS)), "heads": 2, "kv_heads": 1,
            "seqlen_q": draw.choice((12, 20, 40)), "head_dim": 8,
        },
        "mask": {"causal": draw.random() < 0.5},
        "tiling": {"rows": 8, "cols": 8},
    })  # fmt: skip
