// Watches what a kernel reads and writes: races, places outside of arrays, shared memory that
// nobody has written.
//
// A kernel that is compiled with -fsanitize=thread calls a function at each load, store and atomic
// operation. Those functions are here, in the place of the sanitizer's own: they know blocks, warps and
// barriers, which it does not. Two accesses to a place, one of which writes, are a race unless something
// orders them: the same thread, a __syncthreads of their block, a __syncwarp of their warp. Shuffles
// exchange registers and order nothing. Each thread counts the barriers that it has passed, so two
// threads of a block have passed one in between if their counts differ.
//
// Blocks have no order, and need none to add up integers. If the sums of floats are promised to be
// made in turn, an order is looked for: a block whose threads have all passed a __threadfence and then a
// barrier releases, with the next atomic operation of one, what it has done before the barrier. A
// block acquires that if a thread sees it by an atomic operation, passes a __threadfence, and the
// block then passes a barrier.
//
// One worker runs all blocks. Nothing here is thread_local: runtime.cpp poisons all such variables.
#include "cuda_on_cpu.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace host {

unsigned char* dynamic_shared();
extern const uint64_t dynamic_limit;

namespace watch {
namespace {

enum Kind { RACE, OUTSIDE, UNWRITTEN, UNWAITED };
enum { SHARED = -1, FIXED_SHARED = -2, NOWHERE = -3 };  // in the place of the number of an array

// What Python reads; watch.py has the same layout.
struct Fault {
    int kind, array;               // number of the array; nearest, if outside
    int64_t offset;                // bytes from its start
    int bytes;                     // of the second access
    int writes[2], atomic[2];      // of both accesses; a single one is the second
    uint64_t places[2];            // in the module
    int threads[2];
    int64_t blocks[2];
    int told;                      // by the emulation, not by the compiler
    uint64_t times;
};

// Several sizes of memory are watched in cells: an access to some of a cell is one to all of it.
struct Access {
    unsigned place = 0;                  // in the module
    unsigned block = 0;                  // 1 + its number; 0: there was none
    unsigned barriers = 0, of_warp = 0;  // that its thread had passed
    short thread = 0;
    char atomic = 0;  // ATOMIC, or a SUM of floats
};
enum { ATOMIC = 1, SUM = 2 };
constexpr int READS = 3;
struct Cell { Access write, reads[READS]; };

struct Array { uintptr_t start; size_t bytes; unsigned cell; Cell* cells; };
struct Span { uintptr_t start; size_t bytes; bool has(uintptr_t a) const { return a - start < bytes; } };
struct Turn { unsigned barriers; short thread; };  // when it was released or acquired, by whom
struct Acquired { Turn released, here; };
typedef std::map<unsigned, Turn> Released;  // by which blocks
struct Passed {  // by a thread
    unsigned barriers, of_warp;
    unsigned fence;  // 1 + the barriers before its last __threadfence; 0: none
    const Released* seen;
};
struct Landing { size_t cell; short thread; unsigned group, place; };  // an asynchronous copy

constexpr unsigned SHARED_CELL = 2;
constexpr int LANDING_CELLS = 16 / SHARED_CELL;

std::vector<Array> arrays;
std::vector<Span> of_host;  // stacks and what belongs to the emulation
Span fixed;                 // all thread_local variables: fixed shared memory, and two others
std::vector<Cell> shared;   // cells of dynamic and fixed shared memory
std::vector<short> landing; // of each shared cell: 1 + the thread that copies to it
std::vector<Landing> copies;
std::vector<Passed> passed_by;
bool telling;               // what goes on is told by the emulation
unsigned block_number;      // 1 + that of the block that runs
uintptr_t base;             // of the module
bool in_turn;               // sums of floats have an order
std::map<const void*, Released> released_at;
std::map<unsigned, Acquired> acquired;  // by the block that runs
// By kind, array, both places, whether they write, and how far the threads are from each other.
std::map<std::tuple<int, int, unsigned, unsigned, int, int, int>, Fault> faults;

// What the lanes of a warp ask of shared memory with one instruction, the same time that they come by.
struct Asked { int bytes; bool writes; std::vector<std::pair<int, unsigned>> lanes; };
// What Python reads of all accesses at a place; watch.py has the same layout.
struct Phases { uint64_t place, accesses, phases, offset; int bytes, writes; };
bool counting;
std::map<std::tuple<int, unsigned, unsigned>, Asked> asked;  // by warp, place, and how often before
std::map<std::pair<int, unsigned>, unsigned> times_at;       // by thread and place
std::map<unsigned, Phases> phases;                           // by place

int thread_of(const Thread& t) { return t.warp * 32 + t.lane; }

void add(Kind kind, int array, int64_t offset, int bytes, const Access* before, bool before_writes,
         const Access& now, bool writes)
{
    const Access first = before ? *before : Access();
    const int apart = first.block != now.block ? 2 : first.thread / 32 != now.thread / 32;
    Fault& f = faults[{kind, array, first.place, now.place, writes, before_writes, apart}];
    if (f.times++) return;
    f = {kind, array, offset, bytes, {before_writes, writes}, {first.atomic, now.atomic},
         {first.place, now.place}, {first.thread, now.thread},
         {int64_t{first.block} - 1, int64_t{now.block} - 1}, telling, 1};
}

bool ordered(const Access& a, const Access& b)
{
    const bool sums = in_turn && a.atomic == SUM && b.atomic == SUM;
    if (!a.block || (a.atomic && b.atomic && !sums)) return true;
    if (a.block != b.block) {
        const auto known = acquired.find(a.block);
        if (known == acquired.end()) return false;
        const Turn &there = known->second.released, &here = known->second.here;
        return (a.barriers < there.barriers || a.thread == there.thread) &&
               (b.barriers > here.barriers || b.thread == here.thread);
    }
    if (a.thread == b.thread || a.barriers != b.barriers) return true;
    return a.thread / 32 == b.thread / 32 && a.of_warp != b.of_warp;
}

// Keeps readers so that a later write of anybody meets one of those that it races with: two of a
// warp, and one of another warp or block.
void keep(Cell& cell, const Access& now)
{
    const auto same_warp = [](const Access& a, const Access& b) {
        return a.block == b.block && a.thread / 32 == b.thread / 32;
    };
    for (Access& r : cell.reads) {
        const bool ours = r.block == now.block;
        if (!r.block || (ours && (r.thread == now.thread || r.barriers != now.barriers)) ||
            (same_warp(r, now) && r.of_warp != now.of_warp)) {
            r = now;
            return;
        }
    }
    if (same_warp(cell.reads[0], cell.reads[1]) && !same_warp(cell.reads[0], now)) cell.reads[2] = now;
}

// A phase serves as many lanes, in order, as ask for 128 bytes together: one word of each bank. What a
// lane before has asked for is there already.
unsigned phases_of(const Asked& each)
{
    const int at_once = std::max(1, 128 / std::max(4, each.bytes));
    std::map<int, std::map<unsigned, std::set<unsigned>>> words;  // by group of lanes and bank
    std::set<unsigned> known;
    for (const auto& [lane, offset] : each.lanes)
        if (known.insert(offset).second)
            for (unsigned word = offset / 4; word <= (offset + each.bytes - 1) / 4; ++word)
                words[lane / at_once][word % 32].insert(word);
    size_t sum = 0;
    for (const auto& [group, banks] : words) {
        size_t most = 0;
        for (const auto& [bank, of_bank] : banks) most = std::max(most, of_bank.size());
        sum += most;
    }
    return static_cast<unsigned>(sum);
}

void count_phases()
{
    for (const auto& [key, each] : asked) {
        const unsigned place = std::get<1>(key), offset = each.lanes[0].second;
        Phases& all = phases.insert({place, {place, 0, 0, offset, each.bytes, each.writes}}).first->second;
        ++all.accesses;
        all.phases += phases_of(each);
        all.offset = std::min<uint64_t>(all.offset, offset);
    }
    asked.clear();
    times_at.clear();
}

void touch(Cell& cell, int array, int64_t offset, int bytes, const Access& now, bool writes)
{
    if (!ordered(cell.write, now)) add(RACE, array, offset, bytes, &cell.write, true, now, writes);
    if (!writes) return keep(cell, now);
    for (Access& r : cell.reads) {
        if (!ordered(r, now)) add(RACE, array, offset, bytes, &r, false, now, true);
        r = Access();
    }
    cell.write = now;
}

Access access_now(const void* returns, char atomic)
{
    const Thread& t = *block->running;
    const Passed& p = passed_by[thread_of(t)];
    return {static_cast<unsigned>(reinterpret_cast<uintptr_t>(returns) - base), block_number,
            p.barriers, p.of_warp, static_cast<short>(thread_of(t)), atomic};
}

void see_shared(int array, uintptr_t start, size_t first_cell, uintptr_t a, int bytes, bool writes,
                const Access& now)
{
    const int64_t offset = a - start;
    const size_t from = first_cell + offset / SHARED_CELL;
    const size_t to = first_cell + (offset + bytes - 1) / SHARED_CELL;
    for (size_t n = from; n <= to; ++n) {
        Cell& cell = shared[n];
        if (cell.write.block != now.block) cell = Cell();  // of a block before
        if (landing[n]) {
            for (const Landing& c : copies)
                if (n - c.cell < LANDING_CELLS) {
                    Access copy = cell.write;
                    copy.place = c.place;
                    copy.thread = c.thread;
                    copy.block = now.block;
                    add(UNWAITED, array, offset, bytes, &copy, true, now, writes);
                    break;
                }
        } else if (!writes && !cell.write.block) {
            add(UNWRITTEN, array, offset, bytes, nullptr, false, now, false);
        }
        touch(cell, array, offset, bytes, now, writes);
    }
}

size_t cells_of(uint64_t bytes) { return (bytes + SHARED_CELL - 1) / SHARED_CELL; }

void see(const void* address, int bytes, bool writes, const void* returns, char atomic = 0)
{
    if (!block || !block->running || !block_number || bytes <= 0) return;
    const uintptr_t a = reinterpret_cast<uintptr_t>(address);
    for (const Span& span : of_host)
        if (span.has(a)) return;
    const uintptr_t dynamic = reinterpret_cast<uintptr_t>(dynamic_shared());
    if (a - dynamic < dynamic_limit || fixed.has(a)) {
        if (a - reinterpret_cast<uintptr_t>(&block) < sizeof block) return;
        const Access now = access_now(returns, atomic);
        if (a - dynamic >= dynamic_limit)
            return see_shared(FIXED_SHARED, fixed.start, cells_of(block->shared_bytes),
                              a < dynamic ? a : a - dynamic_limit, bytes, writes, now);
        if (counting) {
            const int thread = thread_of(*block->running);
            Asked& of_warp = asked[{thread / 32, now.place, times_at[{thread, now.place}]++}];
            of_warp.bytes = bytes;
            of_warp.writes = writes;
            of_warp.lanes.push_back({thread % 32, static_cast<unsigned>(a - dynamic)});
        }
        if (a + bytes > dynamic + block->shared_bytes)
            return add(OUTSIDE, SHARED, a - dynamic, bytes, nullptr, false, now, writes);
        return see_shared(SHARED, dynamic, 0, a, bytes, writes, now);
    }
    const Access now = access_now(returns, atomic);
    int nearest = NOWHERE;
    uint64_t least = UINT64_MAX;
    for (size_t n = 0; n < arrays.size(); ++n) {
        const Array& array = arrays[n];
        if (a - array.start < array.bytes && a + bytes <= array.start + array.bytes) {
            const size_t from = (a - array.start) / array.cell;
            const size_t to = (a - array.start + bytes - 1) / array.cell;
            for (size_t cell = from; cell <= to; ++cell)
                touch(array.cells[cell], static_cast<int>(n), a - array.start, bytes, now, writes);
            return;
        }
        const uint64_t away = a < array.start ? array.start - a : a - array.start - array.bytes;
        if (away < least) least = away, nearest = static_cast<int>(n);
    }
    add(OUTSIDE, nearest, nearest < 0 ? 0 : int64_t(a - arrays[nearest].start), bytes, nullptr, false,
        now, writes);
}

// What an atomic operation on an integer releases, and what its thread sees by it.
void exchange(const void* address)
{
    if (!in_turn || !block_number) return;
    const short thread = static_cast<short>(thread_of(*block->running));
    Passed& me = passed_by[thread];
    Released& at = released_at[address];
    const bool fenced = std::all_of(passed_by.begin(), passed_by.end(), [&](const Passed& p) {
        return p.fence && p.fence >= me.barriers;
    });
    if (fenced) {
        for (const auto& [number, known] : acquired)
            if (known.here.barriers < me.barriers || known.here.thread == thread)
                at[number] = known.released;
        at[block_number] = {me.barriers, thread};
    }
    me.seen = &at;
}

void fence()
{
    if (!in_turn || !block_number) return;
    const short thread = static_cast<short>(thread_of(*block->running));
    Passed& me = passed_by[thread];
    me.fence = me.barriers + 1;
    if (!me.seen) return;
    for (const auto& [number, turn] : *me.seen)
        if (number != block_number) acquired[number] = {turn, {me.barriers, thread}};
    me.seen = nullptr;
}

}  // namespace

void working(const void* const* starts, const size_t* bytes, int count, const void* locals,
             size_t local_bytes)
{
    of_host.clear();
    for (int n = 0; n < count; ++n) of_host.push_back({reinterpret_cast<uintptr_t>(starts[n]), bytes[n]});
    fixed = {reinterpret_cast<uintptr_t>(locals), local_bytes};
}

void begins(uint64_t number, size_t threads)
{
    block_number = static_cast<unsigned>(number + 1);
    passed_by.assign(threads, Passed());
    acquired.clear();
    const size_t cells = cells_of(block->shared_bytes) + cells_of(fixed.bytes - dynamic_limit);
    shared.resize(cells);
    landing.assign(cells, 0);
    copies.clear();
}

void ends()
{
    count_phases();
    block_number = 0;
}

void passed(bool whole_block)
{
    Passed& p = passed_by[thread_of(*block->running)];
    p.barriers += whole_block;
    ++p.of_warp;
}

__attribute__((noinline)) void copies_to(const void* to, const void* from, unsigned bytes)
{
    const void* returns = __builtin_return_address(0);
    telling = true;
    see(from, static_cast<int>(bytes), false, returns);
    see(to, 16, true, returns);
    telling = false;
    const Access now = access_now(returns, 0);
    const size_t cell = (static_cast<const unsigned char*>(to) - dynamic_shared()) / SHARED_CELL;
    copies.push_back({cell, now.thread, block->running->groups, now.place});
    for (int n = 0; n < LANDING_CELLS; ++n) ++landing[cell + n];
}

void waited(unsigned pending)
{
    const Access now = access_now(nullptr, 0);
    size_t left = 0;
    for (const Landing& c : copies) {
        if (c.thread != now.thread || c.group + pending >= block->running->groups) {
            copies[left++] = c;
            continue;
        }
        Access lands = now;
        lands.place = c.place;
        for (int n = 0; n < LANDING_CELLS; ++n) {
            --landing[c.cell + n];
            shared[c.cell + n].write = lands;
        }
    }
    copies.resize(left);
}

__attribute__((noinline)) void reads(const void* from, int bytes)
{
    telling = true;
    see(from, bytes, false, __builtin_return_address(0));
    telling = false;
}

}  // namespace watch
}  // namespace host

