// What the algorithms share: element types, masks, tiles on their way, the steps of a softmax.
//
// Nothing is included, so NVRTC needs no headers. The loader (kernels/build/sources.py) puts this text
// in the place of `#include "common.cuh"`.
//
// A block works on one tile of the score matrix at a time, BR query rows by BC keys. Each warp
// owns ROWS of the rows, each of its lanes every 32nd key of S and every 32nd value of O:
//
//              keys 0 .. BC-1                      values 0 .. VALUE_DIM-1
//   warp 0   [ S: lane 0, lane 1, .., lane 31, lane 0, .. ]   [ O: lane 0, lane 1, .. ]
//   warp 1   [ ..                                         ]   [ ..                    ]
//
// so a row's maximum and sum never leave its warp, and m, l and O stay in registers.
//
// Compile-time: BR, BC, HEAD_DIM, VALUE_DIM, WARPS, ELEMENT (0 float32, 1 float16, 2 bfloat16).
// -DTRACE makes the trace build: the same arithmetic, and everything that `Trace` records.

#define WARP 32
#define THREADS (WARPS * WARP)
#define ROWS ((BR + WARPS - 1) / WARPS)            // query rows of a warp
#define TILE_ROWS (WARPS * ROWS)                   // BR, or a few more: rows that nobody stores
#define VALUES ((VALUE_DIM + WARP - 1) / WARP)     // values of O that a lane holds of each row
#define KEYS (BC > 3 * WARP ? 4 : (BC + WARP - 1) / WARP)  // keys that a lane scores at once

typedef long long Index;                           // of an element in HBM
typedef unsigned long long Bytes;

// --- Elements: as they lie in HBM and shared memory; all sums are float32 ----------------------

#if ELEMENT == 0
typedef float element;
#else
typedef unsigned short element;                    // the bits
#endif
// A key's row is one bank longer than its elements, so that lanes side by side meet no conflict.
#define KEY_STRIDE (HEAD_DIM + 4 / (int)sizeof(element))

__device__ __forceinline__ float widen(float x) { return x; }

__device__ __forceinline__ float widen(unsigned short bits)
{
#if ELEMENT == 2
    return __uint_as_float((unsigned)bits << 16);
#elif defined(__CUDA_ARCH__)
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
#else
    // Exponent and fraction move into place; 2^112 makes up for the different biases and turns
    // subnormal numbers into normal ones. Infinity and NaN keep an exponent of all ones.
    const unsigned sign = (bits & 0x8000u) << 16, rest = (bits & 0x7fffu) << 13;
    if (rest >= 0x0f800000u) return __uint_as_float(sign | 0x70000000u | rest);
    return __uint_as_float(sign | __float_as_uint(__uint_as_float(rest) * 5.192296858534828e33f));
#endif
}

// Rounds to the nearest, ties to even.
__device__ __forceinline__ element narrow(float x)
{
#if ELEMENT == 0
    return x;
#elif ELEMENT == 1 && defined(__CUDA_ARCH__)
    element bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
#else
    const unsigned bits = __float_as_uint(x), size = bits & 0x7fffffffu;
#if ELEMENT == 2
    if (size > 0x7f800000u) return (element)(bits >> 16 | 0x40u);                  // NaN stays NaN
    return (element)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
#else
    const unsigned sign = bits >> 16 & 0x8000u;
    if (size >= 0x47800000u) return (element)(sign | (size > 0x7f800000u ? 0x7e00u : 0x7c00u));
    if (size < 0x38800000u) {  // subnormal: 0.5 has the same unit in the last place, 2^-24
        return (element)(sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000u));
    }
    return (element)(sign | (size + 0xfffu + (size >> 13 & 1u) - 0x38000000u) >> 13);
#endif
#endif
}

