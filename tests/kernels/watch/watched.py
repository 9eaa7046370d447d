"""Small workloads whose kernels are watched."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.devices.host.watch import watch_reason
from simulator.problem.latent import fitting
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Inputs, Workload, read_inputs, resolve

needs_watch = pytest.mark.skipif(
    bool(watch_reason()) and not os.environ.get("CI"), reason=watch_reason()
)

VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "plain": {},
    "float32": {"attention": {"dtype": "float32"}},
    "bfloat16": {"attention": {"dtype": "bfloat16"}},
    "soft-cap": {"scores": {"softcap": 2.0}},
    "ALiBi": {"scores": {"alibi": True}},
    "bias": {"scores": {"bias": True}},
    "sink logits": {"scores": {"sink_logits": [0.5, -2.0]}},
    "pattern": {"mask": {"dilation": 2, "global_tokens": 3, "documents": [40, 30]}},
    "unmasked": {"mask": {"causal": False, "window": 0, "sinks": 0}},
    "performer": {"attention": {"feature_map": "performer"}},
    "unmasked performer": {
        "attention": {"feature_map": "performer"},
        "mask": {"causal": False, "window": 0, "sinks": 0},
    },
    "rounded P": {"attention": {"p_dtype": "storage"}},
    "threshold": {"attention": {"rescale_threshold": 2.0}},
    "deterministic": {"attention": {"deterministic": True}},
    "decode": {"attention": {"seqlen_q": 1}, "scores": {"alibi": True}},
}
"""What chooses definitions that a kernel is compiled with."""


def case(algorithm: str, variant: str, folder: Path) -> tuple[Workload, Inputs]:
    """Return a workload of several blocks and heads, with tails and a mask."""
    attention = {
        "algorithm": algorithm, "heads": 2, "kv_heads": 1, "seqlen_q": 45, "seqlen_k": 70,
        "head_dim": 12, "dtype": "float16",
    }  # fmt: skip
    mask = {"causal": True, "window": 30, "sinks": 2}
    more = VARIANTS[variant]
    tables: dict[str, Any] = {
        "attention": {**attention, **more.get("attention", {})},
        "mask": {**mask, **more.get("mask", {})},
        "scores": more.get("scores", {}),
        "tiling": {"rows": 20, "cols": 24, "splits": 2},
    }
    if variant == "bias":
        draw, shapes = np.random.default_rng(0), {"q": (2, 45, 12), "bias": (2, 45 + 70 - 1)}
        shapes |= {"latent": (70, 12)} if algorithm == "mla" else dict.fromkeys("kv", (1, 70, 12))
        path = folder / "bias.npz"
        np.savez(path, **{
            name: draw.standard_normal(shape).astype(np.float32 if name == "bias" else np.float16)
            for name, shape in shapes.items()
        })  # fmt: skip
        tables["input"] = {"source": "file", "path": str(path)}
    workload = resolve(parse_scenario(fitting(tables)))
    return workload, read_inputs(workload)


def has(algorithm: str, variant: str) -> bool:
    """Return whether an algorithm has a variant that is no other one."""
    linear = algorithm in ("linear", "linear-recurrent", "gla", "deltanet")
    if variant == "deterministic":
        return algorithm == "flash2-backward"
    if variant == "threshold":
        return algorithm in ("flash2", "split-kv", "paged", "mla")
    if variant.startswith("unmasked"):
        return algorithm == "linear"
    if variant == "performer":
        return algorithm in ("linear", "linear-recurrent")
    if variant == "bias":
        return not linear
    if variant == "decode":
        return algorithm in ("flash2", "split-kv", "paged", "mla")
    return not linear or variant in ("plain", "float32", "bfloat16")
