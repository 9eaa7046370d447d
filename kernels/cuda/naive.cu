// Naive attention, in three launches.
//
// Paper      Dao et al. 2022, "FlashAttention", Algorithm 0 (standard attention implementation).
// Grids      scores (row blocks, heads); softmax (rows, heads); output (row blocks, heads).
// Block      scores, output: WARPS warps, a warp owns ROWS query rows (common.cuh);
//            softmax: SOFTMAX_WARPS warps on one row.
// Shared     scores   4 TILE_ROWS BC + b (TILE_ROWS d + BC (d + pad)) bytes: S, Q, one tile of K;
//            softmax  4 Nk: one row, so that S is read once (and a number for each warp);
//            output   4 TILE_ROWS BC + b BC dv: one tile of P and of V
//            (kernels/cuda/specs.py: shared_bytes).
// Registers  O of the warp's rows, float32.
// Changed    nothing: this is where the story starts. S and P are as large as Nq Nk, go to HBM
//            and come back. Every tile is visited, even where the mask hides all of it.
//
// S and P lie in HBM as float32 unless -DSCORES_AS_ELEMENT says that they are as wide as Q. The
// bytes that are counted are those of the latter in both builds (CONVENTIONS, "Traffic").
// Rounding S to float16 would move the row's maximum by 1e-3, and m, l and LSE with it, so what
// is shown and checked keeps float32; what is timed is built with -DSCORES_AS_ELEMENT.

#include "common.cuh"

#ifdef SCORES_AS_ELEMENT
typedef element pair;
#else
typedef float pair;
#endif
#define SOFTMAX_WARPS 4
#define SOFTMAX_THREADS (SOFTMAX_WARPS * WARP)

// ptxas naive_scores fast: at most 80 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_scores trace: at most 80 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) naive_scores(
    const element* Q_hbm,   // [heads, Nq, HEAD_DIM]
    const element* K_hbm,   // [kv heads, Nk, HEAD_DIM]
    const int* kv_head_of,  // [heads]
    pair* S_hbm,            // [heads of the launch, rows of the launch, Nk]
    VISIT_PARAMETERS,       // all column blocks of each row block
    MASK_PARAMETERS, SCORE_PARAMETERS,
    int first_head, int first_block  // of this launch: blockIdx counts from there
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* S_shared = (float*)shared_memory;                    // [TILE_ROWS, BC]
    element* Q_shared = (element*)(S_shared + TILE_ROWS * BC);  // [TILE_ROWS, HEAD_DIM]
    element* K_shared = Q_shared + TILE_ROWS * HEAD_DIM;        // [BC, KEY_STRIDE]

    const Mask mask = MASK;
    const Score score = SCORE;
    const int column_blocks = (seqlen_k + BC - 1) / BC;
    const int head = first_head + blockIdx.y, i = blockIdx.x, top_row = first_block * BR;
    const int first_row = top_row + i * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
    const int most_rows = gridDim.x * BR;
    const int launch_rows = seqlen_q - top_row < most_rows ? seqlen_q - top_row : most_rows;
    const Index key_of_head = (Index)kv_head_of[head] * seqlen_k;
    const Trace trace(blockIdx.y, gridDim.x, column_blocks TRACE_ARGUMENTS);

    load_tile(Q_shared, TILE_ROWS, HEAD_DIM,  // [load] Dao et al. 2022, Algorithm 0, line 1
              Q_hbm + ((Index)head * seqlen_q + first_row) * HEAD_DIM, rows, HEAD_DIM,
              trace.visit(i, 0), READ_Q);
    const Run* run = runs_hbm + run_offsets[first_block + i];
    for (int j = 0; j < column_blocks; ++j) {
        if (j == run->stop) ++run;
        const int first_key = j * BC;
        const int keys = seqlen_k - first_key < BC ? seqlen_k - first_key : BC;
        const Visit visit = trace.visit(i, j);
        visit.kind(run->kind);

        __syncthreads();  // every warp is done with the tile before
        load_tile(K_shared, BC, KEY_STRIDE,  // [load] Dao et al. 2022, Algorithm 0, line 1
                  K_hbm + (key_of_head + first_key) * HEAD_DIM, keys, HEAD_DIM, visit, READ_K);
        __syncthreads();  // Q and K are whole

        scores(S_shared, Q_shared, K_shared,  // [scores] Dao et al. 2022, Algorithm 0, line 1
               score, rows, keys, visit);
        visit.scores(S_shared, rows, keys);
        change_scores(S_shared, score, mask, head,  // [soft-cap] Dao et al. 2022, Algorithm 0, line 1
                      first_row, rows, first_key, keys);  // [bias] Dao et al. 2022, Algorithm 0, line 1
        if (run->kind != FULL)  // [mask] Dao et al. 2022, Algorithm 0, line 1
            apply_mask(S_shared, mask, head, first_row, first_key, keys);

#ifdef ROUND_PAIRS
        round_pairs(S_shared, keys);  // [round] Dao et al. 2022, Algorithm 0, line 1
#endif

        int stored = 0;
        for (int r = 0; r < ROWS && own_row(r) < rows; ++r) {
            const Index row = (Index)blockIdx.y * launch_rows + i * BR + own_row(r);
            for (int key = lane(); key < keys; key += WARP) {
                put(S_hbm + row * seqlen_k + first_key + key,  // [store] Dao et al. 2022, line 1
                    S_shared[own_row(r) * BC + key]);
                ++stored;
            }
        }
        visit.count(WRITE_S, stored * (int)sizeof(element));
    }
}

