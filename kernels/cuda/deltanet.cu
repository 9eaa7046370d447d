// DeltaNet: a key's new value takes the place of the one that the state has for it.
//
// Paper      Yang, Wang, Zhang, Shen, Kim 2024, "Parallelizing Linear Transformers with the Delta
//            Rule over Sequence Length", section 2.2.
// Grid       (1, heads): a thread block, which is one warp, goes through the tokens of a head.
// Shared     the features of the token's query and key, its gate, and the state, float32; its rows of
//            Q, K and V (kernels/cuda/specs.py).
// Registers  the old value, what is added, and O of the token, float32.
// Changed    since gla.cu: nothing decays; the state is asked for the key before it is added.
//
// Compile-time, beside those of common.cuh: FEATURES.

#include "common.cuh"
#define GATE 1
#define SUMS 0
#include "state.cuh"
#include "recurrence.cuh"

// phi of a row: over its length; a row of zeros stays one.
__device__ __forceinline__ void unit_length(float* phi_shared, const element* row_shared)
{
    float square = 0.0f;
    for (int f = lane(); f < FEATURES; f += WARP) {
        const float x = widen(row_shared[f]);
        square = multiply_add(x, x, square);
    }
    const float length = sqrtf(warp_sum(square));
    for (int f = lane(); f < FEATURES; f += WARP)
        phi_shared[f] = over(widen(row_shared[f]), length);
}

// ptxas deltanet fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas deltanet trace: at most 128 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(WARP) deltanet(
    const element* Q_hbm,         // [heads, N, HEAD_DIM]
    const element* K_hbm,         // [kv heads, N, HEAD_DIM]
    const element* V_hbm,         // [kv heads, N, VALUE_DIM]
    const int* kv_head_of,        // [heads]
    const float* strength_hbm,    // [kv heads, N]
    element* O_hbm,               // [heads, N, VALUE_DIM]
    int seqlen_k,
    int first_head, int first_block, int blocks  // tokens before the first are gone through, too
    TRACE_PARAMETERS)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    const Shared own = shared_in(shared_memory);

    const int head = first_head + blockIdx.y;
    const Trace trace(blockIdx.y, blocks, 1 TRACE_ARGUMENTS);
    own.start();  // [start state] Yang et al. 2024, initial state

    for (int t = 0; t < first_block + blocks; ++t) {
        const Index row = (Index)head * seqlen_k + t;
        const Index key = (Index)kv_head_of[head] * seqlen_k + t;
        const Visit visit = t < first_block ? unrecorded() : trace.visit(t - first_block, 0);
        visit.kind(FULL);

        __syncwarp();  // every lane is done with the token before
        load_rows(own, Q_hbm + row * HEAD_DIM,  // [load] Yang et al. 2024, rows of length 1
                  K_hbm + key * HEAD_DIM, V_hbm + key * VALUE_DIM, visit);
        load_gate(own, strength_hbm + key, visit, READ_strength);  // [load] Yang et al. 2024, rows of length 1
        // Each lane reads of Q and K what it has loaded itself.
        unit_length(own.phi_Q, own.Q);  // [features] Yang et al. 2024, rows of length 1
        unit_length(own.phi_K, own.K);  // [features] Yang et al. 2024, rows of length 1
        __syncwarp();  // the features are there
        RECORDED(record_before(own, visit);)

        float v_old[VALUES], u[VALUES], O[VALUES];
        times_state(v_old, own.phi_K,  // [recall] Yang et al. 2024, old value
                    own.state, visit);
        own_values(u, own.V);
        #pragma unroll
        for (int n = 0; n < VALUES; ++n)
            u[n] = own.gate[0] * (u[n] - v_old[n]);  // [correct] Yang et al. 2024, delta
        RECORDED(if (visit.detail_) {
            copy_own(detail_of(visit)->v_old[0], v_old);
            copy_own(detail_of(visit)->u[0], u);
        })
        add_product(own.state, own.phi_K,  // [update state] Yang et al. 2024, outer product
                    u, visit);
        RECORDED(record_state(own, visit);)
        times_state(O, own.phi_Q,  // [read state] Yang et al. 2024, readout
                    own.state, visit);
        RECORDED(if (visit.detail_) copy_own(detail_of(visit)->o[0], O);)
        if (t < first_block) continue;
        store_row(O_hbm + row * VALUE_DIM,  // [store] Yang et al. 2024, readout
                  O, visit);
    }
}
