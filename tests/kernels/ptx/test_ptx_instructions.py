"""Single instructions of PTX on the CPU, against integers of Python and against NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernels.cuda.engine import narrowed, widened
from kernels.devices.host.module import HostModule, ThreadSchedule
from kernels.errors import KernelError
from tests.kernels.helpers import SCHEDULES as ORDERS
from tests.kernels.helpers import needs_compiler
from tests.kernels.ptx.device import PtxDevice, needs_ptx
from tests.kernels.ptx.grammar import PtxError
from tests.kernels.ptx.translate import USUAL, Semantics, translated
from tests.kernels.warps import TOGETHER, check_matrices, check_product

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 memory[];\n"
KERNEL = """
.visible .entry kernel(.param .u64 x, .param .u64 y)
{
    .reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mov.u32 %r8, %tid.x;
    mul.wide.u32 %rd8, %r8, 16;
    add.s64 %rd1, %rd1, %rd8;
    add.s64 %rd2, %rd2, %rd8;
@LOADS@
@BODY@
    st.global.u64 [%rd2], %rd3;
    ret;
}
"""
EDGES = (0, 1, 2, 7, 31, 32, 33, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)


def kernel_of(body: str, loads: str = "", head: str = HEAD) -> str:
    return head + KERNEL.replace("@LOADS@", loads).replace("@BODY@", body)


LOADS = "\n".join(f"ld.global.u32 %r{n}, [%rd1+{4 * (n - 1)}];" for n in (1, 2, 3, 4))
WIDEN = "cvt.u64.u32 %rd3, %r5;"


def computed(
    opcode: str, operands: np.ndarray, count: int, semantics: Semantics = USUAL
) -> np.ndarray:
    """Return the 32 bits that an opcode makes of `count` operands in each of up to 1024 rows."""
    registers = ", ".join(["%r5", *(f"%r{n + 1}" for n in range(count))])
    code = kernel_of(f"{opcode} {registers};\n{WIDEN}", LOADS)
    given = np.zeros((len(operands), 4), np.uint32)
    given[:, :count] = operands
    found = np.zeros((len(operands), 2), np.uint64)
    module = HostModule(translated(code, semantics))
    module.get_function("kernel")((1,), (len(operands),), (given, found))
    return found[:, 0].astype(np.uint32)


def signed(x: int) -> int:
    return x - 2**32 if x >= 2**31 else x


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def permuted(a: int, b: int, selector: int) -> int:
    bytes_ = a.to_bytes(4, "little") + b.to_bytes(4, "little")
    chosen = [selector >> 4 * n & 15 for n in range(4)]
    picked = [bytes_[c & 7] if c < 8 else 255 * (bytes_[c & 7] >> 7) for c in chosen]
    return int.from_bytes(bytes(picked), "little")


def inserted(a: int, b: int, at: int, count: int) -> int:
    at, count = at & 255, count & 255
    mask = ((1 << count) - 1) << at
    return b & ~mask | a << at & mask


INTEGERS: dict[str, tuple[int, Callable[..., int]]] = {
    "add.s32": (2, lambda a, b: a + b),
    "sub.u32": (2, lambda a, b: a - b),
    "mul.lo.s32": (2, lambda a, b: a * b),
    "mul.hi.u32": (2, lambda a, b: a * b >> 32),
    "mul.hi.s32": (2, lambda a, b: signed(a) * signed(b) >> 32),
    "mad.lo.s32": (3, lambda a, b, c: a * b + c),
    "div.s32": (2, lambda a, b: truncated(signed(a), signed(b)) if b else 0),
    "rem.s32": (2, lambda a, b: signed(a) - signed(b) * truncated(signed(a), signed(b))),
    "min.s32": (2, lambda a, b: min(signed(a), signed(b))),
    "max.u32": (2, max),
    "neg.s32": (1, lambda a: -a),
    "abs.s32": (1, lambda a: abs(signed(a))),
    "shl.b32": (2, lambda a, b: a << b if b < 32 else 0),
    "shr.u32": (2, lambda a, b: a >> b if b < 32 else 0),
    "shr.s32": (2, lambda a, b: signed(a) >> min(b, 31)),
    "and.b32": (2, lambda a, b: a & b),
    "or.b32": (2, lambda a, b: a | b),
    "xor.b32": (2, lambda a, b: a ^ b),
    "not.b32": (1, lambda a: ~a),
    "prmt.b32": (3, permuted),
    "bfi.b32": (4, inserted),
}


@needs_compiler
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("opcode", INTEGERS)
def test_integers(opcode: str) -> None:
    count, exact = INTEGERS[opcode]
    rng = np.random.default_rng(1)
    operands = rng.choice(np.array(EDGES, np.uint32), (200, count))
    operands = np.concatenate([operands, rng.integers(0, 2**32, (200, count), dtype=np.uint32)])
    if opcode.startswith(("div", "rem")):
        operands[:, 1] |= 1
    want = [exact(*map(int, row)) & (2**32 - 1) for row in operands]
    np.testing.assert_array_equal(computed(opcode, operands, count), np.array(want, np.uint32))


def bits(x: Any) -> np.ndarray:
    return np.asarray(x, np.float32).view(np.uint32)


def flushed(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 2.0**-126, np.copysign(np.float32(0), x), x).astype(np.float32)


TINY = np.float32(2.0**-140)
SPECIAL = np.array([0, -0.0, 1, -1, TINY, -TINY, np.inf, -np.inf, np.nan, 3e38, 2.0**-126], "f4")
FLOATS: dict[str, tuple[int, Callable[..., Any]]] = {
    "add.rn": (2, np.add),
    "sub.rn": (2, np.subtract),
    "mul.rn": (2, np.multiply),
    "div.rn": (2, np.divide),
    "sqrt.rn": (1, np.sqrt),
    "max": (2, np.fmax),
    "min": (2, np.fmin),
}


@needs_compiler
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("opcode", FLOATS)
@pytest.mark.parametrize("ftz", [True, False])
def test_floats_with_and_without_numbers_below_the_normal_ones(opcode: str, ftz: bool) -> None:
    count, exact = FLOATS[opcode]
    rng = np.random.default_rng(2)
    pairs = np.concatenate([
        np.stack(np.meshgrid(SPECIAL, SPECIAL), -1).reshape(-1, 2),
        np.ldexp(rng.standard_normal((200, 2)), rng.integers(-140, 120, (200, 2))),
    ]).astype(np.float32)  # fmt: skip
    operands = flushed(pairs) if ftz else pairs
    with np.errstate(all="ignore"):
        want = exact(*operands.T[:count]).astype(np.float32)
    want = flushed(want) if ftz else want
    said = f"{opcode}.ftz.f32" if ftz else f"{opcode}.f32"
    got = computed(said, bits(pairs[:, :count]), count)
    lost = np.isnan(want)
    np.testing.assert_array_equal(got[lost], 0x7FFFFFFF)  # the one NaN that a GPU makes
    np.testing.assert_array_equal(got[~lost] & 0x7FFFFFFF, bits(want[~lost]) & 0x7FFFFFFF)
    if opcode not in ("max", "min"):  # of 0 and -0 NumPy returns either
        np.testing.assert_array_equal(got[~lost], bits(want[~lost]))
    ignored = computed(said, bits(pairs[:, :count]), count, Semantics(flushes=False))
    with np.errstate(all="ignore"):
        kept = exact(*pairs.T[:count]).astype(np.float32)
    np.testing.assert_array_equal(
        ignored[~np.isnan(kept)] & 0x7FFFFFFF, bits(kept[~np.isnan(kept)]) & 0x7FFFFFFF
    )


@needs_compiler
def test_a_product_and_a_sum_rounded_once_and_down() -> None:
    rng = np.random.default_rng(3)
    x = np.ldexp(rng.standard_normal((500, 3)), rng.integers(-12, 12, (500, 3))).astype("f4")
    nearest = computed("fma.rn.ftz.f32", bits(x), 3).view(np.float32)
    below = computed("fma.rm.ftz.f32", bits(x), 3).view(np.float32)
    for row, near, down in zip(x, nearest, below, strict=True):
        (a, p), (b, q), (c, r) = (float(each).as_integer_ratio() for each in row)
        top, bottom = a * b * r + c * p * q, p * q * r  # of the sum, exactly
        beside = (np.nextafter(near, np.float32(way)) for way in (-np.inf, np.inf))
        error, *others = (_distance(top, bottom, each) for each in (near, *beside))
        assert error <= min(others)
        m, n = float(down).as_integer_ratio()
        assert m * bottom <= top * n
        m, n = float(np.nextafter(down, np.inf, dtype="f4")).as_integer_ratio()
        assert m * bottom > top * n


def _distance(top: int, bottom: int, x: Any) -> float:
    m, n = float(x).as_integer_ratio()
    return abs(top * n - m * bottom) / (bottom * n)


@needs_compiler
def test_an_approximation_is_off_by_as_many_units_as_are_asked_for() -> None:
    x = np.linspace(-40, 40, 1000, dtype=np.float32)
    exact = np.exp2(x.astype(np.float64))
    unit = np.exp2(np.floor(np.log2(exact)) - 23)
    for ulps in (0, 2):
        semantics = Semantics(exponential_ulps=ulps)
        got = computed("ex2.approx.ftz.f32", bits(x)[:, None], 1, semantics).view(np.float32)
        off = np.abs(got - exact) / unit
        assert off.max() <= ulps + 0.51
        assert (off.max() > 1) == (ulps == 2)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_conversions_to_and_from_two_bytes(dtype: str) -> None:
    rng = np.random.default_rng(4)
    x = np.ldexp(rng.standard_normal(990), rng.integers(-26, 17, 990)).astype(np.float32)
    halves = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 65519, 65520, 2.0**-25, 1 + 2.0**-8], "f4")
    x = np.concatenate([x, halves, -halves[:2]])
    pairs = np.stack([bits(x[::-1]), bits(x)], 1)
    name = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    got = computed(f"cvt.rn.{name}x2.f32", pairs, 2)
    if dtype == "float16":
        with np.errstate(over="ignore"):
            want = x.astype(np.float16).view(np.uint16)
    else:  # half of the last place is added, a little less where that place is even
        want = (bits(x) + 0x7FFF + (bits(x) >> 16 & 1) >> 16).astype(np.uint16)
    np.testing.assert_array_equal(got & 0xFFFF, want)
    np.testing.assert_array_equal(got >> 16, want[::-1])
    if dtype == "float16":
        all_ = np.arange(2**16, dtype=np.uint16)
        narrow = "{ .reg .b16 half; cvt.u16.u32 half, %r1; cvt.f32.f16 %r5, half; }"
        code = HostModule(translated(kernel_of(narrow + WIDEN, LOADS)))
        given, found = np.zeros((1024, 4), np.uint32), np.zeros((1024, 2), np.uint64)
        for first in range(0, 2**16, 1024):
            given[:, 0] = all_[first : first + 1024]
            code.get_function("kernel")((1,), (1024,), (given, found))
            exact = widened(all_[first : first + 1024], dtype)
            made = found[:, 0].astype(np.uint32).view(np.float32)
            np.testing.assert_array_equal(made, exact)


@pytest.mark.sweep(keep=1)
@needs_compiler
@pytest.mark.parametrize(
    ("compared", "true"),
    [("eq", 1), ("ne", 2), ("lt", 2), ("gt", 0), ("equ", 5), ("neu", 6), ("ltu", 6), ("geu", 5),
     ("num", 3), ("nan", 4)],
)  # fmt: skip
def test_comparisons_with_nan(compared: str, true: int) -> None:
    """Bits of `true`: 1 = 1, 1 and 2, 1 and NaN."""
    pairs = bits([[1, 1], [1, 2], [1, np.nan]])
    code = f"setp.{compared}.ftz.f32 %p1, %r1, %r2;\nselp.u32 %r5, 1, 0, %p1;\n{WIDEN}"
    found = np.zeros((3, 2), np.uint64)
    given = np.zeros((3, 4), np.uint32)
    given[:, :2] = pairs
    HostModule(translated(kernel_of(code, LOADS))).get_function("kernel")(
        (1,), (3,), (given, found)
    )
    assert [int(each) for each in found[:, 0]] == [true >> n & 1 for n in range(3)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("tanh.approx.f32 %r1, %r2;", "line 16 of the PTX, `tanh.approx.f32 %r1, %r2`: this form"),
        ("@!%p1 add.rz.f32 %r1, %r2, %r2;", "`@!%p1 add.rz.f32 %r1, %r2, %r2`: this form"),
        ("add.s32 %r1, %r2;", "operand 'b' is missing"),
        ("mov.u32 %r1, %clock;", "operand %clock is not known"),
        ("add.s32 %r1, %q1, 1;", "operand %q1 is not known"),
        (
            "ld.global.u32 %r1, [%rd1+%r2];",
            "`ld.global.u32 %r1, [%rd1+%r2]`: [%rd1+%r2] is no address",
        ),
        ("ld.global.v2.u32 %r1, [%rd1];", "expected a register for each number"),
        ("ld.param.u64 %rd1, [z];", "the kernel has no parameter z"),
        (".local .b8 depot[16];", "`.local .b8 depot[16]`: a directive that is not known"),
    ],
)
def test_what_is_not_known_is_refused_with_its_line(body: str, message: str) -> None:
    with pytest.raises(PtxError) as refused:
        translated(kernel_of(body))
    assert message in str(refused.value)


def test_what_stands_outside_of_kernels_is_refused() -> None:
    with pytest.raises(PtxError, match=r"outside of kernels, `\.global"):
        translated(kernel_of("", head=HEAD + ".global .b8 table[4];\n"))


@pytest.mark.sweep(keep=1)
@needs_compiler
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("st.shared.u32 [memory+64], %r8;", "4 bytes at shared address 0x40 lie outside"),
        ("ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [memory+56];", "not a multiple of 16"),
        ("st.shared.u32 [%r8+2], %r8;", "shared address 0x2 is not a multiple of 4"),
        ("ld.global.u64 %rd3, [%rd1+4];", "global address .* is not a multiple of 8"),
        ("mov.u64 %rd1, 8; ld.global.u64 %rd3, [%rd1];", "global address 0x8 lie outside"),
        ("mov.u32 %r1, 0; div.s32 %r1, 1, %r1;", "a division by zero"),
        ("bar.sync 1;", "barrier 1, where kernels use 0 alone"),
        ("shfl.sync.bfly.b32 %r1, %r8, 1, 31, 1;", "lane 0 reads lane 1, which does not take part"),
    ],
)
def test_what_a_gpu_would_not_forgive(body: str, message: str) -> None:
    x = np.zeros((1, 2), np.uint64)
    kernel = HostModule(translated(kernel_of(body))).get_function("kernel")
    with pytest.raises(KernelError, match=message):
        kernel((1,), (1,), (x, x.copy()), shared_mem=64)


# --- what a warp does together, as NVRTC makes it of the project's own functions ---------------

OPTIONS = tuple(
    f"-D{name}={value}"
    for name, value in {"BR": 128, "BC": 64, "HEAD_DIM": 64, "VALUE_DIM": 64, "WARPS": 4}.items()
)


def together(dtype: str, schedule: ThreadSchedule, semantics: Semantics = USUAL) -> HostModule:
    element = {"float16": 1, "bfloat16": 2}[dtype]
    device = PtxDevice("compute_80", schedule, semantics)
    return device.module(TOGETHER, (*OPTIONS, f"-DELEMENT={element}"))


@pytest.mark.sweep(keep=1)
@needs_ptx
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("schedule", ORDERS, ids=lambda s: s.order.name)
@pytest.mark.parametrize("truncates", [False, True])
def test_mma_multiplies_matrices(dtype: str, schedule: ThreadSchedule, truncates: bool) -> None:
    module = together(dtype, schedule, Semantics(truncates=truncates))
    check_product(module.get_function("product_of"), dtype)


@needs_ptx
@pytest.mark.parametrize("schedule", ORDERS, ids=lambda s: s.order.name)
def test_ldmatrix_deals_rows_out(schedule: ThreadSchedule) -> None:
    check_matrices(together("float16", schedule).get_function("matrices"))


@needs_ptx
def test_truncating_sums_lose_what_rounding_keeps() -> None:
    """1 and 16 products of 3/8 of its last place: rounded, all of them count; cut off, none."""
    a = np.full((32, 8), narrowed(np.float32(2.0**-12), "float16"), np.uint16)
    b = np.full((32, 4), narrowed(np.float32(1.5 * 2.0**-13), "float16"), np.uint16)
    found = []
    for truncates in (False, True):
        c = np.ones((32, 4), np.float32)
        module = together("float16", ORDERS[0], Semantics(truncates=truncates))
        module.get_function("product_of")((1,), (32,), (a.view(np.uint32), b.view(np.uint32), c))
        found.append(set(c.ravel()))
    assert found == [{np.float32(1 + 16 * 0.75 * 2.0**-24)}, {np.float32(1)}]
