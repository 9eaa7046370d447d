"""Multi-head latent attention in decoding: one latent row a token is key and value of all heads.

The projections from the latent are absorbed: the projection of keys in the queries, the projection
of values in the step after O. So every head reads the same rows, as with one KV head, and a tile of
them is loaded once: its rows are the keys, and the first numbers of each row its value. Keys are
dealt out to splits as in split-KV, and all heads are the rows of one block.

References: Liu et al. (DeepSeek-AI) 2024, "DeepSeek-V2", section 2.1.2 (the projections absorbed);
deepseek-ai/FlashMLA; the splits and their joining as in `split_kv`.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.problem.workload import Workload
from simulator.program.algorithms import split_kv, tiles
from simulator.program.launches import Cost, Launch
from simulator.program.op import Op
from simulator.program.ops import LoadLatent
from simulator.program.state import TileMove
from simulator.program.tensors import INPUTS, TensorSpec
from simulator.program.tile_program import Visit

_LATENT = TensorSpec("C", ("key", "depth"))
_LOAD = "Liu et al. 2024, section 2.1.2"


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return the launches if one tile of the latent is loaded at each visit."""
    return split_kv.launches_reading(w, {_LATENT.name: Cost(inner=w.head_dim * w.width)})


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one visit."""
    return split_kv.ops(w, visit, _load_latent)


def _load_latent(w: Workload, visit: Visit, _: str) -> list[Op]:
    """Return the load of the visit's latent rows; FlashAttention's paper has no such load."""
    size = len(visit.cols) * w.head_dim * w.width
    move = TileMove(_LATENT.name, w.kv_head_of[visit.head], visit.cols, None, size)
    held = (tiles.in_shared(move),)
    return [LoadLatent(cites=_LOAD, moves=(move,), allocates=held, value_dim=w.value_dim)]


ALGORITHM = replace(
    split_kv.ALGORITHM,
    name="mla",
    title="Multi-head latent attention (absorbed)",
    short_title="MLA",
    label="MLA",
    in_a_sentence="MLA",
    source="Liu et al. 2024, DeepSeek-V2",
    about="split-KV with one latent in the place of K and V",
    launches=launches,
    visit_ops=ops,
    inputs=(INPUTS[0], _LATENT),
    exemplars=({"attention": {"head_dim": None, "latent_dim": 2, "rope_dim": 1}},),
)