// The maximum or the sum over all warps of what each has found; all threads get it.
template <bool maximum>
__device__ __forceinline__ float over_warps(float* of_warp_shared /* [SOFTMAX_WARPS] */, float x)
{
    __syncthreads();  // the values of the call before have been read
    if (lane() == 0) of_warp_shared[threadIdx.x / WARP] = x;
    __syncthreads();
    x = of_warp_shared[0];
    for (int w = 1; w < SOFTMAX_WARPS; ++w)
        x = maximum ? larger(x, of_warp_shared[w]) : x + of_warp_shared[w];
    return x;
}

// ptxas naive_softmax fast: at most 48 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_softmax trace: at most 48 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(SOFTMAX_THREADS) naive_softmax(
    const pair* S_hbm,  // [heads of the launch, rows of the launch, Nk]
    pair* P_hbm,        // likewise
    int seqlen_k LOGIT_PARAMETERS
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* row_shared = (float*)shared_memory;  // [Nk]: S, then P
    __shared__ float of_warp_shared[SOFTMAX_WARPS];

    const int row = blockIdx.x, i = row / BR;
    const Index place = ((Index)blockIdx.y * gridDim.x + row) * seqlen_k;
    const Trace trace(blockIdx.y, (gridDim.x + BR - 1) / BR, 1 TRACE_ARGUMENTS);
    const Visit visit = trace.visit(i, 0);

    int passed = 0;
    float top = minus_infinity();
    for (int key = threadIdx.x; key < seqlen_k; key += SOFTMAX_THREADS) {
        row_shared[key] = widen(S_hbm[place + key]);  // [load] Dao et al. 2022, line 2
        top = larger(top, row_shared[key]);
        ++passed;
    }
    visit.count(READ_S, passed * (int)sizeof(element));
    float m = over_warps<true>(  // [row max] Dao et al. 2022, Algorithm 0, line 2
        of_warp_shared, warp_max(top));
#ifdef SINK
    const float logit = sink_hbm[sink_head + blockIdx.y];  // [load] Dao et al. 2022, Algorithm 0, line 2
    if (row % BR == 0 && threadIdx.x == 0) visit.count(READ_sink, (int)sizeof(float));
    m = larger(m, logit);  // [row max] Dao et al. 2022, Algorithm 0, line 2
#endif

    float sum = 0.0f;
    for (int key = threadIdx.x; key < seqlen_k; key += SOFTMAX_THREADS) {
        const float p = exp_below(row_shared[key], m);  // [exponentials] Dao et al. 2022, line 2
        row_shared[key] = p;
        sum += p;
        RECORDED(
            if (details_hbm && detail_from <= key / BC && key / BC < detail_to)
                details_hbm[key / BC - detail_from].p[row % BR][key % BC] = p;)
    }
    float l = over_warps<false>(  // [row sum] Dao et al. 2022, Algorithm 0, line 2
        of_warp_shared, warp_sum(sum));
