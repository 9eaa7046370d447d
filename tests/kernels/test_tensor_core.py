"""The tensor-core kernel: its instructions as the CPU plays them, its numbers, planted faults."""

import itertools
import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from kernels.build.sources import anchors, source, whole_source
from kernels.cuda import tensor_core
from kernels.cuda.engine import narrowed, widened
from kernels.cuda.tensor_core import (
    BUILDS,
    TensorCoreRun,
    build_options,
    check,
    most_resident,
    resident,
    shared_bytes,
)
from kernels.devices.host.module import HostModule, ThreadSchedule
from kernels.errors import KernelError
from simulator.problem.hardware import Gpu, gpus
from simulator.problem.masks import PairMask
from simulator.problem.workload import Inputs, Workload
from simulator.study.schedule.residency import BlockNeeds, residency
from tests.helpers.runs import program_of, rounding, scenario, textbook
from tests.kernels.helpers import SCHEDULES as ORDERS
from tests.kernels.helpers import ChangedDevice, needs_compiler, workload_of
from tests.kernels.warps import TOGETHER, check_matrices, check_product

SCHEDULES = tuple(
    ThreadSchedule(order.order, order.seed, late=late) for order in ORDERS for late in (False, True)
)

# --- the instructions ---------------------------------------------------------------------------

INSTRUCTIONS = r"""
extern "C" __global__ void fewer(const element* x, const int* rows, unsigned* out)
{
    extern __shared__ __align__(128) unsigned char shared_memory[];
    for (int n = lane(); n < 64 * 8; n += 32) ((element*)shared_memory)[n] = x[n];
    __syncwarp();
    const unsigned place = shared_address(shared_memory) + rows[lane()] * 16;
    unsigned two[2][2], one[1];
    host::ldmatrix<false>(two[0], lane() < 16 ? place : 1, __LINE__);  // the others name nothing
    host::ldmatrix<true>(two[1], lane() < 16 ? place : 1, __LINE__);
    host::ldmatrix<false>(one, lane() < 8 ? place : 1, __LINE__);
    for (int n = 0; n < 4; ++n) out[5 * lane() + n] = two[n / 2][n % 2];
    out[5 * lane() + 4] = one[0];
}

extern "C" __global__ void copies(const element* x, element* seen)
{
    extern __shared__ __align__(128) unsigned char shared_memory[];
    const unsigned place = shared_address(shared_memory) + threadIdx.x * 64;
    const element* mine = (const element*)(shared_memory + threadIdx.x * 64);
    auto show = [&](int moment) {
        for (int n = 0; n < 32; ++n) seen[(threadIdx.x * 4 + moment) * 32 + n] = mine[n];
    };
    copy_async(place, x, true);            // group 0
    commit_copies();
    copy_async(place + 16, x + 8, true);   // group 1
    copy_async(place + 32, nullptr, false);
    commit_copies();
    copy_async(place + 48, x + 16, true);  // of no group yet
    show(0);
    wait_for_copies<1>();
    show(1);
    wait_for_copies<0>();
    show(2);
    commit_copies();
    wait_for_copies<0>();
    show(3);
}

extern "C" __global__ void forbidden(const element* x, int what)
{
    extern __shared__ __align__(128) unsigned char shared_memory[];
    const unsigned place = shared_address(shared_memory);
    unsigned r[4];
    if (what == 0) ldmatrix(r, place + 8);
    if (what == 1) ldmatrix(r, place + 128 * lane());
    if (what == 2) copy_async(place, x + 1, true);
    if (what == 3) copy_async(place + 2048, x, true);
    if (what == 4 && lane() < 16) ldmatrix(r, place);
    if (what == 4 && lane() >= 16) ldmatrix_transposed(r, place);
}

extern "C" __global__ void pairs_of(const float* x, unsigned* out)
{
    out[lane()] = pack(x[2 * lane()], x[2 * lane() + 1]);
}
"""

