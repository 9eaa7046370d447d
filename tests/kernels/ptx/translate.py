"""PTX, as NVRTC makes it of a kernel, into C++ that the host engine compiles and runs.

Each thread becomes a fiber of kernels/devices/host, each instruction a statement by itself: what is
tested is what NVRTC made of the source. Registers begin with a pattern that is NaN as a float.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.kernels.ptx.grammar import Instruction, Item, Kernel, Label, Module, Registers, parsed
from tests.kernels.ptx.opcodes import bits_of, carried_out

HERE = Path(__file__).parent
_BEFORE = ("numbers.h", "machine.h")
_UNSET = {"bool": "false", "u16": "0xfeed", "u32": "0x7fbadbad", "u64": "0xdeaddeaddeaddeadull"}
_SPECIAL = {
    f"%{theirs}.{axis}": f"{ours}.{axis}"
    for theirs, ours in (
        ("tid", "threadIdx"), ("ctaid", "blockIdx"), ("ntid", "blockDim"), ("nctaid", "gridDim")
    )
    for axis in "xyz"
} | {"%laneid": "u32(host::block->running->lane)"}  # fmt: skip
_NUMBER = re.compile(r"-?\d+|0[xX][0-9A-Fa-f]+U?")
_FLOAT = re.compile(r"0[fF]([0-9A-Fa-f]{8})")
_ADDRESS = re.compile(r"\[\s*([%\w$]+)\s*(?:\+\s*(-?\d+))?\s*\]")
_IN_A_LINE = 40


@dataclass(frozen=True, slots=True)
class Semantics:
    """What a GPU is free to do, or does where the PTX says so."""

    # whether ``.ftz`` is obeyed: numbers below the normal ones are zero, read and written
    flushes: bool = True
    # units in the last place that ex2.approx may be off; NVIDIA states at most 2
    exponential_ulps: int = 0
    # whether sums of tensor cores are cut off, as has been measured, and not rounded
    truncates: bool = False
    # of the C++ compiler. 0 takes the least time in all for what tests launch: a kernel compiles in
    # half a second instead of three, and runs three times as long
    optimise: int = 0


USUAL = Semantics()


class _Places:
    """The operands of a kernel in a module."""

    def __init__(self, module: Module, kernel: Kernel) -> None:
        self._module = module
        self._parameters = {name for _, name in kernel.parameters}
        self._labels = {item.name for item in kernel.body if isinstance(item, Label)}
        declared = [item for item in kernel.body if isinstance(item, Registers)]
        self._single = {item.name for item in declared if item.count is None}
        self._many = {item.name for item in declared if item.count is not None}

    def value(self, operand: str, at: Instruction) -> str:
        if operand in _SPECIAL:
            return _SPECIAL[operand]
        if number := _FLOAT.fullmatch(operand):
            return f"0x{number[1]}u"
        if _NUMBER.fullmatch(operand):
            return operand if operand.endswith("U") else f"{operand}ll"
        if operand in self._module.dynamic:
            return "u64(0)"
        if operand in self._module.fixed:
            return f"(FIXED + {self._module.fixed[operand]})"
        prefix = operand.rstrip("0123456789")
        if operand in self._labels or operand in self._single or prefix in self._many:
            return named(operand)
        raise at.refused(f"operand {operand} is not known")

    def address(self, operand: str, at: Instruction) -> str:
        found = _ADDRESS.fullmatch(operand)
        if found is None:
            raise at.refused(f"{operand} is no address")
        base = f"u64({self.value(found[1], at)})"
        return f"{base} + {found[2]}ll" if found[2] else base

    def parameter(self, operand: str, at: Instruction) -> str:
        name = operand.strip("[] ")
        if name not in self._parameters:
            raise at.refused(f"the kernel has no parameter {name}")
        return name


def named(name: str) -> str:
    """Return the C++ name of a register or a label."""
    return "r_" + name.lstrip("%").replace("$", "_")


def translated(ptx: str, semantics: Semantics = USUAL) -> str:
    """Return the C++ of PTX, for `kernels.devices.host.module.HostModule`.

    Raises PtxError: an instruction, an operand or a directive is not known; the message names its
        line.
    """
    module = parsed(ptx)
    options = {
        "FLUSHES": str(semantics.flushes).lower(),
        "EXPONENTIAL_ULPS": str(semantics.exponential_ulps),
        "TRUNCATES": str(semantics.truncates).lower(),
    }
    texts = [(HERE / name).read_text(encoding="utf-8") for name in _BEFORE]
    return "\n".join(
        [
            f'#pragma GCC optimize("O{semantics.optimise}")',
            *(f"#define {name} {value}" for name, value in options.items()),
            *(re.sub(r'#pragma once|#include "[^"]*"', "", text) for text in texts),
            "using namespace ptx;",
            *(line for kernel in module.kernels for line in _kernel(module, kernel)),
            "",
        ]
    )


def _kernel(module: Module, kernel: Kernel) -> Iterator[str]:
    parameters = ", ".join(f"{bits_of(type_)} {name}" for type_, name in kernel.parameters)
    yield f'extern "C" __global__ void {kernel.name}({parameters})'
    yield "{"
    yield "extern __shared__ __align__(16) unsigned char shared_memory[];"
    yield f"__shared__ __align__(16) unsigned char fixed_memory[{max(1, module.fixed_bytes)}];"
    yield f"const Window window = {{shared_memory, fixed_memory, {module.fixed_bytes}}};"
    yield "(void)window;"
    places = _Places(module, kernel)
    for item in kernel.body:
        yield from _item(item, places)
    yield "}"


def _item(item: Item, places: _Places) -> Iterator[str]:
    if isinstance(item, Registers):
        yield from _declared(item)
    elif isinstance(item, Label):
        yield f"{named(item.name)}:;"
    elif isinstance(item, Instruction):
        code = f"{{ {carried_out(item, places)} }}"
        if item.guard:
            negated = "!" if item.guard.startswith("!") else ""
            code = f"if ({negated}{named(item.guard.lstrip('!'))}) {code}"
        yield code
    else:
        yield item.brace


def _declared(registers: Registers) -> Iterator[str]:
    type_, name = bits_of(registers.type), named(registers.name)
    names = [name] if registers.count is None else [f"{name}{n}" for n in range(registers.count)]
    for first in range(0, len(names), _IN_A_LINE):
        some = names[first : first + _IN_A_LINE]
        yield f"{type_} " + ", ".join(f"{each} = {_UNSET[type_]}" for each in some) + ";"
