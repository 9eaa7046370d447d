// What kernels share that go token by token with a state of all tokens so far (tokens.py).
//
// The loader (kernels/build/sources.py) puts this text in the place of `#include "recurrence.cuh"`,
// after common.cuh. A block is one warp and goes through the tokens of one head: a tile is one row
// by one key. Each lane owns every 32nd column of the state, so nothing of a column leaves its lane.
//
// Compile-time, beside those of common.cuh: FEATURES, and SUMS (1: the last column of the state has
// the sum of the weights), which the kernel's file defines.

#define TOTALS (VALUE_DIM + SUMS)  // of a feature in the state

// One visit under the magnifier; kernels/cuda/records.py has the same layout.
struct TokenDetail {
    float phi_q[1][FEATURES];
    float phi_k[1][FEATURES];
    float v_old[1][VALUE_DIM];            // what the delta rule finds, and what it adds
    float u[1][VALUE_DIM];
    float o[1][VALUE_DIM];                // before it is divided, if it is
    float l[1];
    float state_before[FEATURES][TOTALS];
    float state[FEATURES][TOTALS];
};

// Of a token that is gone through only for the state that it leaves.
__device__ __forceinline__ Visit unrecorded()
{
    Visit visit;
    RECORDED(visit.kind_ = nullptr; visit.m_ = visit.l_ = visit.alpha_ = nullptr;
             visit.counters_ = nullptr; visit.detail_ = nullptr; visit.columns_ = 1;)
    return visit;
}

#ifdef TRACE
__device__ __forceinline__ TokenDetail* detail_of(const Visit& visit)
{
    return (TokenDetail*)visit.detail_;
}

__device__ __forceinline__ void copy_shared(float* into, const float* shared, int size)
{
    for (int n = lane(); n < size; n += WARP) into[n] = shared[n];
}

__device__ __forceinline__ void copy_own(float* into, const float (&own)[VALUES])
{
    #pragma unroll
    for (int n = 0; n < VALUES; ++n)
        if (lane() + n * WARP < VALUE_DIM) into[lane() + n * WARP] = own[n];
}
#endif

// The token's gate to shared memory.
__device__ __forceinline__ void load_gate(
    float* gate_shared,  // [size]
    const float* __restrict__ gate_hbm, int size, const Visit& visit, Counter counter)
{
    int loaded = 0;
    for (int n = lane(); n < size; n += WARP) {
        gate_shared[n] = gate_hbm[n];
        ++loaded;
    }
    visit.count(counter, loaded * (int)sizeof(float));
}

// phi times the values of the state, each lane its columns.
__device__ __forceinline__ void times_state(
    float (&out)[VALUES],
    const float* phi_shared,    // [FEATURES]
    const float* state_shared,  // [FEATURES, TOTALS]
    const Visit& visit)
{
    int summed = 0;
    #pragma unroll
    for (int n = 0; n < VALUES; ++n) {
        const int value = lane() + n * WARP;
        float sum = 0.0f;
        if (value < VALUE_DIM) {
            #pragma unroll 4
            for (int f = 0; f < FEATURES; ++f)
                sum = multiply_add(phi_shared[f], state_shared[f * TOTALS + value], sum);
            summed += FEATURES;
        }
        out[n] = sum;
    }
    visit.count(FLOPS, summed * 2);
}

// The state with phi(k) times a row of values added, each lane its columns.
__device__ __forceinline__ void add_product(
    float* state_shared,          // [FEATURES, TOTALS]
    const float* phi_K_shared,    // [FEATURES]
    const float (&row)[VALUES], const Visit& visit)
{
    int added = 0;
    #pragma unroll
    for (int n = 0; n < VALUES; ++n) {
        const int value = lane() + n * WARP;
        if (value >= VALUE_DIM) continue;
        #pragma unroll 4
        for (int f = 0; f < FEATURES; ++f)
            state_shared[f * TOTALS + value] =
                multiply_add(phi_K_shared[f], row[n], state_shared[f * TOTALS + value]);
        added += FEATURES;
    }
    visit.count(FLOPS, added * 2);
}

// The lane's values of the token's row of V.
__device__ __forceinline__ void own_values(float (&v)[VALUES], const element* V_shared)
{
    #pragma unroll
    for (int n = 0; n < VALUES; ++n) {
        const int value = lane() + n * WARP;
        v[n] = value < VALUE_DIM ? widen(V_shared[value]) : 0.0f;
    }
}

__device__ __forceinline__ void store_row(
    element* O_hbm,  // [VALUE_DIM]
    const float (&O)[VALUES], const Visit& visit)
{
    int stored = 0;
    #pragma unroll
    for (int n = 0; n < VALUES; ++n)
        if (lane() + n * WARP < VALUE_DIM) {
            put(O_hbm + lane() + n * WARP, O[n]);
            ++stored;
        }
    visit.count(WRITE_O, stored * (int)sizeof(element));
}
