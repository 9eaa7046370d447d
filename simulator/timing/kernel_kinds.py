"""Kinds of attention kernels, as far as their time depends on them (assets/kernels.toml)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import get_args

from simulator.base.assets import ASSETS
from simulator.problem.hardware import Gpu
from simulator.problem.scenario import Algorithm, KernelName
from simulator.program.algorithms import ALGORITHMS, USUAL


@dataclass(frozen=True, slots=True)
class KernelKind:
    """How a kernel uses a multiprocessor."""

    name: KernelName
    title: str  # the release whose kernels are like this
    # share of products and softmax that run in turn: 0 if one hides all of the other, 1 if none
    in_turn: float
    newest_instruction: bool  # whether products use the newest one; Hopper needs it for full rate
    block_us: float  # microseconds of a thread block before its first product and after its last
    exchange_warps: int  # warps that add up their parts of O through shared memory; 0 without
    shares_rows: bool  # whether the rows of a head are dealt out to several thread blocks
    source: str


@cache
def kernel_kinds() -> dict[KernelName, KernelKind]:
    """Return the kinds by name, in the order of the file."""
    table = tomllib.loads((ASSETS / "kernels.toml").read_text(encoding="utf-8"))
    return {name: KernelKind(name=name, **table[name]) for name in get_args(KernelName)}


def usual_kind(algorithm: Algorithm, gpu: Gpu) -> KernelName:
    """Return the kind of kernel that runs an algorithm on a GPU if a scenario names none."""
    own = ALGORITHMS[algorithm]
    if own.normalises_each_tile:
        return "fa1"
    return "fa3" if own is USUAL and int(gpu.capability) == 9 else "fa2"
