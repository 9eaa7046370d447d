// Split-KV (Flash-Decoding), in two launches.
//
// Paper      Dao, Haziza, Massa, Sizov 2023, "Flash-Decoding for long-context inference"; each
//            split is Dao 2023, "FlashAttention-2", Algorithm 1. Splits and their joining are dealt
//            out as in Dao-AILab/flash-attention, csrc/flash_attn/src/flash_fwd_kernel.h
//            (n_blocks_per_split, combine_attn_seqk_parallel).
// Grids      split_kv (row blocks, kv heads, splits); split_kv_combine (row blocks, kv heads).
// Block      WARPS warps; a warp owns ROWS = ceil(BR / WARPS) query rows (common.cuh).
// Shared     split_kv          as flash2: S, Q and one tile of K and V;
//            split_kv_combine  4 WARPS splits bytes: the weights of the row that a warp is at
//            (kernels/cuda/specs.py: shared_bytes).
// Registers  m, l and O of the warp's rows, float32; in split_kv_combine O of one of them.
// Changed    since FlashAttention-2: with few queries and a long cache there are too few row blocks
//            to fill a GPU, so the column blocks of one are dealt out to several thread blocks.
//            Each leaves a partial O and its LSE in HBM, in float32, for a second launch to join.
//            The query heads of a KV head are packed: they lie below each other as the rows of one
//            head, `queries` of each, so K and V are loaded once for all of them.

#include "common.cuh"
#include "split_kv.cuh"

// K and V whose keys lie one after the other.
struct Together {
    const element* K_hbm;   // [kv heads, Nk, HEAD_DIM]
    const element* V_hbm;   // [kv heads, Nk, VALUE_DIM]
    const int* kv_head_of;  // [kv heads of Q]
    int seqlen_k;

    __device__ __forceinline__ void load(
        element* K_shared, element* V_shared, int head, int first_key, int keys,
        const Visit& visit) const
    {
        const Index key = (Index)kv_head_of[head] * seqlen_k + first_key;
        load_tile(K_shared, BC, KEY_STRIDE,  // [load] Dao 2023, Algorithm 1, line 7
                  K_hbm + key * HEAD_DIM, keys, HEAD_DIM, visit, READ_K);
        load_tile(V_shared, BC, VALUE_DIM,  // [load] Dao 2023, Algorithm 1, line 7
                  V_hbm + key * VALUE_DIM, keys, VALUE_DIM, visit, READ_V);
    }
};

// ptxas split_kv fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas split_kv trace: at most 128 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) split_kv(
    const element* Q_hbm,      // [kv heads, rows, HEAD_DIM]; rows are packed
    const element* K_hbm,      // [kv heads, Nk, HEAD_DIM]
    const element* V_hbm,      // [kv heads, Nk, VALUE_DIM]
    const int* kv_head_of,     // [kv heads of Q]
    float* O_partial_hbm,      // [kv heads, splits, rows, VALUE_DIM] of the launch
    float* LSE_partial_hbm,    // [kv heads, splits, rows] of the launch
    VISIT_PARAMETERS,          // column blocks of each row block, of all its splits
    MASK_PARAMETERS, int queries,
    int split_blocks,          // column blocks of a split; the last may have fewer, or none
    SCORE_PARAMETERS SINK_PARAMETERS THRESHOLD_PARAMETERS,
    int first_head, int first_block  // of this launch: blockIdx counts from there
    TRACE_PARAMETERS)
{
    const PackedMask mask = {MASK_OF(queries), seqlen_q};
    const Score score = SCORE;
    const Sinks sink = SINKS;
    const Together cache = {K_hbm, V_hbm, kv_head_of, seqlen_k};
    const Trace trace(blockIdx.y, gridDim.x, (seqlen_k + BC - 1) / BC TRACE_ARGUMENTS);
    work_on_split(Q_hbm, cache, O_partial_hbm, LSE_partial_hbm, run_offsets, runs_hbm,
                  seqlen_q, seqlen_k, queries, split_blocks,
                  mask, score, sink THRESHOLD_ARGUMENTS, first_head, first_block, trace);
}

#include "join_splits.cuh"