__device__ __forceinline__ void put(float* place, float x) { *place = x; }
#if ELEMENT != 0
__device__ __forceinline__ void put(element* place, float x) { *place = narrow(x); }
#endif

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }
__device__ __forceinline__ float larger(float a, float b) { return a > b ? a : b; }

// a b + c, rounded once. A compiler that may join any product to a sum could choose otherwise in
// the trace build, and the last bits would differ. So it may not (kernels/build/nvrtc.py: -fmad=false):
// they are joined where it is written, and nowhere else.
__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }

// exp(high - low), and 0 for high = -inf: what has seen nothing weighs nothing.
__device__ __forceinline__ float exp_below(float high, float low)
{
    return high == minus_infinity() ? 0.0f : expf(high - low);
}

// numerator / denominator, and 0 for a row that has seen nothing.
__device__ __forceinline__ float over(float numerator, float denominator)
{
    return denominator == 0.0f ? 0.0f : numerator / denominator;
}

// --- Masks -------------------------------------------------------------------------------------

// What a kernel takes to know its mask, and how it makes one of it: `const Mask mask = MASK;`
// simulator/problem/masks.py says the same to the CPU.
// Only a run with more than causal, one number of a window, and sinks is compiled with -DPATTERN: to
// others it costs nothing, not even a parameter. There `window` is how far a row sees to the left,
// `ahead` how far to the right, its own key among both.
#ifdef PATTERN
#define MASK_PARAMETERS                                                                         \
    int seqlen_q, int seqlen_k, int causal, int window, int sinks, int ahead                    \
    , int shift              /* place of row 0 among the keys, as the mask is aligned */        \
    , int dilation, int global_tokens, int block, int blocks_across, int blocks_of_head         \
                             /* 0: none */                                                      \
    , const int* __restrict__ document_of            /* [keys], or null */                      \
    , const unsigned char* __restrict__ block_mask   /* [row blocks, blocks_across], or null */ \
                                                     /* or those of each query head */
#define MASK MASK_OF(seqlen_q)
#define MASK_OF(queries)                                                                        \
    {queries, seqlen_k, causal, window, sinks, ahead, shift, dilation, global_tokens, block,    \
     blocks_across, blocks_of_head, document_of, block_mask}
#else
#define MASK_PARAMETERS int seqlen_q, int seqlen_k, int causal, int window, int sinks  // 0: none
#define MASK MASK_OF(seqlen_q)
#define MASK_OF(queries) {queries, seqlen_k, causal, window, sinks}
#endif

struct Mask {
    int seqlen_q, seqlen_k;
    int causal, window, sinks;
#ifdef PATTERN
    int ahead, shift, dilation, global_tokens, block, blocks_across, blocks_of_head;
    const int* document_of;
    const unsigned char* block_mask;
#endif

    __device__ int last_key() const { return seqlen_k - 1; }
    // A query row's position among the keys: the last row stands at the last key.
    __device__ int shifted(int row) const { return row + seqlen_k - seqlen_q; }
    // Which query head a row is of; `first` is that of the block, here the only one.
    __device__ int query_head(int first, int row) const { return first; }

    __device__ bool sees(int head, int row, int key) const
    {
#ifdef PATTERN
        const int place = row + shift;
#else
        const int place = shifted(row), ahead = window;
#endif
        if (causal && key > place) return false;
#ifdef PATTERN
        if (row >= seqlen_q) return false;  // of a tile's end, which nobody stores
        if (document_of && (place < 0 || place >= seqlen_k
                            || document_of[place] != document_of[key])) return false;
        if (block && !block_mask[(Index)head * blocks_of_head + (Index)(row / block) * blocks_across
                                 + key / block]) return false;
        if (global_tokens && (key < global_tokens || place < global_tokens)) return true;
        if (window && key >= sinks && (place - key) % dilation != 0) return false;
#endif
        if (!window || key < sinks) return true;
        return place - key < window && key - place < ahead;
    }
};

// --- Scores ------------------------------------------------------------------------------------

