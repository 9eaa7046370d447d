"""The inputs of linear attention beside Q, K and V, and the settings that it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.base.dtypes import F32
from simulator.base.errors import SCENARIO, refuse
from simulator.problem.facts import RULES
from simulator.problem.features import FeatureMap
from simulator.problem.input_files import PROJECTION, InputFile, check_finite, read_tensor
from simulator.problem.masks import MASK, Mask
from simulator.problem.scenario import Scenario


def check_linear(phi: FeatureMap, mask: Mask, said: Scenario, file: InputFile | None) -> None:
    """Refuse settings that linear attention cannot have, and directions of another shape."""
    attention, scores = said.attention, said.scores
    for key, factor, usual in (
        ("scale", attention.scale, None), ("temperature", attention.temperature, 1.0),
    ):  # fmt: skip
        if factor != usual:
            expected = f"no {key}: linear attention has no softmax that it could scale"
            raise refuse(SCENARIO, f"attention.{key}", factor, expected)
    if attention.p_dtype != "float32":
        expected = f"float32: {attention.algorithm} has no softmax, and so no P"
        raise refuse(SCENARIO, "attention.p_dtype", attention.p_dtype, expected)
    for key, changes in scores:
        if changes:
            value = "set" if isinstance(changes, tuple) else changes
            expected = "none: linear attention has no scores that it could change"
            raise refuse(SCENARIO, f"scores.{key}", value, expected)
    check_mask(mask)
    stored = dict(file.extra).get(PROJECTION) if file else None
    if file and stored and phi.projects and stored.shape != (phi.features, phi.depth):
        expected = f"({phi.features}, {phi.depth}): features and head_dim"
        raise refuse(str(file.path), f"shape of {PROJECTION}", stored.shape, expected)


def check_mask(mask: Mask) -> None:
    """Refuse a mask that linear attention cannot have: its state sums all keys so far."""
    for key, value in (
        ("window", list(mask.window) if isinstance(mask.window, tuple) else mask.window),
        ("sinks", mask.sinks),
        ("global_tokens", mask.global_tokens),
        ("documents", list(mask.documents)),
        ("block", mask.blocks and mask.blocks.size),
    ):
        if value:
            nothing = "0" if isinstance(value, int) and key != "block" else "none"
            expected = f"{nothing}: linear attention is causal or sees every key"
            raise refuse(SCENARIO, f"mask.{key}", value, expected)
    if mask.tensor:
        expected = f"a file without a tensor {MASK}: linear attention is causal or sees every key"
        raise refuse(SCENARIO, "input.path", "", expected)
    if mask.causal and mask.seqlen_q != mask.seqlen_k:
        expected = (
            f"{mask.seqlen_k} like seqlen_k: causal linear attention has a query for each key"
        )
        raise refuse(SCENARIO, "attention.seqlen_q", mask.seqlen_q, expected)


def read_projection(phi: FeatureMap | None, file: InputFile | None, seed: int) -> F32 | None:
    """Return the directions of a feature map: from the file, or drawn from the seed."""
    if phi is None or not phi.projects:
        return None
    stored = dict(file.extra).get(PROJECTION) if file else None
    if file is None or stored is None:
        return phi.drawn(seed)
    projection = read_tensor(file.path, PROJECTION, stored)
    check_finite(str(file.path), PROJECTION, projection)
    return projection


def fitting(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's tables; without a softmax, only the settings that the algorithm can have.

    The mask is causal or none, a causal mask has a query for each key, and nothing is scaled.
    """
    attention = dict(tables.get("attention", {}))
    if attention.get("algorithm") not in RULES:
        return dict(tables)
    causal = RULES[attention["algorithm"]].tokens or bool(tables.get("mask", {}).get("causal"))
    dropped = ("scale", "temperature", "p_dtype", *(("seqlen_k",) if causal else ()))
    attention = {key: value for key, value in attention.items() if key not in dropped}
    return {**tables, "attention": attention, "mask": {"causal": causal}, "scores": {}}
