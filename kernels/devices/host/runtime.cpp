// Blocks of fibers: what cuda_on_cpu.h leaves to a source of its own, compiled once.
//
// A block is one queue of fibers that can go on. A fiber runs until it waits; then the next one
// of the queue runs. Whoever completes a barrier puts all that waited there into the queue:
//   forward  at its end, in their order: all threads keep abreast;
//   reverse  at its front, the last first: one warp runs ahead as far as the barriers let it;
//   random   at its end, and any fiber of the queue may be the next.
// When the queue is empty and fibers still wait, nobody can ever come: that is an error with the
// places named, never a hang.

#if defined(__APPLE__)
#define _XOPEN_SOURCE 700  // for ucontext
#define _DARWIN_C_SOURCE
#endif
#include "cuda_on_cpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <link.h>
#endif
#if !(defined(__x86_64__) && defined(__linux__)) && !defined(HOST_UCONTEXT)
#define HOST_UCONTEXT 1
#endif
#ifdef HOST_UCONTEXT
#include <ucontext.h>
#endif

namespace host {

__thread Block* block = nullptr;

unsigned char* dynamic_shared();       // generated beside each kernel; thread_local
extern const uint64_t dynamic_limit;  // its size

namespace {

constexpr size_t STACK = 64 * 1024;
constexpr size_t GUARD = 4096;  // bytes after the dynamic shared memory that must stay poisoned
constexpr uint64_t CANARY = 0x5afe57ac6b0a7d00;

enum Order { FORWARD, REVERSE, RANDOM };
enum State { READY, AT_BLOCK, AT_WARP, ENDED };

// --- switching between stacks ----------------------------------------------------------------

#ifdef HOST_UCONTEXT
struct Context { ucontext_t at; };
void jump(Context& from, Context& to) { swapcontext(&from.at, &to.at); }
void prepare(Context& c, unsigned char* stack, void (*start)())
{
    getcontext(&c.at);
    c.at.uc_stack.ss_sp = stack;
    c.at.uc_stack.ss_size = STACK;
    c.at.uc_link = nullptr;
    makecontext(&c.at, start, 0);
}
#else
struct Context { void* top; };
extern "C" __attribute__((visibility("hidden"))) void host_jump(void** save, void* to);
asm(R"(
.text
.globl host_jump
.hidden host_jump
.type host_jump, @function
host_jump:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size host_jump, . - host_jump
)");
void jump(Context& from, Context& to) { host_jump(&from.top, to.top); }
void prepare(Context& c, unsigned char* stack, void (*start)())
{
    void** top = reinterpret_cast<void**>(stack + STACK);
    *--top = nullptr;  // start never returns; this keeps the stack aligned as after a call
    *--top = reinterpret_cast<void*>(start);
    for (int i = 0; i < 6; ++i) *--top = nullptr;  // what host_jump pops
    c.top = top;
}
#endif

// --- a block and its threads -----------------------------------------------------------------

struct Fiber : Thread {
    Context context;
    unsigned char* stack;
    State state;
    const char* what;  // it waits at
    int line;
    unsigned mask;       // lanes it waits for
    unsigned exchanges;  // so far: which of the two sets of slots is next
};

struct Warp {
    Slot slots[2][32];  // two sets: some lanes still read one while others fill the other
    unsigned live, waiting;  // lanes
};

struct Running : Block {
    const Launch* plan;
    const Body* body;
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    std::vector<Fiber*> queue;  // ring
    size_t first, queued;
    int live, arrived;
    uint64_t random;
    Context outside;
    bool failed;
    char message[512];
};

Running& here() { return *static_cast<Running*>(block); }
Fiber& self() { return *static_cast<Fiber*>(block->running); }

uint64_t draw(uint64_t& state)  // xorshift64*
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ull >> 16;
}

void make_ready(Running& b, Fiber** fibers, int count)
{
    const size_t size = b.queue.size();
    for (int i = 0; i < count; ++i) {
        fibers[i]->state = READY;
        size_t place = b.first + b.queued;  // the end
        if (b.plan->order == REVERSE) place = b.first = b.first ? b.first - 1 : size - 1;
        b.queue[place < size ? place : place - size] = fibers[i];
        ++b.queued;
    }
}

Fiber* take_next(Running& b)
{
    if (b.plan->order == RANDOM) {
        const size_t place = (b.first + draw(b.random) % b.queued) % b.queue.size();
        std::swap(b.queue[b.first], b.queue[place]);
    }
    Fiber* next = b.queue[b.first];
    if (++b.first == b.queue.size()) b.first = 0;
    --b.queued;
    b.running = next;
    return next;
}

[[noreturn]] void leave(Running& b)
{
    Fiber& me = self();
    jump(me.context, b.outside);
    __builtin_unreachable();  // nobody comes back to a fiber that left
}

[[noreturn]] void report_deadlock(Running& b)
{
    char waiting[400] = "";
    int used = 0, ended = 0;
    const char* what = nullptr;
    int line = 0;
    for (const Fiber& f : b.fibers) {
        if (f.state == ENDED) { ++ended; what = nullptr; continue; }
        if (f.line == line && f.what == what) continue;  // as the thread before
        what = f.what;
        line = f.line;
        if (used < 300)
            used += snprintf(waiting + used, sizeof waiting - used, "; from thread %d at %s, line %d",
                             static_cast<int>(&f - b.fibers.data()), what, line);
    }
    fail("threads wait for each other at different barriers%s; %d have ended", waiting, ended);
}

void run_next(Running& b)
{
    Fiber& me = self();
    if (!b.queued) report_deadlock(b);
    Fiber* next = take_next(b);
    if (next != &me) jump(me.context, next->context);
}

void complete_block_barrier(Running& b)
{
    Fiber* waiting[1024];
    int count = 0;
    for (Fiber& f : b.fibers)
        if (f.state == AT_BLOCK) waiting[count++] = &f;
    for (int i = 1; i < count; ++i)
        if (waiting[i]->line != waiting[0]->line)
            fail("%s: some threads wait at line %d, others at line %d", waiting[0]->what,
                 waiting[0]->line, waiting[i]->line);
    b.arrived = 0;
    make_ready(b, waiting, count);
}

// Free the lanes of `mask` if all of them that have not ended wait for one another.
void complete_warp_barrier(Running& b, int number, unsigned mask)
{
    Warp& warp = b.warps[number];
    const unsigned needed = mask & warp.live;
    if ((warp.waiting & needed) != needed) return;
    Fiber* waiting[32];
    int count = 0;
    for (int lane = 0; lane < 32; ++lane) {
        if (!(needed >> lane & 1)) continue;
        Fiber& f = b.fibers[number * 32 + lane];
        if (f.mask != mask) return;  // it waits for others
        waiting[count++] = &f;
        if (f.line != waiting[0]->line || f.what != waiting[0]->what)
            fail("lanes of warp %d meet at %s, line %d, and at %s, line %d", number,
                 waiting[0]->what, waiting[0]->line, f.what, f.line);
    }
    warp.waiting &= ~needed;
    make_ready(b, waiting, count);
}

void fiber_main()
{
    Running& b = here();
    b.body->run();
    Fiber& me = self();
    me.state = ENDED;
    --b.live;
    Warp& warp = b.warps[me.warp];
    warp.live &= ~(1u << me.lane);
    if (!b.live) leave(b);
    // Those that have ended are waited for no more.
    if (b.arrived == b.live) complete_block_barrier(b);
    for (int lane = 0; lane < 32; ++lane)
        if (warp.live >> lane & 1 && b.fibers[me.warp * 32 + lane].state == AT_WARP) {
            complete_warp_barrier(b, me.warp, b.fibers[me.warp * 32 + lane].mask);
            break;
        }
    run_next(b);
    __builtin_unreachable();
}

// --- shared memory, poisoned: a float that nobody wrote is NaN --------------------------------

// The thread_local variables of this module that belong to this thread, none if unknown.
struct Range { unsigned char* start; size_t bytes; };

#if defined(__linux__)
int find_locals(dl_phdr_info* info, size_t, void* found)
{
    const auto here = reinterpret_cast<uintptr_t>(&find_locals);
    bool ours = false;
    size_t bytes = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& part = info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + part.p_vaddr;
        ours |= part.p_type == PT_LOAD && start <= here && here < start + part.p_memsz;
        if (part.p_type == PT_TLS) bytes = part.p_memsz;
    }
    if (ours)
        *static_cast<Range*>(found) = {static_cast<unsigned char*>(info->dlpi_tls_data), bytes};
    return ours;
}

