"""A small scenario for each variant that kernels are compiled with, for each algorithm that has it.

All have grouped heads and tails: rows past the end of a tile must read nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.launch import build_options
from kernels.cuda.specs import KERNELS, kernels_of
from simulator.base.errors import InputError
from simulator.problem.facts import PACKED
from simulator.problem.latent import LATENT, fitting
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Workload, resolve

Tables = dict[str, Any]  # a scenario as a file has it
HEADS, NQ, NK = 2, 45, 70
WIDE = 40
SMALL: Tables = {
    "attention": {
        "heads": HEADS,
        "kv_heads": 1,
        "seqlen_q": NQ,
        "seqlen_k": NK,
        "head_dim": WIDE,
        "dtype": "float16",
    },
    "mask": {"causal": True, "window": 30, "sinks": 2},
    "tiling": {"rows": 20, "cols": 24, "splits": 2},
}
"""Several blocks and heads, tails, a mask."""
VARIANTS: dict[str, Tables] = {
    "no mask": {"mask": {}},
    "soft-cap": {"scores": {"softcap": 2.0}},
    "ALiBi": {"scores": {"alibi": True}},
    "bias": {"scores": {"bias": True}},
    "sink logits": {"scores": {"sink_logits": [0.5, -2.0]}},
    "soft-cap, ALiBi, bias and sink logits": {
        "scores": {"softcap": 2.0, "alibi": True, "bias": True, "sink_logits": [0.5, -2.0]}
    },
    "rounded P": {"attention": {"p_dtype": "storage"}},
    "rounded P, soft-cap": {"attention": {"p_dtype": "storage"}, "scores": {"softcap": 2.0}},
    "gate": {},
    "rescale threshold": {"attention": {"rescale_threshold": 1.0}},
    "dilation and global tokens": {
        "mask": {"causal": True, "window": 9, "dilation": 3, "global_tokens": 2}
    },
    "window of two sides": {"mask": {"window": [9, 20]}},
    "mask aligned at the top left": {"mask": {"causal": True, "align": "top-left"}},
    "documents": {"mask": {"causal": True, "documents": [13, 32, 25]}},
    "blocks": {"mask": {"block": 8}},
    "a mask of each head": {"mask": {"causal": True}},
    "in turn": {"attention": {"deterministic": True}},
    "performer": {"attention": {"feature_map": "performer", "features": 24}},
    "performer, no mask": {
        "attention": {"feature_map": "performer", "features": 24},
        "mask": {"causal": False},
    },
    "one query": {"attention": {"seqlen_q": 1}, "scores": {"alibi": True, "softcap": 2.0}},
}
"""Changes of `SMALL`, one for each variant."""
WHOLE = {"mask"}  # tables that replace those of `SMALL` as a whole
IN_FILE: dict[str, tuple[str, ...]] = {
    "bias": ("bias",),
    "soft-cap, ALiBi, bias and sink logits": ("bias",),
    "blocks": ("block_mask",),
    "gate": ("gate",),
    "a mask of each head": ("mask",),
}
"""Tensors that an input file has for a variant beside Q, K and V."""


def small(algorithm: str, changes: Mapping[str, Any] | None = None) -> Tables:
    """Return the small scenario of an algorithm with some of its values replaced."""
    tables = {name: dict(values) for name, values in SMALL.items()}
    for name, values in (changes or {}).items():
        tables[name] = dict(values) if name in WHOLE else {**tables.get(name, {}), **values}
    tables["attention"]["algorithm"] = algorithm
    return fitting(tables)


@contextmanager
def variants() -> Iterator[dict[str, Tables]]:
    """Provide the scenarios by name; their input files exist until the context ends."""
    with tempfile.TemporaryDirectory(prefix="tilescope-variants-") as folder:
        yield in_folder(Path(folder))


def in_folder(folder: Path) -> dict[str, Tables]:
    """Return the scenarios by name; write input files into a folder."""
    found = {}
    for algorithm in KERNELS:
        seen = {_ways(resolve(parse_scenario(small(algorithm))))}
        for name, changes in VARIANTS.items():
            tables = small(algorithm, changes)
            if name in IN_FILE:
                path = _file(folder, algorithm, IN_FILE[name])
                tables["input"] = {"source": "file", "path": str(path)}
            try:
                ways = _ways(resolve(parse_scenario(tables)))
            except InputError:  # the algorithm has no such thing
                continue
            if ways not in seen:  # otherwise its kernels run the same lines as in a scenario before
                seen.add(ways)
                found[f"{algorithm}, {name}"] = tables
    return found


def _ways(w: Workload) -> tuple[object, ...]:
    """Return the choices that decide which lines of its kernels a workload runs."""
    mask = w.mask
    kinds = bool(mask.documents), bool(mask.blocks), bool(mask.tensor)
    return (
        kernels_of(w),
        build_options(w, trace=False),
        tuple(mask.arguments.items()),
        kinds,
        w.seqlen_q > 1,
    )


def _file(folder: Path, algorithm: str, beside: tuple[str, ...]) -> Path:
    """Write an input file with the shapes of `SMALL`, unless it is there; return its path."""
    kind = PACKED.get(algorithm) == "latent"  # type: ignore[call-overload]
    path = folder / f"{'latent' if kind else 'apart'}-{'-'.join(beside)}.npz"
    if path.exists():
        return path
    rng = np.random.default_rng(5)

    def drawn(*shape: int) -> NDArray[np.float16]:
        return rng.standard_normal(shape).astype(np.float16)

    keys = {LATENT: drawn(NK, WIDE)} if kind else {"k": drawn(1, NK, WIDE), "v": drawn(1, NK, WIDE)}
    every: dict[str, NDArray[Any]] = {
        "bias": rng.standard_normal((HEADS, NQ + NK - 1)).astype(np.float32),
        "block_mask": rng.random((-(-NQ // 8), -(-NK // 8))) < 0.6,
        "mask": rng.random((HEADS, NQ, NK)) < 0.6,
        "gate": drawn(HEADS, NQ, small(algorithm)["attention"].get("latent_dim", WIDE)),
    }
    chosen = {name: every[name] for name in beside}
    np.savez(path, allow_pickle=False, q=drawn(HEADS, NQ, WIDE), **keys, **chosen)
    return path