// What a kernel takes to turn q k into a score, and how: `const Score score = SCORE;`
// simulator/problem/scores.py says the same to the CPU. Only a run that has a soft-cap or a bias is
// compiled with -DSOFTCAP, -DALIBI or -DBIAS: to others they cost nothing, not even a parameter.
#if defined(SOFTCAP) || defined(ALIBI) || defined(BIAS)
#define CHANGES_SCORES
#define SCORE_PARAMETERS                                                                        \
    float scale, float softcap, const float* __restrict__ slopes  /* [query heads] */           \
    , const float* __restrict__ biases  /* [query heads, bias_span]: of key - place, ascending */ \
    , int bias_span                     /* queries of a head + seqlen_k - 1 */
#define SCORE {scale, softcap, slopes, biases, bias_span}
#else
#define SCORE_PARAMETERS float scale
#define SCORE {scale}
#endif

struct Score {
    float scale;
#ifdef CHANGES_SCORES
    float softcap;
    const float* slopes;
    const float* biases;
    int bias_span;
#endif

    __device__ __forceinline__ float of(float product) const { return scale * product; }

    // A scaled product with the soft-cap, less what it loses and with what it gains with distance.
    template <class AnyMask>
    __device__ __forceinline__ float changed(float s, const AnyMask& mask, int first_head,
                                             int row, int key) const
    {
#ifdef SOFTCAP
        s = tanhf(s / softcap) * softcap;
#endif
#ifdef ALIBI
        const int away = mask.shifted(row) - key;
        s -= slopes[mask.query_head(first_head, row)] * (float)(away < 0 ? -away : away);
#endif
#ifdef BIAS
        const Index head = mask.query_head(first_head, row);
        s += biases[head * bias_span + key - mask.shifted(row) + mask.last_key()];
#endif
        return s;
    }
};

// --- Sink logits -------------------------------------------------------------------------------

// What a kernel takes to know them, and how: `const Sinks sink = SINKS;`. Only a run that has some is
// compiled with -DSINK.
#ifdef SINK
#define SINK_PARAMETERS , const float* __restrict__ sink_hbm  /* [query heads] */
#define SINKS {sink_hbm}
// Of a kernel whose thread blocks count their heads from that of the launch, `sink_head`.
#define LOGIT_PARAMETERS , const float* __restrict__ sink_hbm  /* [query heads] */, int sink_head
#else
#define SINK_PARAMETERS
#define LOGIT_PARAMETERS
#define SINKS {}
#endif

struct Visit;

// A sink logit is a key that every row of its head sees first, of value 0.
struct Sinks {
#ifdef SINK
    const float* logits;
#endif

    // m and l of a row that has seen no other key.
    template <class AnyMask>
    __device__ __forceinline__ void start(float& m, float& l, const AnyMask& mask, int first_head,
                                          int row, bool valid) const
    {
        m = minus_infinity();
        l = 0.0f;
#ifdef SINK
        if (!valid) return;
        m = logits[mask.query_head(first_head, row)];
        l = 1.0f;
#endif
    }

    // Counts the logits of some rows: one for each query head that they are of.
    template <class AnyMask>
    __device__ __forceinline__ void count(const Visit& visit, const AnyMask& mask, int first_row,
                                          int rows) const;
};

// --- The gate of O -----------------------------------------------------------------------------

// What a kernel that stores O takes to multiply it before. Only a run with a gate is compiled with
// -DOUTPUT_GATE.
#ifdef OUTPUT_GATE
#define GATE_PARAMETERS , const element* __restrict__ gate_hbm  /* [heads, Nq, VALUE_DIM] */
// Of a kernel that goes over column blocks: the last of them that each row block sees, or -1.
#define ENDING_PARAMETERS                                                                       \
    , const element* __restrict__ gate_hbm  /* [heads, Nq, VALUE_DIM] */                        \
    , const int* __restrict__ last_columns  /* [row blocks] */