PLACES = r"""
extern "C" __global__ void places(unsigned* swizzled_, unsigned* further_)
{
    for (int row = 0; row < 16; ++row)
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            swizzled_[row * CHUNKS + chunk] = swizzled(row, chunk);
            further_[row * CHUNKS + chunk] = further(swizzled(row, chunk % 2), chunk / 2);
        }
}
"""


def workload(**changes: Any) -> tuple[Workload, Inputs]:
    sizes: dict[str, Any] = {"nq": 128, "d": 64, "dtype": "float16", "rows": 128, "cols": 64}
    return workload_of(scenario("flash2", **{**sizes, **changes}))


def instructions(dtype: str, schedule: ThreadSchedule | None = None) -> HostModule:
    options = build_options(workload(dtype=dtype)[0])
    return HostModule(TOGETHER + INSTRUCTIONS, options, schedule)


@pytest.mark.sweep(keep=1)
@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("schedule", ORDERS, ids=lambda s: s.order.name)
def test_mma(dtype: str, schedule: ThreadSchedule) -> None:
    check_product(instructions(dtype, schedule).get_function("product_of"), dtype)


@needs_compiler
@pytest.mark.parametrize("schedule", ORDERS, ids=lambda s: s.order.name)
def test_ldmatrix(schedule: ThreadSchedule) -> None:
    module = instructions("float16", schedule)
    check_matrices(module.get_function("matrices"))
    x = np.arange(64 * 8, dtype=np.uint16).reshape(64, 8)
    rows = np.random.default_rng(2).permutation(64)[:32].astype(np.int32)
    out = np.zeros((32, 5), dtype=np.uint32)
    module.get_function("fewer")((1,), (32,), (x, rows, out), shared_mem=64 * 16)
    one, two, _, _ = x[rows].reshape(4, 8, 8)
    dealt = [each.reshape(32, 2) for each in (one, two, one.T, two.T, one)]
    np.testing.assert_array_equal(np.stack([out & 0xFFFF, out >> 16], 2), np.stack(dealt, 1))


@needs_compiler
@pytest.mark.parametrize("late", [False, True])
def test_copies_land_at_once_or_when_they_are_waited_for(late: bool) -> None:
    x = np.arange(1, 25, dtype=np.uint16)
    seen = np.zeros((64, 4, 4, 8), dtype=np.uint16)  # thread, moment, chunk, element
    instructions("float16", ThreadSchedule(late=late)).get_function("copies")(
        (1,), (64,), (x, seen), shared_mem=64 * 64
    )
    there = [x[:8], x[8:16], 0 * x[:8], x[16:]]
    not_yet = np.full(8, 0xFFFF, dtype=np.uint16)  # NaN
    landed = [0, 1, 3, 4] if late else [4, 4, 4, 4]
    for moment, count in enumerate(landed):
        want = there[:count] + [not_yet] * (4 - count)
        np.testing.assert_array_equal(seen[:, moment], np.broadcast_to(want, (64, 4, 8)))


