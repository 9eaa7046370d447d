"""Faults planted in the kernels' text: the checks that pass on the sources fail on each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from kernels.build.sources import whole_source
from kernels.devices.host import compiler
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import ThreadOrder, ThreadSchedule
from kernels.errors import KernelError
from simulator.problem.facts import PACKED
from simulator.problem.workload import Inputs, Workload
from tests.kernels.helpers import (
    SCHEDULES,
    ChangedDevice,
    faults,
    needs_compiler,
    scenario,
    workload_of,
)

pytestmark = needs_compiler

ORDERS = (*SCHEDULES, ThreadSchedule(ThreadOrder.RANDOM, seed=1))

WARPS_AND_TAILS: dict[str, Any] = {
    "nq": 37, "nk": 70, "d": 8, "dv": 33, "rows": 20, "cols": 40, "heads": 4, "kv_heads": 2,
    "dtype": "float16",
}  # fmt: skip
"""Three warps, two column blocks with a ragged tail, values past a warp's width, two groups."""

MASKED = {"causal": True, "window": 45, "sinks": 3}


CAUSAL = {"causal": True}
_STORED = "if (row < rows && value < {}) {{\n                put(O_hbm"


@dataclass(frozen=True)
class Fault:
    """One planted fault: `old`, which occurs once, becomes `new`."""

    algorithm: str
    what: str
    old: str
    new: str
    mask: Mapping[str, Any] = field(default_factory=lambda: MASKED)
    nk: int = 70


SYNC = "__syncthreads();"