#else
#define GATE_PARAMETERS
#define ENDING_PARAMETERS
#endif

// --- Rescales that are skipped -----------------------------------------------------------------

// A row's new maximum. Only a run with a threshold is compiled with -DTHRESHOLD: there m moves only if
// it grows by more than that, or if nothing has been seen yet, and a row whose m is kept skips its
// rescale. P may be above 1, and l and O relative to a smaller maximum: O / l is the same.
#ifdef THRESHOLD
#define THRESHOLD_PARAMETERS , float threshold
#define THRESHOLD_ARGUMENTS , threshold
#define NEW_MAXIMUM(m, m_tile)                                                                  \
    ((m) != minus_infinity() && !(larger(m, m_tile) - (m) > threshold) ? (m) : larger(m, m_tile))
#define IF_RESCALES(alpha) if ((alpha) != 1.0f)
#else
#define THRESHOLD_PARAMETERS
#define THRESHOLD_ARGUMENTS
#define NEW_MAXIMUM(m, m_tile) larger(m, m_tile)
#define IF_RESCALES(alpha)
#endif

// --- Which tiles are visited -------------------------------------------------------------------

enum { SKIPPED = 0, PARTIAL = 1, FULL = 2 };  // none, some or all pairs of a tile are visible

// Tiles side by side that are of one kind; kernels/cuda/runs.py lists them for each block of the
// outer loop, ascending, and an empty run after them.
struct Run {
    int start, stop;  // blocks of the inner loop, from start to stop - 1
    int kind;
};

// What a kernel takes to know them.
#define VISIT_PARAMETERS                                                                        \
    const int* __restrict__ run_offsets  /* [outer blocks] */                                   \
    , const Run* __restrict__ runs_hbm   /* those of block n: from run_offsets[n] on */

// Goes through the tiles that a block of the outer loop visits, ascending, as far as they lie in
// `from` to `to` - 1. All threads load the same numbers, so all go the same way. They are loaded
// again at each tile rather than held while it is worked on: registers are what is scarce.
struct Walk {
    const Run* run;  // at hand
    const int from, to;
    int at;          // the tile at hand

    __device__ __forceinline__ Walk(const Run* first, int from = (int)0x80000000,
                                    int to = 0x7fffffff)
        : run(first), from(from), to(to)
    {
        enter();
    }

    __device__ __forceinline__ bool more() const { return at < stop(); }
    __device__ __forceinline__ int kind() const { return run->kind; }

    __device__ __forceinline__ void next()
    {
        if (++at < stop()) return;
        ++run;
        enter();
    }

    // Takes the first run, from the one at hand on, of which anything is wanted; at last the empty.
    __device__ __forceinline__ void enter()
    {
        for (;; ++run) {
            at = run->start > from ? run->start : from;
            if (at < stop() || run->stop == 0) return;
        }
    }

    __device__ __forceinline__ int stop() const { return run->stop < to ? run->stop : to; }
};

// --- Counters and records of the trace build ---------------------------------------------------

// Requested bytes by tensor, and matmul FLOPs; kernels/cuda/counters.py has the same order.
enum Counter {
    READ_Q, READ_K, READ_V, READ_S, READ_P, READ_O, READ_l, READ_m, READ_O_partial,
    READ_LSE_partial, READ_state, READ_sink, READ_decay, READ_strength, READ_C, READ_table,
    READ_dO, READ_LSE, READ_D, READ_dQ_acc, READ_dP, READ_dS, READ_gate,
    WRITE_S, WRITE_P, WRITE_O, WRITE_LSE, WRITE_l, WRITE_m, WRITE_O_partial,
    WRITE_LSE_partial, WRITE_state, WRITE_D, WRITE_dQ_acc, WRITE_dQ, WRITE_dK, WRITE_dV,
    WRITE_dP, WRITE_dS,
    FLOPS, COUNTERS
};

