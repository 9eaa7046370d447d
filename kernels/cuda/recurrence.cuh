// What kernels share that go token by token with a state of all tokens so far (tokens.py).
//
// The loader (kernels/build/sources.py) puts this text in the place of `#include "recurrence.cuh"`,
// after common.cuh and state.cuh. A block is one warp and goes through the tokens of one head: a tile
// is one row by one key. Each lane owns every 32nd column of the state, so nothing of a column leaves
// its lane.
//
// Compile-time, beside those of state.cuh: GATE, the numbers of a token's gate, which the kernel's file
// defines.

// A token's numbers in shared memory, one after another (kernels/cuda/specs.py).
struct Shared {
    float *phi_Q, *phi_K;  // [FEATURES]
    float* gate;           // [GATE]
    float* state;          // [FEATURES, TOTALS]
    element *Q, *K;        // [HEAD_DIM]
    element* V;            // [VALUE_DIM]

    // No key has been added to the state.
    __device__ __forceinline__ void start() const
    {
        for (int n = lane(); n < FEATURES * TOTALS; n += WARP) state[n] = 0.0f;
    }
};

__device__ __forceinline__ Shared shared_in(unsigned char* memory)
{
    Shared own;
    own.phi_Q = (float*)memory;
    own.phi_K = own.phi_Q + FEATURES;
    own.gate = own.phi_K + FEATURES;
    own.state = own.gate + GATE;
    own.Q = (element*)(own.state + FEATURES * TOTALS);
    own.K = own.Q + HEAD_DIM;
    own.V = own.K + HEAD_DIM;
    return own;
}

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

// The features, and the state before the token changes it.
__device__ __forceinline__ void record_before(const Shared& own, const Visit& visit)
{
    if (!visit.detail_) return;
    copy_shared(detail_of(visit)->phi_q[0], own.phi_Q, FEATURES);
    copy_shared(detail_of(visit)->phi_k[0], own.phi_K, FEATURES);
    copy_shared(detail_of(visit)->state_before[0], own.state, FEATURES * TOTALS);
    __syncwarp();  // before it changes
}

__device__ __forceinline__ void record_state(const Shared& own, const Visit& visit)
{
    if (!visit.detail_) return;
    __syncwarp();  // the state is whole
    copy_shared(detail_of(visit)->state[0], own.state, FEATURES * TOTALS);
}
#endif

// The token's rows to shared memory.
__device__ __forceinline__ void load_rows(
    const Shared& own,
    const element* Q_hbm,  // [HEAD_DIM]
    const element* K_hbm,  // [HEAD_DIM]
    const element* V_hbm,  // [VALUE_DIM]
    const Visit& visit)
{
    load_tile(own.Q, 1, HEAD_DIM, Q_hbm, 1, HEAD_DIM, visit, READ_Q);
    load_tile(own.K, 1, HEAD_DIM, K_hbm, 1, HEAD_DIM, visit, READ_K);
    load_tile(own.V, 1, VALUE_DIM, V_hbm, 1, VALUE_DIM, visit, READ_V);
}

// The token's gate to shared memory.
__device__ __forceinline__ void load_gate(
    const Shared& own,
    const float* __restrict__ gate_hbm,  // [GATE]
    const Visit& visit, Counter counter)
{
    int loaded = 0;
    for (int n = lane(); n < GATE; n += WARP) {
        own.gate[n] = gate_hbm[n];
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