Range locals()
{
    Range found = {nullptr, 0};
    dl_iterate_phdr(find_locals, &found);
    return found.start ? found : Range{nullptr, 0};
}
#else
Range locals() { return {nullptr, 0}; }  // then static __shared__ variables are not poisoned
#endif

void poison(const Launch& plan, Range locals)
{
    unsigned char* dynamic = dynamic_shared();
    Block* const kept = block;  // the one thread_local variable that is no shared memory
    if (locals.start) {
        memset(locals.start, 0xff, dynamic - locals.start);
        unsigned char* after = dynamic + dynamic_limit;
        memset(after, 0xff, locals.start + locals.bytes - after);
    }
    memset(dynamic, 0xff, plan.shared_bytes + GUARD);
    block = kept;
}

bool guard_is_intact(const Launch& plan)
{
    const unsigned char* guard = dynamic_shared() + plan.shared_bytes;
    return std::all_of(guard, guard + GUARD, [](unsigned char byte) { return byte == 0xff; });
}

// --- running ---------------------------------------------------------------------------------

void run_block(Running& b, uint64_t number)
{
    const int count = static_cast<int>(b.fibers.size());
    std::vector<Fiber*> all;
    b.first = b.queued = 0;
    b.live = count;
    b.arrived = 0;
    b.failed = false;
    b.random = (b.plan->seed * 0x9e3779b97f4a7c15ull ^ (number + 1) * 0xd1b54a32d192ed03ull) | 1;
    for (Warp& w : b.warps) w.live = w.waiting = 0;
    for (int i = 0; i < count; ++i) {
        Fiber& f = b.fibers[i];
        const unsigned x = b.size.x, y = b.size.y, n = static_cast<unsigned>(i);
        f.index = {n % x, n / x % y, n / (x * y)};
        f.warp = i / 32;
        f.lane = i % 32;
        f.what = "its start";
        f.line = 0;
        f.exchanges = 0;
        f.copies.clear();
        f.groups = 0;
        b.warps[f.warp].live |= 1u << f.lane;
        memcpy(f.stack, &CANARY, sizeof CANARY);
        prepare(f.context, f.stack, fiber_main);
        all.push_back(&f);
    }
    make_ready(b, all.data(), count);
    WATCHED(watch::begins(number, b.fibers.size());)
    jump(b.outside, take_next(b)->context);
    WATCHED(watch::ends();)
    if (b.failed) return;
    for (const Fiber& f : b.fibers)
        if (memcmp(f.stack, &CANARY, sizeof CANARY)) {
            snprintf(b.message, sizeof b.message, "a thread used more than %zu KiB of stack", STACK / 1024);
            b.failed = true;
            return;
        }
    if (!guard_is_intact(*b.plan)) {
        snprintf(b.message, sizeof b.message, "wrote past its %llu bytes of shared memory",
                 static_cast<unsigned long long>(b.plan->shared_bytes));
        b.failed = true;
    }
}