// One visit under the magnifier; kernels/cuda/records.py has the same layout.
struct Detail {
    float s[BR][BC];                // scaled scores before the mask
    float p[BR][BC];                // exponentials
    float o_before[BR][VALUE_DIM];  // as the visit finds O, and as it leaves it
    float o[BR][VALUE_DIM];
    float m_tile[BR], l_tile[BR];   // of this tile alone
    float beta[BR];                 // exp(m_tile - m), where the algorithm uses it
};

#ifdef TRACE
// [heads, row blocks, columns] of the launch, a row block being BR rows. Null where nothing
// is wanted, but for m, l and alpha of a kernel that has them.
#define TRACE_PARAMETERS                                                                        \
    , unsigned char* kinds_hbm      /* [heads, row blocks, columns] */                          \
    , float* m_hbm_visits           /* [heads, row blocks * BR, columns] */                     \
    , float* l_hbm_visits           /* likewise */                                              \
    , float* alpha_hbm_visits       /* likewise */                                              \
    , Bytes* counters_hbm           /* [heads, row blocks, columns, COUNTERS] */                \
    , Detail* details_hbm           /* [detail_to - detail_from]: of the one row block */       \
    , int detail_from, int detail_to
#define TRACE_ARGUMENTS                                                                         \
    , kinds_hbm, m_hbm_visits, l_hbm_visits, alpha_hbm_visits, counters_hbm, details_hbm,       \
        detail_from, detail_to
#define RECORDED(...) __VA_ARGS__
#else
#define TRACE_PARAMETERS
#define TRACE_ARGUMENTS
#define RECORDED(...)
#endif

// Rows, keys and values that this thread answers for.
__device__ __forceinline__ int lane() { return threadIdx.x % WARP; }
__device__ __forceinline__ int own_row(int r) { return threadIdx.x / WARP * ROWS + r; }

// Where one visit is recorded; nothing at all in the fast build.
struct Visit {
    RECORDED(unsigned char* kind_; float *m_, *l_, *alpha_; Bytes* counters_; Detail* detail_;
             int columns_;)

    __device__ __forceinline__ void count(Counter which, int amount) const
    {
        RECORDED(if (counters_ && amount) atomicAdd(counters_ + which, (Bytes)amount);)
    }

    __device__ __forceinline__ void kind(int kind) const
    {
        RECORDED(if (kind_ && threadIdx.x == 0) *kind_ = (unsigned char)kind;)
    }

    // Every lane records what it wrote itself, so no barrier is needed.
    __device__ __forceinline__ void scores(const float* S_shared, int rows, int keys) const
    {
        RECORDED(if (detail_) copy(detail_->s, S_shared, rows, keys);)
    }

    __device__ __forceinline__ void exponentials(const float* P_shared, int rows, int keys) const
    {
        RECORDED(if (detail_) copy(detail_->p, P_shared, rows, keys);)
    }

    __device__ __forceinline__ void output_before(const float (&O)[ROWS][VALUES], int rows) const
    {
        RECORDED(if (detail_) copy(detail_->o_before, O, rows);)
    }

    __device__ __forceinline__ void output(const float (&O)[ROWS][VALUES], int rows) const
    {
        RECORDED(if (detail_) copy(detail_->o, O, rows);)
    }

    __device__ __forceinline__ void row(int r, int rows, float m, float l, float alpha,
                                        float m_tile, float l_tile, float beta) const
    {
        RECORDED(
            const int row = own_row(r);
            if (row >= rows || lane() != 0) return;
            m_[(Index)row * columns_] = m;
            l_[(Index)row * columns_] = l;
            alpha_[(Index)row * columns_] = alpha;
            if (!detail_) return;
            detail_->m_tile[row] = m_tile;
            detail_->l_tile[row] = l_tile;
            detail_->beta[row] = beta;)
    }

#ifdef TRACE
    __device__ void copy(float (*into)[BC], const float* S_shared, int rows, int keys) const
    {
        for (int r = 0; r < ROWS && own_row(r) < rows; ++r)
            for (int key = lane(); key < keys; key += WARP)
                into[own_row(r)][key] = S_shared[own_row(r) * BC + key];
    }