@needs_compiler
@pytest.mark.parametrize(
    ("what", "message"),
    [
        (0, "ldmatrix: address 8 is not a multiple of 16"),
        (1, "ldmatrix: address 2048 lies past its 2048 bytes of shared memory"),
        (2, "cp.async: .* in global memory is not a multiple of 16"),
        (3, "cp.async: address 2048 lies past"),
        (4, "lanes of warp 0 meet at ldmatrix, line"),
    ],
)
def test_what_is_forbidden(what: int, message: str) -> None:
    x = np.zeros(64, dtype=np.uint16)
    x = x[-x.ctypes.data % 16 // 2 :][:16]  # begins at a multiple of 16
    with pytest.raises(KernelError, match=message):
        instructions("float16").get_function("forbidden")(
            (1,), (32,), (x, np.int32(what)), shared_mem=2048
        )


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_two_elements_in_a_register(dtype: str) -> None:
    x = np.random.default_rng(3).standard_normal((32, 2)).astype(np.float32)
    out = np.zeros(32, dtype=np.uint32)
    instructions(dtype).get_function("pairs_of")((1,), (32,), (x, out))
    got = widened(np.stack([out & 0xFFFF, out >> 16], axis=1).astype(np.uint16), dtype)
    assert np.all(np.abs(got - x) <= UNIT[dtype] * np.abs(x))


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("d", [64, 128])
def test_the_swizzle_meets_no_bank_conflict(d: int) -> None:
    chunks = d // 8
    offsets, further = np.zeros((2, 16, chunks), dtype=np.uint32)
    options = build_options(workload(d=d)[0])
    HostModule(whole_source("flash2_mma") + PLACES, options).get_function("places")(
        (1,), (1,), (offsets, further)
    )
    assert sorted(offsets.ravel()) == list(range(0, 16 * 16 * chunks, 16))  # each place once
    np.testing.assert_array_equal(further, offsets)
    banks = offsets // 16 % 8  # eight groups of four banks
    for first in (0, 8):  # what ldmatrix reads at once: a chunk of eight rows
        assert all(sorted(banks[first : first + 8, c]) == list(range(8)) for c in range(chunks))
    for first in range(0, chunks, 8):  # what is copied at once: eight chunks of a row
        assert all(sorted(row) == list(range(8)) for row in banks[:, first : first + 8])


# --- the kernel ---------------------------------------------------------------------------------

UNIT = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Largest relative error of rounding to the dtype."""


def growing(inputs: Inputs, w: Workload) -> Inputs:
    """Return inputs whose scores grow along the keys: tile after tile brings a new maximum."""
    grown = inputs.k * np.linspace(1, 6, w.seqlen_k, dtype=np.float32)[:, None]
    return Inputs(inputs.q, widened(narrowed(grown, w.dtype), w.dtype), inputs.v)


def run(
    w: Workload,
    inputs: Inputs,
    schedule: ThreadSchedule,
    warps: int = 4,
    buffers: int = 2,
    text: str = "",
) -> tuple[Any, Any]:
    """Return O and LSE of the kernel, or of another text."""
    device = ChangedDevice(lambda code: text or code, schedule)
    kernel = TensorCoreRun(w, inputs, device, warps=warps, buffers=buffers)
    kernel.launch()
    o, lse = kernel.tensors.o, kernel.tensors.lse
    return device.download(o), device.download(lse)


def wrong(w: Workload, inputs: Inputs, o: np.ndarray, lse: np.ndarray) -> list[str]:
    """Compare O and LSE with the textbook in float64.

    With A = P |V| / l, the same sum of magnitudes, and u = `UNIT`, the errors of O are at most:
    P rounded to the dtype, u A; P below the smallest normal float16, 2^-14, which keeps an
    absolute error of 2^-25 for each key, where l is at least 1; float32 scores, exponentials and
    sums, the bound of `rounding` times A; O rounded at the end, u |O|. Those of LSE: float32 only.
    """
    found = []
    unit, float32 = UNIT[w.dtype], rounding(w, inputs)
    for head in range(w.heads):
        exact, exact_lse = textbook(w, inputs, head)
        magnitude, _ = textbook(w, Inputs(inputs.q, inputs.k, np.abs(inputs.v)), head)
        tiny = 2.0**-25 * w.seqlen_k * np.abs(inputs.v).max()
        allowed = (unit + float32) * magnitude + tiny + unit * (np.abs(exact) + float32)
        got = widened(o[head], w.dtype)
        blind = np.isneginf(exact_lse)
        if not np.array_equal(np.isneginf(lse[head]), blind) or np.any(got[blind] != 0):
            found.append(f"head {head}: rows that see nothing")
        # Written so that NaN, for which every comparison is false, is wrong.
        if not np.all(np.abs(got - exact) <= allowed):
            found.append(f"head {head}: o")
        off = np.abs(lse[head][~blind] - exact_lse[~blind])
        if not np.all(off <= float32 * (1 + np.abs(exact_lse[~blind]))):
            found.append(f"head {head}: lse")
    return found


CASES: dict[str, dict[str, Any]] = {
    "whole tiles": {"nq": 128, "nk": 128},
    "causal, ragged": {"nq": 201, "nk": 201, "mask": {"causal": True}},
    "groups, more keys": {"nq": 70, "nk": 331, "mask": {"causal": True}, "heads": 4, "kv_heads": 2},
    "a blind row block, more queries": {"nq": 331, "nk": 157, "mask": {"causal": True}},
    "one row, one key past a tile": {"nq": 1, "nk": 65, "heads": 2, "kv_heads": 1},
    "one key": {"nq": 129, "nk": 1},
}  # fmt: skip


@pytest.mark.sweep(keep=1)
@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("case", CASES)
def test_against_float64(case: str, d: int, dtype: str) -> None:
    w, inputs = workload(d=d, dtype=dtype, **CASES[case])
    number = list(CASES).index(case)
    for numbers, schedule in ((inputs, SCHEDULES[number]), (growing(inputs, w), SCHEDULES[-1])):
        assert wrong(w, numbers, *run(w, numbers, schedule, buffers=1 + number % 2)) == []


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("d", [64, 128])
def test_eight_warps(d: int) -> None:
    w, inputs = workload(d=d, **CASES["causal, ragged"])
    assert wrong(w, inputs, *run(w, inputs, SCHEDULES[-1], warps=8)) == []


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("d", [64, 128])
def test_every_schedule_and_both_numbers_of_buffers_give_the_same_bits(d: int) -> None:
    w, inputs = workload(d=d, dtype="bfloat16", **CASES["causal, ragged"])
    results = {
        b"".join(x.tobytes() for x in run(w, inputs, schedule, buffers=buffers))
        for schedule in SCHEDULES
        for buffers in (1, 2)
    }
    assert len(results) == 1


ALPHA = "(m[f][half] - below) * (scale * LOG2_E)"
OF_PRODUCTS = "multiply_add(m[f][half], scale * LOG2_E, -subtract)"


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("alpha", [ALPHA, OF_PRODUCTS])
def test_a_maximum_that_stays_loses_nothing(alpha: str) -> None:
    """Alpha is 1 to the last bit: of products it is 1 but for their rounding, tile after tile."""
    text = whole_source("flash2_mma").replace(ALPHA, alpha)
    w, inputs = workload(nq=16, nk=64 * 64)
    steps = np.linspace(9, 15, 16, dtype=np.float16).astype(np.float32)
    q = np.broadcast_to(steps[:, None], inputs.q.shape)  # scores of 72 to 120, one a row
    alike = Inputs(q, np.ones_like(inputs.k), inputs.v)
    _, lse = run(w, alike, SCHEDULES[0], text=text)
    exact = np.stack([textbook(w, alike, head)[1] for head in range(w.heads)])
    assert (np.abs(lse - exact).max() <= 2.0**-23 * 128) == (alpha == ALPHA)


@pytest.mark.long
@needs_compiler
def test_a_byte_less_of_shared_memory_is_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    w, inputs = workload()
    monkeypatch.setattr(tensor_core, "shared_bytes", lambda *of: shared_bytes(*of) - 1)
    for buffers, most in ((1, 32767), (2, 49151)):
        with pytest.raises(KernelError, match=f"lies past its {most} bytes of shared memory"):
            run(w, inputs, SCHEDULES[0], buffers=buffers)


# --- planted faults -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """One planted fault: `old`, which occurs once, becomes `new`."""

    what: str
    old: str
    new: str
    changes: dict[str, Any] = field(default_factory=dict)
    buffers: int = 2


WAIT, BARRIER = "wait_for_copies<0>();\n", "__syncthreads();  // "

FAULTS = (
    # Copies and barriers.
    Fault("no wait for K and V", f"{WAIT}        {BARRIER}K is", f"{BARRIER}K is"),
    Fault("a wait for all but the last", f"{WAIT}        {BARRIER}K is",
          f"wait_for_copies<1>();  {BARRIER}K is"),
    Fault("no wait for V", f"{WAIT}            {BARRIER}V is", f"{BARRIER}V is", buffers=1),
    Fault("no wait for Q", "wait_for_copies<1>();\n", "\n"),
    Fault("no barrier around a tile", f"{BARRIER}K is", "//"),
    Fault("no barrier after V", f"{BARRIER}V is", "//", buffers=1),
    Fault("no barrier before Q is read", f"{BARRIER}Q is", "//"),
    Fault("no barrier before O is read back", "__syncwarp();  // each lane", "//"),
    Fault("the next tile in the place of this", "V_shared + j % BUFFERS * TILE_BYTES", "V_shared"),
    Fault("the first tile again", "V_head_hbm + (Index)j * BC", "V_head_hbm + (Index)0 * BC"),
    Fault("the same K again", "if (j + 1 < tiles) load_K(j + 1)", "load_K(j)", buffers=1),
    Fault(
        "rows past the end are left as they are",
        "copy_async(to_shared + n * HEAD_DIM * 2,",
        "if (row + n < rows) copy_async(to_shared + n * HEAD_DIM * 2,",
        {"nk": 50, "mask": {}},  # later tiles find what earlier ones left, which is finite
    ),
    # Places and fragments.
    Fault("V is read as if it were not swizzled", "V_shared + swizzled(lane() % 16, lane() / 16)",
          "V_shared + (lane() % 16 * CHUNKS + lane() / 16) * 16"),
    Fault("the next chunk is added", "(chunk_shared ^ n % 4 * 32)", "(chunk_shared + n % 4 * 32)"),
    Fault("V is not transposed", "ldmatrix_transposed(v,", "ldmatrix(v,"),
    Fault("keys change places", "swizzled(lane() % 8 + lane() / 16 * 8, lane() / 8 % 2)",
          "swizzled(lane() % 16, lane() / 16)"),
    Fault("columns of P change places", "pack(c[0], c[1])", "pack(c[1], c[0])"),
    Fault("rows of P change places", "part % 2 * 2;", "(1 - part % 2) * 2;"),
    # Masks, tails, heads.
    Fault("causal without the diagonal", "CAUSAL * row)", "CAUSAL * (row - 1))"),
    Fault("one key too many", "key >= seen +", "key > seen +", {"mask": {}}),
    Fault("a tile too few", "j < tiles;", "j < tiles - 1;"),
    Fault("tiles that the first row sees alone", "CAUSAL * (rows - 1)", "0"),
    Fault("no mask", "if (first_key + BC > seen)", "if (false)"),
    Fault("one hidden pair in a tile is seen", "if (first_key + BC > seen)",
          "if (first_key + BC > seen + 1)", {"nq": 128, "nk": 190}),
    Fault("aligned at the top left", "i * BR + seqlen_k - seqlen_q + 1", "i * BR + 1"),
    Fault("every head reads the first K and V", "kv_head_of[head]", "kv_head_of[0]"),
    Fault("a row too many", "if (row < rows)  // a row", "if (row < rows - 1)  // a row"),
    # Online softmax.
    Fault("O is not rescaled", "O[f][n][2 * half] *= alpha;", ""),
    Fault("l is not rescaled", "l[f][half] *= alpha;", ""),
    Fault("no maximum", "top = quad_max(top);", "top = 0.0f;"),
    Fault("the maximum of one lane", "top = quad_max(top);", ""),
    Fault("the sum of one lane", "quad_sum(l[f][half])", "l[f][half]"),
    Fault("-inf - -inf", "top == minus_infinity() ? 0.0f :", ""),
    Fault("LSE without l", "multiply_add(m[f][half], scale, logf(sum))", "m[f][half] * scale"),
)  # fmt: skip

FAULTY: dict[str, Any] = {
    "nq": 201, "nk": 170, "mask": {"causal": True}, "heads": 2, "kv_heads": 2,
}  # fmt: skip
"""Two row blocks, three column blocks, ragged tails, rows that see nothing, two KV heads."""


@pytest.mark.sweep(keep=1)
@needs_compiler
@pytest.mark.parametrize("fault", [None, *FAULTS], ids=lambda f: f.what if f else "none")
def test_a_planted_fault_is_found(fault: Fault | None) -> None:
    text = whole_source("flash2_mma")
    if fault:
        assert text.count(fault.old) == 1, f"{fault.old!r} is not in the kernel any more"
        text = text.replace(fault.old, fault.new)
    w, inputs = workload(**FAULTY | (fault.changes if fault else {}))
    found: list[str] = []
    for numbers, schedule in itertools.product((growing(inputs, w), inputs), SCHEDULES):
        try:
            left = run(w, numbers, schedule, buffers=fault.buffers if fault else 2, text=text)
            found = wrong(w, numbers, *left)
        except KernelError as error:
            found = [str(error)]
        if found:
            break
    assert bool(found) == bool(fault)


# --- limits and text ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dtype": "float32"}, "float32: it takes float16 and bfloat16"),
        ({"d": 96}, "d = 96, dv = 96: it takes d = dv = 64 or 128"),
        ({"d": 64, "dv": 128}, "d = 64, dv = 128: it takes"),
        ({"mask": {"window": 5}}, "window 5: it takes causal or no mask"),
        ({"mask": {"window": [5, -1]}}, r"window \[5, -1\]: it takes causal or no mask"),
        (
            {"nk": 192, "mask": {"causal": True, "align": "top-left"}},
            "a mask aligned at the top left",
        ),
    ],
)
def test_what_it_cannot_run(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(KernelError, match=f"the tensor-core kernel cannot run {message}"):
        check(workload(**changes)[0], Device())


def test_it_takes_no_mask_of_a_file() -> None:
    w = workload(d=64)[0]
    pairs = PairMask(np.ones((1, w.seqlen_q, w.seqlen_k), dtype=bool))
    with pytest.raises(KernelError, match="cannot run the mask of a file: it takes causal or no"):
        check(replace(w, mask=replace(w.mask, tensor=pairs)), Device())


class Device:
    """As much of a device as `check` looks at: a GPU with 48 KiB for a block."""

    shared_limit = 48 * 1024
    name = label = "a GPU"
    block_flops = blocks_at_once = 1

    upload = filled = download = module = forget = staticmethod(lambda *_: None)


def test_the_device_must_do() -> None:
    check(workload()[0], Device(), capability=80)
    with pytest.raises(KernelError, match="sm_75: its instructions came with sm_80"):
        check(workload()[0], Device(), capability=75)
    with pytest.raises(KernelError, match="d = 128 needs 96 KiB of shared memory, a block has 48"):
        check(workload(d=128)[0], Device())
    with pytest.raises(KernelError, match="algorithm naive: it computes flash2"):
        check(workload_of(scenario("naive", d=64, dtype="float16"))[0], Device())


@pytest.mark.parametrize("d", [64, 128])
@pytest.mark.parametrize("gpu", [g for g in gpus().values() if g.capability >= 8], ids=str)
def test_blocks_on_a_multiprocessor(gpu: Gpu, d: int) -> None:
    w, able = workload(d=d)[0], round(10 * gpu.capability)
    for warps, buffers in BUILDS.values():
        needs = BlockNeeds("flash2_mma", 32 * warps, shared_bytes(w, buffers), 255)
        assert resident(w, warps, buffers, able) == residency(needs, gpu).blocks
    best = most_resident(w, 4, able)
    assert resident(w, 4, best, able) == (1 if d == 128 and gpu.capability in (8.9, 12) else 2)
    assert best == (1 if (d, able) == (128, 80) else 2)


def test_every_op_has_its_lines() -> None:
    program = program_of(scenario("flash2", nq=8, rows=3, cols=2, mask={"causal": True}))
    names = {op.name for index in range(len(program)) for op in program.ops(index)}
    lines = anchors("flash2_mma")
    assert names - set(lines) <= {"clear"}
    text = source("flash2_mma").splitlines()
    assert all(re.search(r"\] Dao 2023", text[n - 1]) for found in lines.values() for n in found)
