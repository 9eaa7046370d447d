// Linear attention: feature maps in the place of the softmax, a state in the place of all keys.
//
// Paper      Katharopoulos, Vyas, Pappas, Fleuret 2020, "Transformers are RNNs: Fast Autoregressive
//            Transformers with Linear Attention"; Performer's features: Choromanski et al. 2021,
//            "Rethinking Attention with Performers", lemma 1; chunks as in Yang et al. 2024, "Gated
//            Linear Attention Transformers with Hardware-Efficient Training".
// Grids      causal: linear_chunks (1, heads), a thread block goes through the chunks of a head;
//            else: linear_state (1, heads), of which the first of each KV head works, and
//            linear_rows (row blocks, heads).
// Block      WARPS warps; a warp owns ROWS = ceil(BR / WARPS) query rows (common.cuh).
// Shared     linear_chunks  phi(Q), phi(K), P and the state, float32; one tile of Q, K and V
//            linear_state   phi(K) and the state; one tile of K and V
//            linear_rows    phi(Q) and the state; one tile of Q
//            (kernels/cuda/specs.py).
// Registers  l and O of the warp's rows, float32.
// Changed    since FlashAttention: nothing is an exponent of a score, so there is no maximum, and no
//            key is visited again. What the keys before a chunk say to its rows is one product.
//
// Compile-time, beside those of common.cuh: FEATURES, and PROJECTS (0 elu(x) + 1, 1 Performer).

#include "common.cuh"
#define SUMS 1
#include "state.cuh"

#define FEATURE_STRIDE (FEATURES + 1)  // a key's features are one bank longer: no conflicts

// One visit under the magnifier; kernels/cuda/records.py has the same layout.
struct LinearDetail {
    float phi_q[BR][FEATURES];
    float phi_k[BC][FEATURES];
    float s[BR][BC];                     // similarities before the mask
    float p[BR][BC];
    float o[BR][VALUE_DIM];              // before it is divided by l
    float l_tile[BR], l[BR];             // of this chunk alone, and of all keys
    float state_before[FEATURES][TOTALS];
    float state[FEATURES][TOTALS];
};

#ifdef TRACE
__device__ __forceinline__ LinearDetail* detail_of(const Visit& visit)
{
    return (LinearDetail*)visit.detail_;
}

// By the whole block; `stride` is how long a row is in shared memory.
template <int WIDTH>
__device__ void copy_rows(float (*into)[WIDTH], const float* shared, int stride, int rows)
{
    for (int n = threadIdx.x; n < rows * WIDTH; n += THREADS)
        into[n / WIDTH][n % WIDTH] = shared[n / WIDTH * stride + n % WIDTH];
}
#endif

// phi of a tile, by the whole block; rows past the end have features, too, which nobody reads.
__device__ __forceinline__ void map_features(
    float* phi_shared,          // [rows, stride]
    int stride,
    const element* tile_shared, // [rows, width]
    int width, const float* __restrict__ projection_hbm, int rows, int valid, const Visit& visit)
{
    int projected = 0;
    #pragma unroll 1
    for (int n = threadIdx.x; n < rows * FEATURES; n += THREADS) {
        const int row = n / FEATURES, f = n % FEATURES;
        phi_shared[row * stride + f] =  // [features] Katharopoulos et al. 2020, equation 7; Choromanski et al. 2021, lemma 1
            feature(tile_shared + row * width, projection_hbm, f);
        if (PROJECTS && row < valid) ++projected;
    }
    visit.count(FLOPS, projected * 2 * HEAD_DIM);
}