    __device__ void copy(float (*into)[VALUE_DIM], const float (&O)[ROWS][VALUES], int rows) const
    {
        #pragma unroll
        for (int r = 0; r < ROWS; ++r)
            #pragma unroll
            for (int n = 0; n < VALUES; ++n)
                if (own_row(r) < rows && lane() + n * WARP < VALUE_DIM)
                    into[own_row(r)][lane() + n * WARP] = O[r][n];
    }
#endif
};

// What the launch records of the head that this block works on.
struct Trace {
    RECORDED(unsigned char* kinds; float *m, *l, *alpha; Bytes* counters; Detail* details;
             int columns, from, to;)

    __device__ __forceinline__ Trace(int head_of_launch, int blocks, int column_blocks
                                     TRACE_PARAMETERS)
    {
        RECORDED(
            const Index tiles = (Index)head_of_launch * blocks * column_blocks;
            columns = column_blocks;
            from = detail_from;
            to = detail_to;
            details = details_hbm;
            kinds = kinds_hbm ? kinds_hbm + tiles : nullptr;
            counters = counters_hbm ? counters_hbm + tiles * COUNTERS : nullptr;
            m = m_hbm_visits ? m_hbm_visits + tiles * BR : nullptr;
            l = l_hbm_visits ? l_hbm_visits + tiles * BR : nullptr;
            alpha = alpha_hbm_visits ? alpha_hbm_visits + tiles * BR : nullptr;)
    }

    // `block` counts from the launch's first row block.
    __device__ __forceinline__ Visit visit(int block, int column) const
    {
        Visit visit;
        RECORDED(
            const Index tile = (Index)block * columns + column;
            const Index row = (Index)block * BR * columns + column;
            visit.columns_ = columns;
            visit.kind_ = kinds ? kinds + tile : nullptr;
            visit.counters_ = counters ? counters + tile * COUNTERS : nullptr;
            visit.detail_ = from <= column && column < to ? details + (column - from) : nullptr;
            visit.m_ = m ? m + row : nullptr;
            visit.l_ = l ? l + row : nullptr;
            visit.alpha_ = alpha ? alpha + row : nullptr;)
        return visit;
    }
};

template <class AnyMask>
__device__ __forceinline__ void Sinks::count(const Visit& visit, const AnyMask& mask,
                                             int first_row, int rows) const
{
#ifdef SINK
    const int heads = mask.query_head(1, first_row + rows - 1) - mask.query_head(0, first_row);
    if (threadIdx.x == 0) visit.count(READ_sink, heads * (int)sizeof(float));
#endif
}

// --- Tiles on their way ------------------------------------------------------------------------

// HBM to shared memory, by the whole block. Rows past the end become zeros.
__device__ __forceinline__ void load_tile(
    element* tile_shared,     // [tile_rows, stride]
    int tile_rows, int stride,
    const element* tile_hbm,  // [rows, width]
    int rows, int width, const Visit& visit, Counter counter)
{
    int loaded = 0;
    for (int n = threadIdx.x; n < tile_rows * width; n += THREADS) {
        const int row = n / width, column = n % width;
        element x = (element)0;
        if (row < rows) {
            x = tile_hbm[(Index)row * width + column];
            ++loaded;
        }
        tile_shared[row * stride + column] = x;
    }
    visit.count(counter, loaded * (int)sizeof(element));
}