// --- what Python calls -----------------------------------------------------------------------

using namespace host;

struct GivenArray { uint64_t start, bytes; unsigned item; };

HOST_PUBLIC void watch_start(const GivenArray* given, int count, int in_turn)
{
    Dl_info module;
    dladdr(reinterpret_cast<void*>(&watch_start), &module);
    watch::base = reinterpret_cast<uintptr_t>(module.dli_fbase);
    watch::faults.clear();
    watch::released_at.clear();
    watch::in_turn = in_turn;
    watch::block_number = 0;
    watch::shared.clear();
    for (int n = 0; n < count; ++n) {
        const unsigned cell = std::min(4u, std::max(1u, given[n].item));
        watch::arrays.push_back({given[n].start, given[n].bytes, cell, static_cast<watch::Cell*>(
            calloc(given[n].bytes / cell + 1, sizeof(watch::Cell)))});
    }
}

// Copies up to `most` faults, in the order of their places; returns how many there are.
HOST_PUBLIC int watch_end(watch::Fault* found, int most)
{
    int count = 0;
    for (const auto& [key, fault] : watch::faults)
        if (count++ < most) found[count - 1] = fault;
    for (const watch::Array& array : watch::arrays) free(array.cells);
    watch::arrays.clear();
    return count;
}

// From now on phases are counted, or no longer.
HOST_PUBLIC void watch_count(int on)
{
    watch::counting = on;
    watch::phases.clear();
}