// O and l of the keys in the state, each warp its rows.
__device__ __forceinline__ void read_state(
    float (&O)[ROWS][VALUES], float (&l)[ROWS],
    const float* phi_Q_shared,  // [TILE_ROWS, FEATURES]
    const float* state_shared,  // [FEATURES, TOTALS]
    int rows, const Visit& visit)
{
    #pragma unroll
    for (int r = 0; r < ROWS; ++r)
        #pragma unroll
        for (int n = 0; n < VALUES; ++n) O[r][n] = 0.0f;
    const float* phi = phi_Q_shared + own_row(0) * FEATURES;
    // One row of the state serves all rows of the warp.
    #pragma unroll 1
    for (int f = 0; f < FEATURES; ++f) {
        float s[VALUES];
        #pragma unroll
        for (int n = 0; n < VALUES; ++n) {
            const int value = lane() + n * WARP;  // past the end: any value, it is not stored
            s[n] = state_shared[f * TOTALS + (value < VALUE_DIM ? value : 0)];
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float p = phi[r * FEATURES + f];
            #pragma unroll
            for (int n = 0; n < VALUES; ++n) O[r][n] = multiply_add(p, s[n], O[r][n]);
        }
    }
    int read = 0;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        float sum = 0.0f;
        #pragma unroll 1
        for (int f = lane(); f < FEATURES; f += WARP)
            sum = multiply_add(
                phi[r * FEATURES + f], state_shared[f * TOTALS + VALUE_DIM], sum);
        l[r] = warp_sum(sum);
        if (own_row(r) < rows)
            for (int value = lane(); value < VALUE_DIM; value += WARP) ++read;
    }
    visit.count(FLOPS, read * 2 * FEATURES);
}

// The state with the keys of a tile added, by the whole block.
__device__ __forceinline__ void update_state(
    float* state_shared,        // [FEATURES, TOTALS]
    const float* phi_K_shared,  // [BC, FEATURE_STRIDE]
    const element* V_shared,    // [BC, VALUE_DIM]
    int keys, const Visit& visit)
{
    int added = 0;
    #pragma unroll 1
    for (int n = threadIdx.x; n < FEATURES * TOTALS; n += THREADS) {
        const int f = n / TOTALS, value = n % TOTALS;
        float sum = 0.0f;
        #pragma unroll 4
        for (int key = 0; key < keys; ++key) {
            const float v = value < VALUE_DIM ? widen(V_shared[key * VALUE_DIM + value]) : 1.0f;
            sum = multiply_add(phi_K_shared[key * FEATURE_STRIDE + f], v, sum);
        }
        state_shared[n] += sum;
        if (value < VALUE_DIM) added += keys;
    }
    visit.count(FLOPS, added * 2);
}

// P of the rows and keys of a chunk, each warp its rows, each lane its keys.
__device__ __forceinline__ void similarities(
    float* P_shared,            // [TILE_ROWS, BC], written
    const float* phi_Q_shared,  // [TILE_ROWS, FEATURES]
    const float* phi_K_shared,  // [BC, FEATURE_STRIDE]
    int rows, int keys, const Visit& visit)
{
    int made = 0;
    for (int r = 0; r < ROWS; ++r)
        for (int key = lane(); key < keys; key += WARP) {
            const float* phi = phi_Q_shared + own_row(r) * FEATURES;
            float sum = 0.0f;
            for (int f = 0; f < FEATURES; ++f)
                sum = multiply_add(phi[f], phi_K_shared[key * FEATURE_STRIDE + f], sum);
            P_shared[own_row(r) * BC + key] = sum;
            if (own_row(r) < rows) ++made;
        }
    visit.count(FLOPS, made * 2 * FEATURES);
}