struct Shared {  // by all workers of a launch
    std::atomic<uint64_t> next{0};
    std::atomic<bool> failed{false};
    char* message;
    int size;
};

// The block to run as number `n` of `total`; random: a stride that meets each block once.
uint64_t nth_block(const Launch& plan, uint64_t n, uint64_t total)
{
    if (plan.order == REVERSE) return total - 1 - n;
    if (plan.order == FORWARD) return n;
    uint64_t stride = (plan.seed * 2654435761ull + 1) % total;
    while (std::gcd(stride, total) != 1) stride = (stride + 1) % total;
    return static_cast<uint64_t>((static_cast<unsigned __int128>(n) * stride + plan.seed) % total);
}

void work(const Launch& plan, const Body& body, Shared& shared)
{
    const size_t count = size_t{plan.block[0]} * plan.block[1] * plan.block[2];
    const uint64_t x = plan.grid[0], y = plan.grid[1], total = x * y * plan.grid[2];
    Running b{};
    b.size = {plan.block[0], plan.block[1], plan.block[2]};
    b.grid = {plan.grid[0], plan.grid[1], plan.grid[2]};
    b.shared_bytes = plan.shared_bytes;
    b.late = plan.late;
    b.plan = &plan;
    b.body = &body;
    b.fibers.resize(count);
    b.warps.resize((count + 31) / 32);
    b.queue.resize(count);
    void* stacks = mmap(nullptr, STACK * count, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) {
        if (!shared.failed.exchange(true))
            snprintf(shared.message, shared.size, "no memory for the stacks of %zu threads", count);
        return;
    }
    for (size_t i = 0; i < count; ++i)
        b.fibers[i].stack = static_cast<unsigned char*>(stacks) + i * STACK;
    block = &b;
    dynamic_shared()[0] = 0;  // brings this thread's variables into being
    const Range mine = locals();
    WATCHED(
        const void* const starts[] = {&b, b.fibers.data(), b.warps.data(), stacks, &body};
        const size_t bytes[] = {sizeof b, count * sizeof(Fiber), b.warps.size() * sizeof(Warp),
                                STACK * count, sizeof body};
        watch::working(starts, bytes, 5, mine.start, mine.bytes);)
    for (uint64_t n; !shared.failed && (n = shared.next++) < total;) {
        const uint64_t at = nth_block(plan, n, total);
        b.index = {static_cast<unsigned>(at % x), static_cast<unsigned>(at / x % y),
                   static_cast<unsigned>(at / (x * y))};
        poison(plan, mine);
        run_block(b, at);
        if (b.failed && !shared.failed.exchange(true))
            snprintf(shared.message, shared.size, "block (%u, %u, %u): %s", b.index.x, b.index.y,
                     b.index.z, b.message);
    }
    block = nullptr;
    munmap(stacks, STACK * count);
}

}  // namespace