FAULTS = (
    # Barriers.
    Fault("flash2", "tiles are read before they are whole", f"{SYNC}  // the tiles are whole", ""),
    Fault("flash2", "tiles are overwritten while they are read", f"{SYNC}  // every warp", "//"),
    Fault("flash2", "a barrier that some threads do not reach", f"{SYNC}  // the tiles are whole",
          f"if (threadIdx.x < 64) {SYNC}"),
    Fault("flash1", "tiles are read before they are whole", f"{SYNC}  // the tiles are whole", ""),
    Fault("flash1", "tiles are overwritten while they are read", f"{SYNC}  // every warp", "//"),
    Fault("naive", "K is overwritten while it is read",
          f"{SYNC}  // every warp is done with the tile before", ""),
    Fault("naive", "P and V are read before they are whole", f"{SYNC}  // P and V are whole", ""),
    Fault("naive", "a maximum is overwritten by the sum", f"{SYNC}  // the values of the call",
          "//"),
    Fault("naive", "a maximum is read before it is there",
          "of_warp_shared[threadIdx.x / WARP] = x;\n    " + SYNC,
          "of_warp_shared[threadIdx.x / WARP] = x;"),
    # Masks and tile kinds.
    Fault("flash2", "window one too wide", "return place - key < window",
          "return place - key <= window"),
    Fault("flash2", "causal without the diagonal", "causal && key > place",
          "causal && key >= place"),
    Fault("flash2", "one sink too many", "key < sinks) return", "key <= sinks) return"),
    Fault("flash2", "aligned at the top left", "return row + seqlen_k - seqlen_q;", "return row;"),
    Fault("flash2", "a tile on the edge is skipped", "run->stop < to ? run->stop : to",
          "run->stop - (run->stop > 1)", mask=CAUSAL, nk=58),
    Fault("flash2", "a partial tile is taken for a full one", "return run->kind;", "return FULL;"),
    Fault("flash2", "the first run is left out", ": run(first),", ": run(first + 1),"),
    Fault("flash2", "there is but one run", "        ++run;\n        enter();",
          "        while (run->stop) ++run;\n        enter();", mask=CAUSAL),
    Fault("flash1", "the first row block of a launch is left out", "run->start : from;",
          "run->start : from + (from > 0);"),
    Fault("flash2", "the mask is forgotten", "if (tile.kind() == PARTIAL)", "if (false)"),
    Fault("naive", "hidden tiles are left as they are", "if (run->kind != FULL)",
          "if (run->kind == PARTIAL)", mask=CAUSAL, nk=56),
    # Online softmax.
    Fault("flash2", "no maximum", "const float m_new = NEW_MAXIMUM(m[r], m_tile);",
          "const float m_new = 0.0f;"),
    Fault("flash2", "the maximum of the tile alone",
          "const float m_new = NEW_MAXIMUM(m[r], m_tile);", "const float m_new = m_tile;"),
    Fault("flash2", "O is not rescaled", "O[r][n] *= alpha;", "O[r][n] *= 1.0f;"),
    Fault("flash2", "l is not rescaled", "multiply_add(alpha, l[r], l_tile)", "l[r] + l_tile"),
    Fault("flash2", "a row that sees nothing is divided by 0",
          "return denominator == 0.0f ? 0.0f : numerator / denominator;",
          "return numerator / denominator;", nk=20),
    Fault("flash2", "LSE without l", "m[r] + logf(l[r])", "m[r]"),
    Fault("flash1", "beta is forgotten", "weight[r] = over(beta, l_new);",
          "weight[r] = over(1.0f, l_new);"),
    Fault("flash1", "l is not stored", "l_hbm[own_row(r)] = l[r];", ""),
    Fault("flash1", "O is not normalised again", "over(alpha * l[r], l_new)", "alpha"),
    Fault("naive", "P is not divided by l", "float p = over(row_shared[key], l);",
          "float p = row_shared[key];"),
    # Tails, lanes and heads.
    Fault("flash2", "a key past the end is summed", "key < keys; key += WARP) sum +=",
          "key <= keys; key += WARP) sum +="),
    Fault("flash2", "the last key is left out", "for (int key = 0; key < keys; ++key)",
          "for (int key = 0; key < keys - 1; ++key)"),
    Fault("flash2", "the last row is left out", _STORED.format("VALUE_DIM"),
          _STORED.format("VALUE_DIM").replace("rows", "rows - 1")),
    Fault("flash2", "values past a warp are left out", _STORED.format("VALUE_DIM"),
          _STORED.format("WARP")),
    Fault("flash2", "half a warp is summed", "int bit = WARP / 2; bit > 0; bit /= 2) x +=",
          "int bit = WARP / 4; bit > 0; bit /= 2) x +="),
    Fault("flash2", "every head reads the first K and V", "kv_head_of[head]", "kv_head_of[0]"),
    Fault("flash2", "shared memory is overrun",
          "S_shared[own_row(r) * BC + first + c * WARP] = score",
          "S_shared[(own_row(r) + TILE_ROWS * 4) * BC + first + c * WARP] = score"),
    # What is counted and recorded.
    Fault("flash2", "Q is counted as float32", "counter, loaded * (int)sizeof(element));",
          "counter, loaded * 4);"),
    Fault("flash2", "K is loaded for hidden tiles, too", "return run->stop < to ? run->stop : to;",
          "return run->stop == 1 ? 2 : run->stop;", mask=CAUSAL, nk=56),
    Fault("flash1", "Q is loaded once", "rows, HEAD_DIM, visit, READ_Q);",
          "rows, HEAD_DIM, trace.visit(0, 0), READ_K);"),
    Fault("flash2", "padded rows are counted", "if (own_row(r) < rows) ++scored;", "++scored;"),
    Fault("flash2", "the trace build changes a sum", "const float l_tile = row_sum(S_row, keys);",
          "const float l_tile = row_sum(S_row, keys) RECORDED(* 1.0000002f);"),
    Fault("flash2", "P is recorded before it is there",
          "RECORDED(if (detail_) copy(detail_->p, P_shared, rows, keys);)", ""),
    Fault("naive", "m is recorded as l", "trace.m[row] = m;", "trace.m[row] = l;"),
    # Splits, packed rows and what is left in HBM between two launches.
    Fault("split-kv", "rows see as if no heads were packed", "row), row % of_head.seqlen_q, key",
          "row), row, key"),
    Fault("split-kv", "a split leaves out its first column block",
          "split * split_blocks, (split + 1)", "split * split_blocks + 1, (split + 1)", nk=200),
    Fault("split-kv", "a split ends where the others begin",
          "split * split_blocks, (split + 1) * split_blocks", "split * split_blocks", nk=200),
    Fault("split-kv", "heads share their partials", "((Index)blockIdx.y * splits", "(Index)(0"),
    Fault("split-kv", "O is not rescaled within a split", "O[r][n] *= alpha;", ";", nk=200),
    Fault("split-kv", "a split that sees nothing weighs as much as one with LSE = 0",
          "l[r] == 0.0f ? minus_infinity() : m[r] + logf(l[r]);",
          "l[r] == 0.0f ? 0.0f : m[r] + logf(l[r]);"),
    Fault("split-kv", "partial O is counted as O", "O, rows, visit, WRITE_O_partial",
          "O, rows, visit"),
    Fault("split-kv", "the last split is not joined",
          "for (int split = 0; split < splits; ++split)",
          "for (int split = 0; split < splits - 1; ++split)", nk=200),
    Fault("split-kv", "each lane has a maximum of its own",
          "warp_max(top);  // [row max] Dao et al.", "top;  // [row max] Dao et al."),
    Fault("split-kv", "weights are overwritten while they are read",
          "__syncwarp();  // the weights have been read", "//", nk=200),
    Fault("split-kv", "weights of a wrong row are recorded", "row * splits + split] = w", "0] = w"),
    Fault("split-kv", "O is recorded divided by l", "->o[row][value] = O;)",
          "->o[row][value] = O / l;)"),
    Fault("split-kv", "LSE without the sum", "minus_infinity() : m + logf(l)",
          "minus_infinity() : m"),
)  # fmt: skip