// ptxas linear_chunks fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas linear_chunks trace: at most 128 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) linear_chunks(
    const element* Q_hbm,         // [heads, N, HEAD_DIM]
    const element* K_hbm,         // [kv heads, N, HEAD_DIM]
    const element* V_hbm,         // [kv heads, N, VALUE_DIM]
    const int* kv_head_of,        // [heads]
    const float* projection_hbm,  // [FEATURES, HEAD_DIM]; null where PROJECTS is 0
    element* O_hbm,               // [heads, N, VALUE_DIM]
    int seqlen_k,
    int first_head, int first_block, int blocks  // chunks before the first are gone through, too
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* phi_Q_shared = (float*)shared_memory;                       // [TILE_ROWS, FEATURES]
    float* phi_K_shared = phi_Q_shared + TILE_ROWS * FEATURES;         // [BC, FEATURE_STRIDE]
    float* P_shared = phi_K_shared + BC * FEATURE_STRIDE;              // [TILE_ROWS, BC]
    float* state_shared = P_shared + TILE_ROWS * BC;                   // [FEATURES, TOTALS]
    element* Q_shared = (element*)(state_shared + FEATURES * TOTALS);  // [TILE_ROWS, HEAD_DIM]
    element* K_shared = Q_shared + TILE_ROWS * HEAD_DIM;               // [BC, HEAD_DIM]
    element* V_shared = K_shared + BC * HEAD_DIM;                      // [BC, VALUE_DIM]

    const int head = first_head + blockIdx.y;
    const Trace trace(blockIdx.y, blocks, 1 TRACE_ARGUMENTS);
    for (int n = threadIdx.x; n < FEATURES * TOTALS; n += THREADS)
        state_shared[n] = 0.0f;  // [start state] Katharopoulos et al. 2020, equations 16 and 17

    for (int i = 0; i < first_block + blocks; ++i) {
        const int first = i * BC;  // of its rows and of its keys
        const int keys = seqlen_k - first < BC ? seqlen_k - first : BC;
        const Index row = (Index)head * seqlen_k + first;
        const Index key = (Index)kv_head_of[head] * seqlen_k + first;
        const Visit visit = i < first_block ? unrecorded() : trace.visit(i - first_block, 0);
        visit.kind(keys > 1 ? PARTIAL : FULL);

        __syncthreads();  // every warp is done with the chunk before, and the state is whole
        load_tile(Q_shared, TILE_ROWS, HEAD_DIM,  // [load] Yang et al. 2024, chunkwise form
                  Q_hbm + row * HEAD_DIM, keys, HEAD_DIM, visit, READ_Q);
        load_tile(K_shared, BC, HEAD_DIM,  // [load] Yang et al. 2024, chunkwise form
                  K_hbm + key * HEAD_DIM, keys, HEAD_DIM, visit, READ_K);
        load_tile(V_shared, BC, VALUE_DIM,  // [load] Yang et al. 2024, chunkwise form
                  V_hbm + key * VALUE_DIM, keys, VALUE_DIM, visit, READ_V);
        __syncthreads();  // the tiles are whole
        map_features(phi_Q_shared, FEATURES, Q_shared, HEAD_DIM, projection_hbm, TILE_ROWS, keys,
                     visit);
        map_features(phi_K_shared, FEATURE_STRIDE, K_shared, HEAD_DIM, projection_hbm, BC, keys,
                     visit);
        __syncthreads();  // the features are there
        RECORDED(if (visit.detail_) {
            copy_rows(detail_of(visit)->phi_q, phi_Q_shared, FEATURES, keys);
            copy_rows(detail_of(visit)->phi_k, phi_K_shared, FEATURE_STRIDE, keys);
            copy_rows(detail_of(visit)->state_before, state_shared, TOTALS, FEATURES);
        })

        float l[ROWS], O[ROWS][VALUES];
        read_state(O, l, phi_Q_shared,  // [read state] Katharopoulos et al. 2020, equation 12
                   state_shared, keys, visit);
        similarities(P_shared, phi_Q_shared,  // [similarities] Yang et al. 2024, chunkwise form
                     phi_K_shared, keys, keys, visit);
        RECORDED(if (visit.detail_) visit.copy(detail_of(visit)->s, P_shared, keys, keys);)
        for (int r = 0; r < ROWS; ++r)
            for (int n = lane(); n < keys; n += WARP)
                if (n > own_row(r))
                    P_shared[own_row(r) * BC + n] = 0.0f;  // [mask] Yang et al. 2024, chunkwise form
        RECORDED(if (visit.detail_) visit.copy(detail_of(visit)->p, P_shared, keys, keys);)
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float l_tile =  // [row sum] Yang et al. 2024, chunkwise form
                row_sum(P_shared + own_row(r) * BC, keys);
            l[r] += l_tile;
            RECORDED(if (own_row(r) < keys && lane() == 0) {
                if (visit.l_) visit.l_[own_row(r)] = l[r];
                if (visit.detail_) detail_of(visit)->l_tile[own_row(r)] = l_tile;
                if (visit.detail_) detail_of(visit)->l[own_row(r)] = l[r];
            })
        }
        __syncwarp();  // each lane needs what the others made of its warp's rows
        accumulate<2>(O, P_shared, V_shared,  // [accumulate] Yang et al. 2024, chunkwise form
                      keys, keys, visit);
        RECORDED(if (visit.detail_) visit.copy(detail_of(visit)->o, O, keys);)
        __syncthreads();  // every warp has read the state
        update_state(state_shared, phi_K_shared,  // [update state] Katharopoulos et al. 2020, equations 10 and 11
                     V_shared, keys, visit);
        #pragma unroll
        for (int r = 0; r < ROWS; ++r)
            #pragma unroll
            for (int n = 0; n < VALUES; ++n)
                O[r][n] = over(O[r][n], l[r]);  // [normalise] Katharopoulos et al. 2020, equation 12
        if (i >= first_block)
            store_output(O_hbm + row * VALUE_DIM,  // [store] Katharopoulos et al. 2020, equation 12
                         O, keys, visit);
        RECORDED(if (visit.detail_)  // each thread its own sums
                     copy_rows(detail_of(visit)->state, state_shared, TOTALS, FEATURES);)
    }
}

