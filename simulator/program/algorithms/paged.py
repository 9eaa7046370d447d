"""Paged: split-KV with K and V in pages, at the places in a block table.

A sequence in a server grows token by token, and nobody knows how long it will be. It takes pages of
a few tokens as it needs them, wherever there is room; its block table says where. The kernel reads
one entry of the table for each page of each tile; everything else is as in split-KV.

References: Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with
PagedAttention", section 4.1; splits and their joining as in
`simulator.program.algorithms.split_kv`.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.problem.paging import TABLE
from simulator.problem.workload import Workload
from simulator.program.algorithms import split_kv, tiles
from simulator.program.launches import Cost, Launch
from simulator.program.op import Op
from simulator.program.page_ops import LoadPages, LookUpPages
from simulator.program.state import ChipTile, TileMove
from simulator.program.tensors import TensorSpec
from simulator.program.tile_program import TileAlgorithm, Visit

ENTRY = 4  # bytes of an entry of the block table: int32
_PAPER = "Kwon et al. 2023, section 4.1"
_TABLE = TensorSpec(TABLE, ("page",), width="int32")


def launches(w: Workload) -> tuple[Launch, ...]:
    """Return the launches of split-KV; the splits also read the block table."""
    reads = {**split_kv.keys_and_values(w), TABLE: Cost(page=ENTRY)}
    return split_kv.launches_reading(w, reads, page=w.page_size)


def _load_pages(w: Workload, visit: Visit, paper: str) -> list[Op]:
    """Return the ops that look up where the visit's pages lie, and load them."""
    first, last = visit.cols.start // w.page_size, (visit.cols.stop - 1) // w.page_size
    entries = range(first, last + 1)
    bytes_read = ENTRY * len(entries)
    k, v = tiles.keys(w, visit), tiles.values(w, visit)
    return [
        LookUpPages(
            cites=_PAPER,
            moves=(TileMove(TABLE, 0, entries, None, bytes_read),),
            allocates=(ChipTile(TABLE, bytes_read, "registers"),),
        ),
        LoadPages(
            cites=f"{paper} 7",
            moves=(k, v),
            allocates=(tiles.in_shared(k), tiles.in_shared(v)),
            frees=(TABLE,),
        ),
    ]


def ops(w: Workload, visit: Visit) -> tuple[Op, ...]:
    """Return the ops of one visit."""
    return split_kv.ops(w, visit, _load_pages)


ALGORITHM: TileAlgorithm = replace(
    split_kv.ALGORITHM,
    name="paged",
    title="Paged (PagedAttention)",
    short_title="Paged",
    label="paged",
    in_a_sentence="paged split-KV",
    source="Kwon et al. 2023, section 4.1",
    about="split-KV with K and V in pages",
    launches=launches,
    visit_ops=ops,
    gates=(_TABLE,),
    near=("split-kv",),
)