// Registers to HBM, each warp its own rows.
template <class T>
__device__ __forceinline__ void store_output(
    T* O_hbm,                          // [rows, VALUE_DIM]
    const float (&O)[ROWS][VALUES], int rows, const Visit& visit, Counter counter = WRITE_O)
{
    int stored = 0;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r)
        #pragma unroll
        for (int n = 0; n < VALUES; ++n) {
            const int row = own_row(r), value = lane() + n * WARP;
            if (row < rows && value < VALUE_DIM) {
                put(O_hbm + (Index)row * VALUE_DIM + value, O[r][n]);
                ++stored;
            }
        }
    visit.count(counter, stored * (int)sizeof(T));
}

#ifdef OUTPUT_GATE
// O times the gate of its rows, from HBM, each warp its rows, each lane its values.
__device__ __forceinline__ void gate_output(
    float (&O)[ROWS][VALUES],
    const element* gate_hbm,  // [rows, VALUE_DIM]
    int rows, const Visit& visit)
{
    int loaded = 0;
    #pragma unroll
    for (int r = 0; r < ROWS; ++r)
        #pragma unroll
        for (int n = 0; n < VALUES; ++n) {
            const int row = own_row(r), value = lane() + n * WARP;
            if (row < rows && value < VALUE_DIM) {
                O[r][n] *= widen(gate_hbm[(Index)row * VALUE_DIM + value]);
                ++loaded;
            }
        }
    visit.count(READ_gate, loaded * (int)sizeof(element));
}
#endif

// --- The steps of a tile -----------------------------------------------------------------------

// S of Q K^T, each warp its rows, each lane its keys; or such products of another depth.
template <int DEPTH = HEAD_DIM, int STRIDE = KEY_STRIDE>
__device__ __forceinline__ void scores(
    float* S_shared,          // [TILE_ROWS, BC], written
    const element* Q_shared,  // [TILE_ROWS, DEPTH]
    const element* K_shared,  // [BC, STRIDE]
    const Score& score, int rows, int keys, const Visit& visit)
{
    int scored = 0;
    for (int first = lane(); first < keys; first += KEYS * WARP) {
        float sum[ROWS][KEYS];
        #pragma unroll
        for (int r = 0; r < ROWS; ++r)
            #pragma unroll
            for (int c = 0; c < KEYS; ++c) sum[r][c] = 0.0f;
        const element* K_row[KEYS];
        #pragma unroll
        for (int c = 0; c < KEYS; ++c) {
            const int key = first + c * WARP;  // past the tile: any row, the result is not stored
            K_row[c] = K_shared + (key < BC ? key : 0) * STRIDE;
        }
        const element* Q_row = Q_shared + own_row(0) * DEPTH;
        // One element of K serves all rows of the warp, one of Q all keys of the lane.
        for (int d = 0; d < DEPTH; ++d) {
            float k[KEYS];
            #pragma unroll
            for (int c = 0; c < KEYS; ++c) k[c] = widen(K_row[c][d]);
            #pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                const float q = widen(Q_row[r * DEPTH + d]);
                #pragma unroll
                for (int c = 0; c < KEYS; ++c) sum[r][c] = multiply_add(q, k[c], sum[r][c]);
            }
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r)
            #pragma unroll
            for (int c = 0; c < KEYS; ++c)
                if (first + c * WARP < keys) {
                    S_shared[own_row(r) * BC + first + c * WARP] = score.of(sum[r][c]);
                    if (own_row(r) < rows) ++scored;
                }
    }
    visit.count(FLOPS, scored * 2 * DEPTH);
}

// Scaled products become scores, if that is not the same. Rows past a tile's end have neither slopes
// nor biases.
template <class AnyMask>
__device__ __forceinline__ void change_scores(
    float* S_shared,  // [TILE_ROWS, BC]
    const Score& score, const AnyMask& mask, int first_head, int first_row, int rows,
    int first_key, int keys)
{
#ifdef CHANGES_SCORES
    for (int r = 0; r < ROWS; ++r) {
        const int row = own_row(r);
        if (row >= rows) continue;  // costs fewer registers than an end of the loop
        for (int key = lane(); key < keys; key += WARP) {
            float* S = S_shared + row * BC + key;
            *S = score.changed(*S, mask, first_head, first_row + row, first_key + key);
        }
    }
#endif
}

