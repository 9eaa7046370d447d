"""The names that kernels share, and what FlashAttention's own kernels call the same."""

from __future__ import annotations

from typing import NamedTuple


class Name(NamedTuple):
    """A name in the sources of the kernels."""

    name: str  # with "_" before it: the end of many names
    meaning: str
    theirs: str  # in Dao-AILab/flash-attention, csrc/flash_attn; "" where there is no such thing


NAMES = (
    Name("BR", "query rows of a tile", "kBlockM"),
    Name("BC", "keys of a tile", "kBlockN"),
    Name("HEAD_DIM", "numbers of a query and of a key, d", "kHeadDim"),
    Name("VALUE_DIM", "numbers of a value, dv", "kHeadDim"),
    Name("WARPS", "warps of a thread block", "kNWarps"),
    Name("THREADS", "threads of a thread block", "kNThreads"),
    Name("WARP", "threads of a warp", "32"),
    Name("ROWS", "query rows that a warp owns", "kNRows, the rows of a thread"),
    Name("TILE_ROWS", "rows of all warps: BR, or a few more that nobody stores", ""),
    Name("VALUES", "numbers of O that a lane holds of each row", "a row of acc_o"),
    Name("KEYS", "keys that a lane scores at once", "a row of acc_s"),
    Name("KEY_STRIDE", "elements from a key to the next in shared memory", "kSwizzle instead"),
    Name("VALUE_STRIDE", "elements from a value to the next in shared memory", "kSwizzle instead"),
    Name("OWN_KEYS", "keys of dK and dV that a warp owns, in a backward pass", ""),
    Name("DEPTHS", "columns of dQ and dK that a lane owns, in a backward pass", ""),
    Name("FRAGMENT", "side of what a warp multiplies at once on tensor cores", "MMA_Atom_Arch"),
    Name("CHUNK", "elements of 16 bytes, which one thread copies", "kGmemElemsPerLoad"),
    Name("FEATURES", "numbers of phi(q) and phi(k), in linear attention", ""),
    Name("TOTALS", "columns of a state: VALUE_DIM, and SUMS", ""),
    Name("SUMS", "1 if a state has a column for the sums of weights", ""),
    Name("GATE", "numbers of a token's gate", ""),
    Name("PARTIAL", "kind of a tile of which some pairs are hidden", "n_masking_steps"),
    Name("FULL", "kind of a tile of which all pairs are visible", ""),
    Name("element", "type of Q, K, V and O", "Element"),
    Name("pair", "type of a number of S and P in HBM, in naive attention", ""),
    Name("Index", "type of a place in HBM, 64 bits", "index_t"),
    Name("_hbm", "in HBM (global memory)", "mQ, gQ"),
    Name("_shared", "in shared memory", "sQ"),
    Name("S_shared", "scores of a tile, then its P", "acc_s, in registers"),
    Name("O", "the warp's rows of the output, not divided yet", "acc_o"),
    Name("m", "running maximum of a row", "row_max"),
    Name("l", "running sum of a row", "row_sum"),
    Name("alpha", "what l and O are multiplied by as m grows", "scores_scale"),
    Name("LSE_hbm", "log-sum-exp of each row", "softmax_lse"),
    Name("split_blocks", "column blocks of a split", "n_blocks_per_split"),
    Name("O_partial_hbm", "O of one split, before all are joined", "oaccum"),
    Name("LSE_partial_hbm", "log-sum-exp of one split", "softmax_lseaccum"),
    Name("D_hbm", "Σ dO · O of each row", "dsoftmax_sum"),
    Name("dQ_acc_hbm", "sums of dQ in float32", "dq_accum"),
    Name("kv_head_of", "the KV head of a query head", "bidh / h_h_k_ratio"),
    Name("Walk", "the loop over the tiles that a block visits, ascending", "n_block, descending"),
    Name("Run", "tiles side by side that are of one kind", "n_block_min to n_block_max"),
    Name("lane", "which thread of its warp", "threadIdx.x % 32"),
    Name("own_row", "row of the tile that is the warp's row r", "taccOcO_row"),
    Name("load_tile", "HBM to shared memory, by the whole block", "copy(gmem_tiled_copy_QKV, …)"),
    Name("scores", "S of Q Kᵀ", "gemm to acc_s"),
    Name("accumulate", "O += P V", "gemm_rs to acc_o"),
    Name("widen", "an element as float32", "convert_type"),
    Name("narrow", "a float32 rounded to an element", "convert_type"),
    Name(
        "round_pairs",
        'S, P or dS in the type of the elements, with `p_dtype = "storage"`',
        "convert_type",
    ),
    Name("gate_output", "O times its gate", ""),
    Name("put", "a float32 stored as wide as the place is", ""),
    Name("larger", "the larger of two", "MaxOp"),
    Name("multiply_add", "a b + c, rounded once", "FFMA"),
    Name("exp_below", "exp(a − b), and 0 for a = −inf", "scale_apply_exp2"),
    Name("over", "a / b, and 0 for b = 0: a row that has seen nothing", "inv_sum"),
    Name("further", "a place in swizzled shared memory, some chunks on", "Swizzle"),
)  # fmt: skip
"""In the order in which people meet them; docs/conventions.md has the same table."""

_BY_NAME = {each.name: each for each in NAMES}


def explained(word: str) -> str:
    """Return the meaning of a word of a kernel; "" if the table does not have the word."""
    found = _BY_NAME.get(word) or _BY_NAME.get(f"_{word.rpartition('_')[2]}")
    if found is None:
        return ""
    theirs = f" FlashAttention: {found.theirs}." if found.theirs else ""
    return f"{word}: {found.meaning}.{theirs}"
