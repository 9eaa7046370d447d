"""Keys and values that are one latent row of each token, shared by all heads (MLA, absorbed).

A token has `latent_dim` numbers and `rope_dim` more, which its position has turned. All of them are
its key; the first `latent_dim` are its value, too. The weights that project keys and values from
the latent are absorbed in the projections of queries and output.

References: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1; deepseek-ai/FlashMLA.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from simulator.base.dtypes import F32
from simulator.base.errors import SCENARIO, InputError, Mistake, refuse
from simulator.problem import linear
from simulator.problem.facts import PACKED
from simulator.problem.input_files import (
    MORE,
    FileLayout,
    InputFile,
    StoredTensor,
    as_run,
    checked_extra,
    described,
    read_tensor,
    stored_tensors,
)
from simulator.problem.scenario import Attention, Scenario

LATENT = "latent"
"""The tensor of a file that holds a row of each token, (Nk, latent_dim + rope_dim)."""
_NARROWER = 8
"""How many times wider a latent is than its RoPE part, as in DeepSeek-V3: 512 and 64."""


def is_latent(said: Attention) -> bool:
    """Return whether a scenario's keys and values are a latent."""
    return said.latent_dim is not None or said.rope_dim is not None


def check_latent(scenario: Scenario) -> None:
    """Refuse keys of a scenario that a latent excludes."""
    said, mistakes = scenario.attention, []
    for key in ("head_dim", "value_dim"):
        if (value := getattr(said, key)) is not None:
            expected = "no such number beside latent_dim and rope_dim, which give it"
            mistakes.append(Mistake(f"attention.{key}", str(value), expected))
    if said.kv_heads not in (None, 1):
        expected = "1: all heads share the latent"
        mistakes.append(Mistake("attention.kv_heads", str(said.kv_heads), expected))
    if scenario.position.kind is not None:
        expected = "none with a latent: its last rope_dim numbers are turned already"
        mistakes.append(Mistake("position.kind", scenario.position.kind, expected))
    if scenario.input.source not in ("random", "file"):
        expected = '"random" or "file": a latent is drawn, or a tensor of a file'
        mistakes.append(Mistake("input.source", scenario.input.source, expected))
    if said.latent_dim is None and scenario.input.source == "random":
        mistakes.append(Mistake("attention.latent_dim", "", "a whole number beside rope_dim"))
    if mistakes:
        raise InputError(SCENARIO, mistakes)


def latent_dims(said: Attention, width: int | None = None) -> tuple[int, int]:
    """Return ``latent_dim`` and ``rope_dim``."""
    latent, rope = said.latent_dim, said.rope_dim
    if width is None:
        return latent or 0, rope or 0
    if latent is None:
        latent = width - (rope or 0)
    if rope is None:
        rope = width - latent
    if latent < 1 or rope < 0 or latent + rope != width:
        key = "rope_dim" if said.latent_dim is None else "latent_dim"
        expected = f"latent_dim + rope_dim = {width}, the numbers of a row of the file's latent"
        raise refuse(SCENARIO, f"attention.{key}", getattr(said, key), expected)
    return latent, rope


def read_latent_header(path: Path, said: Attention, layout: FileLayout = "hnd") -> InputFile:
    """Read the header of a file with queries and a latent in the place of k and v."""
    tensors, meta = stored_tensors(path, ("q", LATENT, *MORE))
    for name in ("q", LATENT):
        if name not in tensors:
            expected = f"tensors q and {LATENT}, as the scenario has latent_dim or rope_dim"
            raise refuse(str(path), f"tensor {name}", "", expected)
    tensors, notes = as_run(path, tensors, ("q", LATENT), said.dtype, layout)
    q, latent = tensors["q"], tensors[LATENT]
    shape = latent.shape[1:] if latent.shape[:-2] == (1,) else latent.shape
    if len(shape) != 2 or 0 in shape:
        expected = "two axes (tokens, latent_dim + rope_dim), none empty"
        raise refuse(str(path), f"shape of {LATENT}", latent.shape, expected)
    if shape[1] != q.shape[2]:
        expected = f"rows of {q.shape[2]} numbers, as those of q"
        raise refuse(str(path), f"shape of {LATENT}", latent.shape, expected)
    k = replace(latent, shape=(1, *shape))
    v = StoredTensor((1, shape[0], latent_dims(said, shape[1])[0]), latent.dtype)
    file = described(path, meta, q, k, v)
    return replace(file, extra=checked_extra(path, tensors, q, k), notes=notes)


def read_latent(file: InputFile) -> tuple[F32, F32]:
    """Read Q, (H, Nq, d), and the latent as the keys of one head, (1, Nk, d), float32."""
    return read_tensor(file.path, "q", file.q), read_tensor(file.path, LATENT, file.k)


def fitting(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's tables without the settings that its algorithm refuses.

    If the algorithm reads a latent, keys and values become one, as wide as keys were. Settings that
    need a softmax are dropped, as in `simulator.problem.linear.fitting`.
    """
    attention = dict(tables.get("attention", {}))
    if PACKED.get(attention.get("algorithm", "")) != "latent":
        return linear.fitting(tables)
    width, value = attention.pop("head_dim"), attention.pop("value_dim", None)
    attention.pop("kv_heads", None)
    rope = width - value if value and value < width else width // _NARROWER
    return {**tables, "attention": {**attention, "latent_dim": width - rope, "rope_dim": rope}}