// Hidden pairs become -inf.
template <class AnyMask>
__device__ __forceinline__ void apply_mask(
    float* S_shared,  // [TILE_ROWS, BC]
    const AnyMask& mask, int first_head, int first_row, int first_key, int keys)
{
    for (int r = 0; r < ROWS; ++r)
        for (int key = lane(); key < keys; key += WARP)
            if (!mask.sees(first_head, first_row + own_row(r), first_key + key))
                S_shared[own_row(r) * BC + key] = minus_infinity();
}

__device__ __forceinline__ float warp_max(float x)
{
    for (int bit = WARP / 2; bit > 0; bit /= 2)
        x = larger(x, __shfl_xor_sync(0xffffffffu, x, bit));
    return x;
}

__device__ __forceinline__ float warp_sum(float x)
{
    for (int bit = WARP / 2; bit > 0; bit /= 2) x += __shfl_xor_sync(0xffffffffu, x, bit);
    return x;
}

__device__ __forceinline__ float row_max(const float* S_row, int keys)
{
    float top = minus_infinity();
    for (int key = lane(); key < keys; key += WARP) top = larger(top, S_row[key]);
    return warp_max(top);
}

// P = exp(S - top), in the place of S.
__device__ __forceinline__ void exponentials(float* S_row, float top, int keys)
{
    for (int key = lane(); key < keys; key += WARP) S_row[key] = exp_below(S_row[key], top);
}

__device__ __forceinline__ float row_sum(const float* P_row, int keys)
{
    float sum = 0.0f;
    for (int key = lane(); key < keys; key += WARP) sum += P_row[key];
    return warp_sum(sum);
}

#ifdef ROUND_PAIRS
// S, P or dS in the type of the elements, though they lie in float32: each lane those that it made.
// Only a run with p_dtype = "storage" is compiled with -DROUND_PAIRS.
__device__ __forceinline__ void round_pairs(float* pairs_shared /* [TILE_ROWS, BC] */, int keys)
{
    for (int r = 0; r < ROWS; ++r)
        for (int key = lane(); key < keys; key += WARP) {
            float* x = pairs_shared + own_row(r) * BC + key;
            *x = widen(narrow(*x));
        }
}
#endif

// O += P V, each warp its rows, each lane its values. Of AT_ONCE keys the P come in one load, if
// there are registers for it. Values of a key begin STRIDE elements after those of the key before.
template <int AT_ONCE, int STRIDE = VALUE_DIM>
__device__ __forceinline__ void accumulate(
    float (&O)[ROWS][VALUES],
    const float* P_shared,    // [TILE_ROWS, BC]
    const element* V_shared,  // [BC, STRIDE]
    int rows, int keys, const Visit& visit)
{
    if (lane() >= VALUE_DIM) return;
    #pragma unroll AT_ONCE
    for (int key = 0; key < keys; ++key) {
        float v[VALUES];
        #pragma unroll
        for (int n = 0; n < VALUES; ++n) {
            const int value = lane() + n * WARP;  // past the end: any value, it is not stored
            v[n] = widen(V_shared[key * STRIDE + (value < VALUE_DIM ? value : 0)]);
        }
        #pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const float p = P_shared[own_row(r) * BC + key];
            #pragma unroll
            for (int n = 0; n < VALUES; ++n) O[r][n] = multiply_add(p, v[n], O[r][n]);
        }
    }
    int summed = 0;
    for (int r = 0; r < ROWS && own_row(r) < rows; ++r)
        for (int value = lane(); value < VALUE_DIM; value += WARP) summed += keys;
    visit.count(FLOPS, summed * 2);
}