// ptxas linear_state fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas linear_state trace: at most 128 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) linear_state(
    const element* K_hbm,         // [kv heads, Nk, HEAD_DIM]
    const element* V_hbm,         // [kv heads, Nk, VALUE_DIM]
    const int* kv_head_of,        // [heads]
    const float* projection_hbm,  // [FEATURES, HEAD_DIM]; null where PROJECTS is 0
    float* state_hbm,             // [kv heads, FEATURES, TOTALS]
    int seqlen_k,
    int first_head, int blocks    // of this launch; the first of its heads of a KV head works
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* phi_K_shared = (float*)shared_memory;                       // [BC, FEATURE_STRIDE]
    float* state_shared = phi_K_shared + BC * FEATURE_STRIDE;          // [FEATURES, TOTALS]
    element* K_shared = (element*)(state_shared + FEATURES * TOTALS);  // [BC, HEAD_DIM]
    element* V_shared = K_shared + BC * HEAD_DIM;                      // [BC, VALUE_DIM]

    const int kv_head = kv_head_of[first_head + blockIdx.y];
    for (int head = 0; head < blockIdx.y; ++head)
        if (kv_head_of[first_head + head] == kv_head) return;
    const int column_blocks = (seqlen_k + BC - 1) / BC;
    const Trace trace(blockIdx.y, blocks, column_blocks TRACE_ARGUMENTS);
    for (int n = threadIdx.x; n < FEATURES * TOTALS; n += THREADS)
        state_shared[n] = 0.0f;  // [start state] Katharopoulos et al. 2020, equation 5

    for (int j = 0; j < column_blocks; ++j) {
        const int keys = seqlen_k - j * BC < BC ? seqlen_k - j * BC : BC;
        const Index key = (Index)kv_head * seqlen_k + j * BC;
        const Visit visit = trace.visit(0, j);
        visit.kind(FULL);
        __syncthreads();  // every warp is done with the tile before
        load_tile(K_shared, BC, HEAD_DIM,  // [load] Katharopoulos et al. 2020, equation 5
                  K_hbm + key * HEAD_DIM, keys, HEAD_DIM, visit, READ_K);
        load_tile(V_shared, BC, VALUE_DIM,  // [load] Katharopoulos et al. 2020, equation 5
                  V_hbm + key * VALUE_DIM, keys, VALUE_DIM, visit, READ_V);
        __syncthreads();  // the tiles are whole
        map_features(phi_K_shared, FEATURE_STRIDE, K_shared, HEAD_DIM, projection_hbm, BC, keys,
                     visit);
        __syncthreads();  // the features are there
        RECORDED(if (visit.detail_) {
            copy_rows(detail_of(visit)->phi_k, phi_K_shared, FEATURE_STRIDE, keys);
            copy_rows(detail_of(visit)->state_before, state_shared, TOTALS, FEATURES);
        })
        update_state(state_shared, phi_K_shared,  // [update state] Katharopoulos et al. 2020, equation 5
                     V_shared, keys, visit);
        RECORDED(if (visit.detail_)  // each thread its own sums
                     copy_rows(detail_of(visit)->state, state_shared, TOTALS, FEATURES);)
        if (j < column_blocks - 1) continue;
        int stored = 0;
        for (int n = threadIdx.x; n < FEATURES * TOTALS; n += THREADS) {
            state_hbm[(Index)kv_head * FEATURES * TOTALS + n] =  // [store] Katharopoulos et al. 2020, equation 5
                state_shared[n];  // of this thread's own sums
            ++stored;
        }
        visit.count(WRITE_state, stored * (int)sizeof(float));
    }
}