#ifdef SINK
    l += exp_below(logit, m);  // [row sum] Dao et al. 2022, Algorithm 0, line 2
#endif

    for (int key = threadIdx.x; key < seqlen_k; key += SOFTMAX_THREADS) {
        float p = over(row_shared[key], l);  // [normalise] Dao et al. 2022, line 2
#ifdef ROUND_PAIRS
        p = widen(narrow(p));  // [round] Dao et al. 2022, Algorithm 0, line 2
#endif
        put(P_hbm + place + key, p);  // [store] Dao et al. 2022, Algorithm 0, line 2
    }
    visit.count(WRITE_P, passed * (int)sizeof(element));
    RECORDED(
        if (threadIdx.x == 0) {
            trace.m[row] = m;
            trace.l[row] = l;
        })
}

// ptxas naive_output fast: at most 64 registers, 0 bytes of stack, 0 bytes spilled
// ptxas naive_output trace: at most 64 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) naive_output(
    const pair* P_hbm,      // [heads of the launch, rows of the launch, Nk]
    const element* V_hbm,   // [kv heads, Nk, VALUE_DIM]
    const int* kv_head_of,  // [heads]
    element* O_hbm,         // [heads, Nq, VALUE_DIM]
    int seqlen_q, int seqlen_k GATE_PARAMETERS,
    int first_head, int first_block  // of this launch: blockIdx counts from there
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* P_shared = (float*)shared_memory;                    // [TILE_ROWS, BC]
    element* V_shared = (element*)(P_shared + TILE_ROWS * BC);  // [BC, VALUE_DIM]

    const int column_blocks = (seqlen_k + BC - 1) / BC;
    const int head = first_head + blockIdx.y, i = blockIdx.x, top_row = first_block * BR;
    const int first_row = top_row + i * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
    const int most_rows = gridDim.x * BR;
    const int launch_rows = seqlen_q - top_row < most_rows ? seqlen_q - top_row : most_rows;
    const Index key_of_head = (Index)kv_head_of[head] * seqlen_k;
    const Trace trace(blockIdx.y, gridDim.x, column_blocks TRACE_ARGUMENTS);

    float O[ROWS][VALUES] = {};  // [initialise] Dao et al. 2022, Algorithm 0, line 3
    Visit visit;
    for (int j = 0; j < column_blocks; ++j) {
        const int first_key = j * BC;
        const int keys = seqlen_k - first_key < BC ? seqlen_k - first_key : BC;
        visit = trace.visit(i, j);

        __syncthreads();  // every warp is done with the tiles before
        int loaded = 0;
        for (int n = threadIdx.x; n < TILE_ROWS * BC; n += THREADS) {
            const int row = n / BC, key = n % BC;
            P_shared[n] = 0.0f;
            if (row < rows && key < keys) {
                const Index place = (Index)blockIdx.y * launch_rows + i * BR + row;
                P_shared[n] =  // [load] Dao et al. 2022, Algorithm 0, line 3
                    widen(P_hbm[place * seqlen_k + first_key + key]);
                ++loaded;
            }
        }
        visit.count(READ_P, loaded * (int)sizeof(element));
        load_tile(V_shared, BC, VALUE_DIM,  // [load] Dao et al. 2022, Algorithm 0, line 3
                  V_hbm + (key_of_head + first_key) * VALUE_DIM, keys, VALUE_DIM, visit, READ_V);
        __syncthreads();  // P and V are whole

        visit.output_before(O, rows);
        accumulate<2>(O, P_shared, V_shared, rows, keys, visit);  // [accumulate] Dao et al., line 3
        visit.output(O, rows);
    }
#ifdef OUTPUT_GATE
    gate_output(O,  // [gate] Dao et al. 2022, Algorithm 0, line 3
                gate_hbm + ((Index)head * seqlen_q + first_row) * VALUE_DIM,  // [load] Dao et al. 2022, Algorithm 0, line 3
                rows, visit);
#endif
    store_output(O_hbm + ((Index)head * seqlen_q + first_row) * VALUE_DIM,
                 O, rows, visit);  // [store] Dao et al. 2022, Algorithm 0, line 3
}
