// Gated linear attention: each feature of the state forgets a share before a key is added.
//
// Paper      Yang, Wang, Shen, Panda, Kim 2024, "Gated Linear Attention Transformers with
//            Hardware-Efficient Training", section 4.1.
// Grid       (1, heads): a thread block, which is one warp, goes through the tokens of a head.
// Shared     the features of the token's query and key, its gate, and the state, float32; its rows of
//            Q, K and V (kernels/cuda/specs.py).
// Registers  O of the token, float32.
// Changed    since linear_recurrent.cu: a gate, rows as they are, and no sum of the weights.
//
// Compile-time, beside those of common.cuh: FEATURES.

#include "common.cuh"
#define GATE FEATURES
#define SUMS 0
#include "state.cuh"
#include "recurrence.cuh"

// ptxas gla fast: at most 128 registers, 0 bytes of stack, 0 bytes spilled
// ptxas gla trace: at most 128 registers, 0 bytes of stack, 0 bytes spilled
extern "C" __global__ void __launch_bounds__(WARP) gla(
    const element* Q_hbm,         // [heads, N, HEAD_DIM]
    const element* K_hbm,         // [kv heads, N, HEAD_DIM]
    const element* V_hbm,         // [kv heads, N, VALUE_DIM]
    const int* kv_head_of,        // [heads]
    const float* decay_hbm,       // [kv heads, N, FEATURES]
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
        load_rows(own, Q_hbm + row * HEAD_DIM,  // [load] Yang et al. 2024, rows as they are
                  K_hbm + key * HEAD_DIM, V_hbm + key * VALUE_DIM, visit);
        load_gate(own, decay_hbm + key * FEATURES, visit, READ_decay);  // [load] Yang et al. 2024, rows as they are
        // Each lane reads of Q and K what it has loaded itself.
        for (int f = lane(); f < FEATURES; f += WARP) {
            own.phi_Q[f] = widen(own.Q[f]);  // [features] Yang et al. 2024, rows as they are
            own.phi_K[f] = widen(own.K[f]);  // [features] Yang et al. 2024, rows as they are
        }
        __syncwarp();  // the features are there
        RECORDED(record_before(own, visit);)

        #pragma unroll
        for (int n = 0; n < VALUES; ++n) {
            const int value = lane() + n * WARP;
            if (value >= VALUE_DIM) continue;
            #pragma unroll 4
            for (int f = 0; f < FEATURES; ++f)
                own.state[f * TOTALS + value] *= own.gate[f];  // [decay state] Yang et al. 2024, decay
        }
        float v[VALUES], O[VALUES];
        own_values(v, own.V);
        add_product(own.state, own.phi_K,  // [update state] Yang et al. 2024, outer product
                    v, visit);
        RECORDED(record_state(own, visit);)
        times_state(O, own.phi_Q,  // [read state] Yang et al. 2024, readout
                    own.state, visit);
        RECORDED(if (visit.detail_) copy_own(detail_of(visit)->o[0], O);)
        if (t < first_block) continue;
        store_row(O_hbm + row * VALUE_DIM,  // [store] Yang et al. 2024, readout
                  O, visit);
    }
}