def workload_for(algorithm: str, mask: Mapping[str, Any], nk: int) -> tuple[Workload, Inputs]:
    """Return what a fault is looked for in."""
    # A latent is as wide as key and value together: then scores as large have more rounding errors.
    scale = 0.25 if PACKED.get(algorithm) == "latent" else 1.0
    workload, inputs = workload_of(
        scenario(algorithm, mask=dict(mask), scale=scale, **{**WARPS_AND_TAILS, "nk": nk})
    )
    if algorithm != "naive":
        # Scores that grow along the keys: tile after tile brings a new maximum, up to about 100.
        k = inputs.k * np.linspace(1, 14, inputs.k.shape[1], dtype=np.float32)[:, None]
        k = k.astype(np.float16).astype(np.float32)
        v = k[..., : workload.value_dim] if workload.latent else inputs.v
        inputs = replace(inputs, k=k, v=v)
    return workload, inputs


def findings(
    algorithm: str,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    mask: Mapping[str, Any],
    nk: int,
    made: Callable[[Callable[[str], str], ThreadSchedule], HostDevice] = ChangedDevice,
) -> list[str]:
    """Return what the checks find wrong with a kernel's text on a device that `made` makes."""
    # A fault is the same without optimisation, and compiled in half the time.
    quick = tuple("-O0" if flag == "-O2" else flag for flag in compiler.FLAGS)
    monkeypatch.setattr(compiler, "FLAGS", quick)
    workload, inputs = workload_for(algorithm, mask, nk)
    own = whole_source(algorithm)  # another may be compiled before it: that of a forward pass

    def changed(code: str) -> str:
        return text if code == own else code

    try:
        for schedule in ORDERS:
            found = faults(workload, inputs, (schedule,), lambda s: made(changed, s))
            if found:
                return found
    except KernelError as error:
        return [str(error)]
    return []


LOOKED_FOR = {(f.algorithm, str(f.mask), f.nk): f for f in FAULTS}


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("fault", LOOKED_FOR.values(), ids=map(str, LOOKED_FOR))
def test_the_sources_have_none(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a fault is looked for; other algorithms have tests of their own."""
    algorithm, mask, nk = fault.algorithm, fault.mask, fault.nk
    assert findings(algorithm, monkeypatch, whole_source(algorithm), mask, nk) == []


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.algorithm}: {fault.what}")
def test_a_planted_fault_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    text = whole_source(fault.algorithm)
    assert text.count(fault.old) == 1, f"{fault.old!r} is not in the kernel any more"
    text = text.replace(fault.old, fault.new)
    found = findings(fault.algorithm, monkeypatch, text, fault.mask, fault.nk)
    assert found, f"nothing shows that {fault.what}"
    print(found[0])