// Copies up to `most` places that were counted; returns how many there are.
HOST_PUBLIC int watch_counted(watch::Phases* found, int most)
{
    int count = 0;
    for (const auto& [place, each] : watch::phases)
        if (count++ < most) found[count - 1] = each;
    return count;
}

// --- what the compiler calls -----------------------------------------------------------------

#define RETURNS __builtin_return_address(0)
#define ACCESSES(name, size)                                                                    \
    void __tsan_##name##read##size(void* a) { watch::see(a, size, false, RETURNS); }            \
    void __tsan_##name##write##size(void* a) { watch::see(a, size, true, RETURNS); }
#define ALL_ACCESSES(size) ACCESSES(, size) ACCESSES(unaligned_, size) ACCESSES(volatile_, size)
#define ATOMICS(bits, T)                                                                        \
    T __tsan_atomic##bits##_fetch_add(T* a, T x, int)                                           \
    {                                                                                           \
        watch::see(a, bits / 8, true, RETURNS, watch::ATOMIC);                                  \
        watch::exchange(a);                                                                     \
        return __atomic_fetch_add(a, x, __ATOMIC_RELAXED);                                      \
    }                                                                                           \
    T __tsan_atomic##bits##_load(const T* a, int)                                               \
    {                                                                                           \
        watch::see(a, bits / 8, false, RETURNS, watch::ATOMIC);                                 \
        return __atomic_load_n(a, __ATOMIC_RELAXED);                                            \
    }                                                                                           \
    void __tsan_atomic##bits##_store(T* a, T x, int)                                            \
    {                                                                                           \
        watch::see(a, bits / 8, true, RETURNS, watch::ATOMIC);                                  \
        __atomic_store_n(a, x, __ATOMIC_RELAXED);                                               \
    }                                                                                           \
    T __tsan_atomic##bits##_exchange(T* a, T x, int)                                            \
    {                                                                                           \
        watch::see(a, bits / 8, true, RETURNS, watch::ATOMIC);                                  \
        return __atomic_exchange_n(a, x, __ATOMIC_RELAXED);                                     \
    }                                                                                           \
    int __tsan_atomic##bits##_compare_exchange_strong(T* a, T* expected, T x, int, int)         \
    {                                                                                           \
        watch::see(a, bits / 8, true, RETURNS, watch::SUM);                                     \
        return __atomic_compare_exchange_n(a, expected, x, false, __ATOMIC_RELAXED,             \
                                           __ATOMIC_RELAXED);                                   \
    }                                                                                           \
    int __tsan_atomic##bits##_compare_exchange_weak(T* a, T* expected, T x, int, int)           \
    {                                                                                           \
        watch::see(a, bits / 8, true, RETURNS, watch::SUM);                                     \
        return __atomic_compare_exchange_n(a, expected, x, false, __ATOMIC_RELAXED,             \
                                           __ATOMIC_RELAXED);                                   \
    }                                                                                           \
    T __tsan_atomic##bits##_compare_exchange_val(T* a, T expected, T x, int, int)               \
    {                                                                                           \
        watch::see(a, bits / 8, true, RETURNS, watch::SUM);                                     \
        __atomic_compare_exchange_n(a, &expected, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);\
        return expected;                                                                        \
    }

extern "C" {
ALL_ACCESSES(1) ALL_ACCESSES(2) ALL_ACCESSES(4) ALL_ACCESSES(8) ALL_ACCESSES(16)
ATOMICS(32, uint32_t) ATOMICS(64, uint64_t)
void __tsan_read_range(void* a, size_t n) { watch::see(a, static_cast<int>(n), false, RETURNS); }
void __tsan_write_range(void* a, size_t n) { watch::see(a, static_cast<int>(n), true, RETURNS); }
// clang++ calls these where g++ calls the C library.
void* __tsan_memcpy(void* to, const void* from, size_t n) { return memcpy(to, from, n); }
void* __tsan_memmove(void* to, const void* from, size_t n) { return memmove(to, from, n); }
void* __tsan_memset(void* to, int byte, size_t n) { return memset(to, byte, n); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}
void __tsan_atomic_thread_fence(int) { watch::fence(); }
}