void block_barrier(const char* what, int line)
{
    Running& b = here();
    Fiber& me = self();
    me.state = AT_BLOCK;
    me.what = what;
    me.line = line;
    if (++b.arrived == b.live) complete_block_barrier(b);
    run_next(b);
    WATCHED(watch::passed(true);)
}

namespace {

// Wait for the lanes of `mask`; it orders nothing else.
void meet(unsigned mask, const char* what, int line)
{
    Running& b = here();
    Fiber& me = self();
    if (!(mask >> me.lane & 1)) fail("%s, line %d: lane %d is not in its mask", what, line, me.lane);
    me.state = AT_WARP;
    me.what = what;
    me.line = line;
    me.mask = mask;
    b.warps[me.warp].waiting |= 1u << me.lane;
    complete_warp_barrier(b, me.warp, mask);
    run_next(b);
}

}  // namespace

void warp_barrier(unsigned mask, const char* what, int line)
{
    meet(mask, what, line);
    WATCHED(watch::passed(false);)
}

const Slot* gather(unsigned mask, const void* mine, size_t bytes, const char* what, int line)
{
    Fiber& me = self();
    Slot* slots = here().warps[me.warp].slots[me.exchanges++ & 1];
    memcpy(slots[me.lane].bytes, mine, bytes);
    meet(mask, what, line);
    return slots;
}

void fail(const char* format, ...)
{
    Running& b = here();
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(b.message, sizeof b.message, format, arguments);
    va_end(arguments);
    b.failed = true;
    leave(b);
}

int launch(const Launch& plan, const Body& body, char* message, int size)
{
    const uint64_t count = uint64_t{plan.block[0]} * plan.block[1] * plan.block[2];
    const uint64_t total = uint64_t{plan.grid[0]} * plan.grid[1] * plan.grid[2];
    if (!count || count > 1024 || !total) {
        snprintf(message, size, "%llu blocks of %llu threads: expected at least 1 and 1 to 1024",
                 static_cast<unsigned long long>(total), static_cast<unsigned long long>(count));
        return 1;
    }
    if (plan.shared_bytes + GUARD > dynamic_limit) {
        snprintf(message, size, "%llu bytes of shared memory: at most %llu",
                 static_cast<unsigned long long>(plan.shared_bytes),
                 static_cast<unsigned long long>(dynamic_limit - GUARD));
        return 1;
    }
    Shared shared;
    shared.message = message;
    shared.size = size;
    // A thread of its own even for one worker: its shared memory goes when it ends.
    std::vector<std::thread> workers;
    const uint64_t most = std::max(1, plan.workers);
    for (uint64_t i = 0; i < std::min(most, total); ++i)
        workers.emplace_back([&] { work(plan, body, shared); });
    for (std::thread& worker : workers) worker.join();
    return shared.failed;
}

}  // namespace host
