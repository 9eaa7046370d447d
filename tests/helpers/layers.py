"""Layers to draw: their files and scenarios."""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from simulator.problem.scenario import Scenario, parse_scenario

CASE = Path(__file__).parents[1] / "conformance" / "layer-essay.expected.npz"
"""What the worked example of three tokens prints."""


def layer_file(path: Path, kind: str) -> Scenario:
    """Write a layer and return its scenario: 4 heads with biases, or 4 heads on 2 KV heads."""
    rng, shared = np.random.default_rng(0), kind == "shared"
    rows, wide, kv = (24, 20, 10) if shared else (50, 64, 64)
    shapes = {"x": (rows, wide), "wq": (wide, wide), "wk": (wide, kv), "wv": (wide, kv),
              "wo": (wide, wide)}  # fmt: skip
    if not shared:
        shapes |= {"bq": (wide,), "bk": (kv,), "bv": (kv,), "bo": (wide,)}
    made = {n: (rng.standard_normal(s) / 4).astype(np.float32) for n, s in shapes.items()}
    save_file(made, path)
    tables = {
        "attention": {"heads": 4}, "tiling": {"rows": 16, "cols": 16}, "mask": {"causal": True},
        "input": {"source": "layer", "path": str(path)},
    }  # fmt: skip
    return parse_scenario(tables)