// ptxas linear_rows fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas linear_rows trace: at most 128 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(THREADS) linear_rows(
    const element* Q_hbm,         // [heads, Nq, HEAD_DIM]
    const int* kv_head_of,        // [heads]
    const float* projection_hbm,  // [FEATURES, HEAD_DIM]; null where PROJECTS is 0
    const float* state_hbm,       // [kv heads, FEATURES, TOTALS]
    element* O_hbm,               // [heads, Nq, VALUE_DIM]
    int seqlen_q,
    int first_head, int first_block  // of this launch: blockIdx counts from there
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    float* phi_Q_shared = (float*)shared_memory;                       // [TILE_ROWS, FEATURES]
    float* state_shared = phi_Q_shared + TILE_ROWS * FEATURES;         // [FEATURES, TOTALS]
    element* Q_shared = (element*)(state_shared + FEATURES * TOTALS);  // [TILE_ROWS, HEAD_DIM]

    const int head = first_head + blockIdx.y, first_row = (first_block + blockIdx.x) * BR;
    const int rows = seqlen_q - first_row < BR ? seqlen_q - first_row : BR;
    const Index row = (Index)head * seqlen_q + first_row;
    const Index place = (Index)kv_head_of[head] * FEATURES * TOTALS;
    const Trace trace(blockIdx.y, gridDim.x, 1 TRACE_ARGUMENTS);
    const Visit visit = trace.visit(blockIdx.x, 0);
    visit.kind(FULL);

    int loaded = 0;
    for (int n = threadIdx.x; n < FEATURES * TOTALS; n += THREADS) {
        state_shared[n] = state_hbm[place + n];  // [load] Katharopoulos et al. 2020, equation 5
        ++loaded;
    }
    visit.count(READ_state, loaded * (int)sizeof(float));
    load_tile(Q_shared, TILE_ROWS, HEAD_DIM,  // [load] Katharopoulos et al. 2020, equation 5
              Q_hbm + row * HEAD_DIM, rows, HEAD_DIM, visit, READ_Q);
    __syncthreads();  // the tiles are whole
    map_features(phi_Q_shared, FEATURES, Q_shared, HEAD_DIM, projection_hbm, TILE_ROWS, rows, visit);
    __syncthreads();  // the features are there
    RECORDED(if (visit.detail_) copy_rows(detail_of(visit)->phi_q, phi_Q_shared, FEATURES, rows);)
    float l[ROWS], O[ROWS][VALUES];
    read_state(O, l, phi_Q_shared,  // [read state] Katharopoulos et al. 2020, equation 5
               state_shared, rows, visit);
    RECORDED(if (visit.detail_) visit.copy(detail_of(visit)->o, O, rows);)
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        RECORDED(if (own_row(r) < rows && lane() == 0) {
            if (visit.l_) visit.l_[own_row(r)] = l[r];
            if (visit.detail_) detail_of(visit)->l[own_row(r)] = l[r];
        })
        #pragma unroll
        for (int n = 0; n < VALUES; ++n)
            O[r][n] = over(O[r][n], l[r]);  // [normalise] Katharopoulos et al. 2020, equation 5
    }
    store_output(O_hbm + row * VALUE_DIM,  // [store] Katharopoulos et al. 2020, equation 5
                 O, rows, visit);
}
