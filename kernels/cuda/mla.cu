// Multi-head latent attention (MLA) with its projections absorbed, in two launches.
//
// Paper      Liu et al. (DeepSeek-AI) 2024, "DeepSeek-V2", section 2.1.2; splits and their joining as in
//            split_kv.cu, as deepseek-ai/FlashMLA deals them out.
// Grids      mla (row blocks, 1, splits); split_kv_combine (row blocks, 1).
// Block      WARPS warps; a warp owns ROWS = ceil(BR / WARPS) query rows (common.cuh).
// Shared     mla               S, Q and one tile of C (kernels/cuda/specs.py);
//            split_kv_combine  as in split_kv.cu.
// Registers  m, l and O of the warp's rows, float32; in split_kv_combine O of one of them.
// Changed    since split_kv.cu: the rows of C are the keys of all heads, and the first VALUE_DIM numbers
//            of a row its value, so a tile is loaded once for both. The rows of all heads are packed.

#include "common.cuh"
#include "split_kv.cuh"

// Keys that have their values in them.
struct Latent {
    const element* C_hbm;  // [Nk, HEAD_DIM]

    __device__ __forceinline__ void load(
        element* C_shared, element*, int, int first_key, int keys, const Visit& visit) const
    {
        load_tile(C_shared, BC, KEY_STRIDE,  // [load] Liu et al. 2024, section 2.1.2
                  C_hbm + (Index)first_key * HEAD_DIM, keys, HEAD_DIM, visit, READ_C);
    }
};

// A lane keeps VALUE_DIM / 32 numbers of O of each of up to 8 rows: 128 of them at DeepSeek-V2's size.
// Up to 64 rows it has room for them; from 96 rows on, with more threads, they spill.
// ptxas mla fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas mla trace: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas mla trace NVRTC 12: at most 128 registers, 8 bytes of stack, 16 bytes spilled
// ptxas mla fast VALUE_DIM>128: at most 255 registers, 0 bytes of stack, 0 bytes spilled
// ptxas mla trace VALUE_DIM>128: at most 255 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) mla(
    const element* Q_hbm,      // [1, rows, HEAD_DIM]; rows are packed
    const element* C_hbm,      // [Nk, HEAD_DIM]
    float* O_partial_hbm,      // [1, splits, rows, VALUE_DIM] of the launch
    float* LSE_partial_hbm,    // [1, splits, rows] of the launch
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
    const Latent cache = {C_hbm};
    const Trace trace(blockIdx.y, gridDim.x, (seqlen_k + BC - 1) / BC TRACE_ARGUMENTS);
    work_on_split<true>(Q_hbm, cache, O_partial_hbm, LSE_partial_hbm, run_offsets, runs_hbm,
                        seqlen_q, seqlen_k, queries, split_blocks,
                        mask, score, sink THRESHOLD_ARGUMENTS, first_head, first_block, trace);
}

#include "join_splits.cuh"
