// Paged split-KV, in two launches: K and V lie in pages, wherever there was room.
//
// Paper      Kwon et al. 2023, "Efficient Memory Management for Large Language Model Serving with
//            PagedAttention", section 4.1; splits and their joining as in split_kv.cu.
// Grids      paged (row blocks, kv heads, splits); split_kv_combine (row blocks, kv heads).
// Block      WARPS warps; a warp owns ROWS = ceil(BR / WARPS) query rows (common.cuh).
// Shared     as split_kv.cu (kernels/cuda/specs.py).
// Registers  m, l and O of the warp's rows, float32; in split_kv_combine O of one of them.
// Changed    since split_kv.cu: a tile comes page by page, each from the place that the block table says.
//            An entry is read once for a page, for K and V. What lies in the last page after the last
//            key, and in places of other sequences, is never read.

#include "common.cuh"
#include "split_kv.cuh"

// K and V in pages, at the same places for all KV heads.
struct Paged {
    const element* K_hbm;    // [kv heads, places, page_size, HEAD_DIM]
    const element* V_hbm;    // [kv heads, places, page_size, VALUE_DIM]
    const int* kv_head_of;   // [kv heads of Q]
    const int* table_hbm;    // [places]: of each page its place
    int page_size, places;

    __device__ __forceinline__ void load(
        element* K_shared, element* V_shared, int head, int first_key, int keys,
        const Visit& visit) const
    {
        const Index first_place = (Index)kv_head_of[head] * places;
        for (int at = 0; at < BC; at += page_size) {
            const int left = keys - at < page_size ? keys - at : page_size;
            const int filled = left > 0 ? left : 0;  // of a page that the tile does not have: none
            Index row = 0;
            if (filled) {
                const int place = table_hbm[(first_key + at) / page_size];  // [look up] Kwon et al. 2023, section 4.1
                if (threadIdx.x == 0) visit.count(READ_table, (int)sizeof(int));
                row = (first_place + place) * page_size;
            }
            load_tile(K_shared + at * KEY_STRIDE, page_size, KEY_STRIDE,  // [load] Dao 2023, Algorithm 1, line 7
                      K_hbm + row * HEAD_DIM, filled, HEAD_DIM, visit, READ_K);
            load_tile(V_shared + at * VALUE_DIM, page_size, VALUE_DIM,  // [load] Dao 2023, Algorithm 1, line 7
                      V_hbm + row * VALUE_DIM, filled, VALUE_DIM, visit, READ_V);
        }
    }
};

// With every change of scores at once ptxas prefers 64 registers and a little stack to 72.
// ptxas paged fast: at most 128 registers, 8 bytes of stack, 24 bytes spilled
// ptxas paged trace: at most 128 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) paged(
    const element* Q_hbm,      // [kv heads, rows, HEAD_DIM]; rows are packed
    const element* K_hbm,      // [kv heads, places, page_size, HEAD_DIM]
    const element* V_hbm,      // [kv heads, places, page_size, VALUE_DIM]
    const int* kv_head_of,     // [kv heads of Q]
    const int* table_hbm,      // [places]: of each page its place; of free ones anything
    int page_size, int places,
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
    const Paged cache = {K_hbm, V_hbm, kv_head_of, table_hbm, page_size, places};
    const Trace trace(blockIdx.y, gridDim.x, (seqlen_k + BC - 1) / BC TRACE_ARGUMENTS);
    work_on_split(Q_hbm, cache, O_partial_hbm, LSE_partial_hbm, run_offsets, runs_hbm,
                  seqlen_q, seqlen_k, queries, split_blocks,
                  mask, score, sink THRESHOLD_ARGUMENTS, first_head, first_block, trace);
}

#include "join_splits.cuh"
