"""The forms of instructions that are known, each with the C++ that does the same.

A row of `FORMS` is a pattern of whole opcodes and a template. In a template ``{d}``, ``{a}``,
``{b}``, ``{c}``, ``{e}`` are the operands in their order, ``{rest}`` all but the first, and
``{line}`` is the line of the PTX; ``{T}`` is the C++ type of the opcode's last part, ``{bits}``
that of a register for it; other names are the groups of the pattern. What needs more than a
template is a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Protocol

from tests.kernels.ptx.grammar import Instruction


class Places(Protocol):
    """Where the operands of a kernel are."""

    def value(self, operand: str, at: Instruction) -> str:
        """Return the C++ that reads or names an operand."""

    def address(self, operand: str, at: Instruction) -> str:
        """Return the C++ of an address in brackets."""

    def parameter(self, operand: str, at: Instruction) -> str:
        """Return the C++ of a kernel's parameter in brackets."""


Template = str | Callable[[Instruction, re.Match[str], Places], str]

_INT = r"(?P<type>[us](?:16|32|64))"
_BITS = r"(?P<type>b(?:16|32|64))"
_F32 = r"\.(?P<ftz>ftz\.)?(?P<type>f32)"
_ANY = r"(?P<type>pred|[usb](?:8|16|32|64)|f32)"
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
             "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}  # fmt: skip
_LAST = re.compile(r"(pred|[usbf]\d+)$")


def type_of(name: str) -> str:
    """Return the C++ type of a type of PTX; that of a float is its bits."""
    return "bool" if name == "pred" else name.replace("b", "u").replace("f", "u")


def bits_of(name: str) -> str:
    """Return the C++ type of a register that holds a type of PTX."""
    return "bool" if name == "pred" else f"u{max(16, int(name[1:]))}"


def listed(operand: str) -> list[str]:
    """Return the operands between braces, or the one that stands alone."""
    return [each.strip() for each in operand.strip("{} ").split(",")]


# --- what needs more than a template ------------------------------------------------------------


def _move(at: Instruction, match: re.Match[str], places: Places) -> str:
    """Move a register, take one apart, or join two, the first one lower."""
    d, a = at.operands
    half = f"u{int(match['type'][1:]) // 2}" if match["type"] != "pred" else ""
    if d.startswith("{"):
        low, high = (places.value(each, at) for each in listed(d))
        shift = half[1:]
        kept = f"const auto whole = {places.value(a, at)}; "
        parts = [(low, "whole"), (high, f"whole >> {shift}")]
        # A name that was declared and is not used needs no assignment, but harms nobody.
        return kept + " ".join(f"{name} = {half}({part});" for name, part in parts)
    if a.startswith("{"):
        low, high = (places.value(each, at) for each in listed(a))
        whole = type_of(match["type"])
        return f"{places.value(d, at)} = {whole}({whole}({high}) << {half[1:]} | {half}({low}));"
    return f"{places.value(d, at)} = {bits_of(match['type'])}({places.value(a, at)});"


def _place(space: str, bytes_: int, address: str, line: int) -> str:
    window = "window, " if space == "shared" else ""
    return f"{space}<{bytes_}>({window}{address}, {line})"


def _load(at: Instruction, match: re.Match[str], places: Places) -> str:
    """Load one to four numbers; a narrow one is widened to its register, with its sign."""
    type_, registers = type_of(match["type"]), listed(at.operands[0])
    size = int(type_[1:]) // 8
    _expect(at, len(registers) == int(match["count"] or 1), "a register for each number")
    place = _place(
        match["space"], size * len(registers), places.address(at.operands[1], at), at.line
    )
    return f"const unsigned char* const place = {place}; " + " ".join(
        f"{places.value(each, at)} = load<{type_}>(place + {n * size});"
        for n, each in enumerate(registers)
    )


def _store(at: Instruction, match: re.Match[str], places: Places) -> str:
    type_, values = type_of(match["type"]), listed(at.operands[1])
    size = int(type_[1:]) // 8
    _expect(at, len(values) == int(match["count"] or 1), "a register for each number")
    place = _place(match["space"], size * len(values), places.address(at.operands[0], at), at.line)
    return f"unsigned char* const place = {place}; " + " ".join(
        f"store(place + {n * size}, {type_}({places.value(each, at)}));"
        for n, each in enumerate(values)
    )


def _atomic(at: Instruction, match: re.Match[str], places: Places) -> str:
    type_ = type_of(match["type"])
    names = {"add": f"atomic_add<{type_}>", "or": f"atomic_or<{type_}>",
             "exch": f"atomic_exchange<{type_}>"}  # fmt: skip
    name = (
        "atomic_add_f32" if (match["op"], match["type"]) == ("add", "f32") else names[match["op"]]
    )
    put = f"{places.value(at.operands[0], at)} = " if match["what"] == "atom" else ""
    address, value = at.operands[-2:]
    place = _place(match["space"], int(type_[1:]) // 8, places.address(address, at), at.line)
    return f"{put}{name}({place}, {places.value(value, at)});"


def _copy(at: Instruction, match: re.Match[str], places: Places) -> str:
    to, start = (places.address(each, at) for each in at.operands[:2])
    _expect(at, at.operands[2] == "16", "cp.async of 16 bytes")
    read = places.value(at.operands[3], at) if len(at.operands) > 3 else "16"
    return f"copy_async({_place('shared', 16, to, at.line)}, {start}, {read}, {at.line});"


def _shuffle(at: Instruction, match: re.Match[str], places: Places) -> str:
    way = {"up": "UP", "down": "DOWN", "bfly": "BUTTERFLY", "idx": "INDEX"}[match["way"]]
    d, _, predicate = at.operands[0].partition("|")
    others = ", ".join(places.value(each, at) for each in at.operands[1:])
    put = f" {places.value(predicate, at)} = inside;" if predicate else ""
    return f"bool inside; {places.value(d, at)} = shuffle<{way}>({others}, {at.line}, inside);{put}"


def _matrices(at: Instruction, match: re.Match[str], places: Places) -> str:
    registers, count = listed(at.operands[0]), int(match["count"])
    _expect(at, len(registers) == count, "a register for each matrix")
    turned = "true" if match["trans"] else "false"
    row = places.address(at.operands[1], at)
    return (
        f"u32 found[{count}]; load_matrices<{count}, {turned}>(found, window, {row}, {at.line}); "
        + (" ".join(f"{places.value(each, at)} = found[{n}];" for n, each in enumerate(registers)))
    )


def _multiply(at: Instruction, match: re.Match[str], places: Places) -> str:
    d, *others = (listed(each) for each in at.operands)
    _expect(at, [len(d), *map(len, others)] == [4, 4, 2, 4], "4, 4, 2 and 4 registers")
    given = " ".join(
        f"const u32 {name}[{len(each)}] = {{{', '.join(places.value(x, at) for x in each)}}};"
        for name, each in zip(("a_", "b_", "c_"), others, strict=True)
    )
    bfloat = "true" if match["dtype"] == "bf16" else "false"
    return f"{given} u32 d_[4]; multiply<{bfloat}>(d_, a_, b_, c_, {at.line}); " + " ".join(
        f"{places.value(each, at)} = d_[{n}];" for n, each in enumerate(d)
    )


def _compare(at: Instruction, match: re.Match[str], places: Places) -> str:
    """Compare; of floats `ne` and its kin are false with NaN, `neu` and its kin are true."""
    d, a, b = (places.value(each, at) for each in at.operands[:3])
    how, type_ = match["how"], match["type"]
    if type_ != "f32":
        cast = type_of(type_)
        found = f"{cast}({a}) {_COMPARED[how]} {cast}({b})"
    else:
        ftz = "true" if match["ftz"] else "false"
        x, y, lost = (f"operand<{ftz}>({a})", f"operand<{ftz}>({b})", f"unordered<{ftz}>({a}, {b})")
        if how in ("num", "nan"):
            found = f"!{lost}" if how == "num" else lost
        elif how.endswith("u"):
            found = f"{lost} || {x} {_COMPARED[how[:-1]]} {y}"
        else:
            found = f"!{lost} && {x} {_COMPARED[how]} {y}"
    if match["with"]:
        sign = {"and": "&&", "or": "||", "xor": "!="}[match["with"]]
        return f"{d} = ({found}) {sign} {places.value(at.operands[3], at)};"
    return f"{d} = {found};"


def _expect(at: Instruction, right: bool, what: str) -> None:
    if not right:
        raise at.refused(f"expected {what}")


# --- the table ------------------------------------------------------------------------------------


def _float(name: str, *operands: str) -> str:
    return f"{{d}} = {name}_f32<{{flush}}>({', '.join(f'{{{each}}}' for each in operands)});"


FORMS: tuple[tuple[str, Template], ...] = (
    # Where to go on.
    (r"bra(\.uni)?", "goto {d};"),
    (r"ret|exit", "return;"),
    (r"bar(rier)?\.sync(\.aligned)?", "barrier({d}, {line});"),
    (r"bar\.warp\.sync", 'host::warp_barrier({d}, "bar.warp.sync", {line});'),
    (r"membar\.(cta|gl)|fence\.(acq_rel|sc)\.(cta|gpu)", "__threadfence();"),
    (r"nanosleep\.u32", ""),
    # Registers and memory.
    (rf"mov\.{_ANY}", _move),
    (r"cvta(\.to)?\.(global|shared)\.u64", "{d} = {a};"),
    (rf"ld\.param\.{_ANY}", lambda at, _, places: (
        f"{places.value(at.operands[0], at)} = {places.parameter(at.operands[1], at)};")),
    (rf"ld(\.volatile|\.(relaxed|acquire)\.(cta|gpu))?\.(?P<space>global|shared)(\.nc)?"
     rf"(\.v(?P<count>[24]))?\.{_ANY}", _load),
    (rf"st(\.volatile|\.(relaxed|release)\.(cta|gpu))?\.(?P<space>global|shared)"
     rf"(\.v(?P<count>[24]))?\.{_ANY}", _store),
    (r"(?P<what>atom|red)(\.(relaxed|acquire|release|acq_rel)\.gpu)?\.(?P<space>global|shared)"
     r"\.(?P<op>add)\.(?P<type>f32|u32|u64|s32)", _atomic),
    (r"(?P<what>atom|red)(\.(relaxed|acquire|release|acq_rel)\.gpu)?\.(?P<space>global|shared)"
     r"\.(?P<op>or|exch)\.(?P<type>b32|b64)", _atomic),
    (r"cp\.async\.cg\.shared\.global(\.L2::(64|128|256)B)?", _copy),
    (r"cp\.async\.commit_group", "commit_group();"),
    (r"cp\.async\.wait_group", "wait_group({d});"),
    # A warp together.
    (r"shfl\.sync\.(?P<way>up|down|bfly|idx)\.b32", _shuffle),
    (r"ldmatrix\.sync\.aligned\.m8n8\.x(?P<count>[124])(?P<trans>\.trans)?\.shared\.b16",
     _matrices),
    (r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.(?P<dtype>f16|bf16)\.(?P=dtype)\.f32",
     _multiply),
    # Integers.
    (rf"(?P<name>add|sub)\.{_INT}", "{d} = {name}<{T}>({a}, {b});"),
    (rf"(?P<name>mul|mad)\.lo\.{_INT}", "{d} = {name}_lo<{T}>({rest});"),
    (rf"(?P<name>mul|mad)\.wide\.{_INT}", "{d} = {name}_wide<{T}>({rest});"),
    (rf"mul\.hi\.{_INT}", "{d} = mul_hi<{T}>({a}, {b});"),
    (rf"(?P<name>div|rem)\.{_INT}", "{d} = {name}<{T}>({a}, {b}, {line});"),
    (rf"(?P<name>min|max)\.{_INT}", "{d} = {name}<{T}>({a}, {b});"),
    (rf"(?P<name>neg|abs)\.{_INT}", "{d} = {name}<{T}>({a});"),
    (rf"shl\.{_BITS}", "{d} = shl<{T}>({a}, {b});"),
    (r"shr\.(?P<type>[usb](16|32|64))", "{d} = shr<{T}>({a}, {b});"),
    (r"(?P<name>and|or|xor)\.(?P<type>pred|b(16|32|64))", "{d} = bits_{name}<{T}>({a}, {b});"),
    (r"not\.(?P<type>pred|b(16|32|64))", "{d} = bits_not<{T}>({a});"),
    (r"lop3\.b32", "{d} = lop3({a}, {b}, {c}, {e});"),
    (r"prmt\.b32", "{d} = prmt({a}, {b}, {c});"),
    (r"bfi\.b32", "{d} = bfi({a}, {b}, {c}, {e});"),
    # Floats.
    (rf"(?P<name>add|sub|mul)(\.rn)?{_F32}", _float("{name}", "a", "b")),
    (rf"div\.rn{_F32}", _float("div", "a", "b")),
    (rf"fma\.rn{_F32}", _float("fma", "a", "b", "c")),
    (rf"fma\.rm{_F32}", _float("fma_down", "a", "b", "c")),
    (rf"(?P<name>sqrt|rcp)\.rn{_F32}", _float("{name}", "a")),
    (rf"rcp\.approx{_F32}", _float("rcp_approx", "a")),
    (rf"ex2\.approx{_F32}", _float("ex2", "a")),
    (rf"(?P<name>neg|abs){_F32}", _float("{name}", "a")),
    (rf"(?P<name>min|max){_F32}", _float("{name}", "a", "b")),
    (r"copysign\.f32", "{d} = copysign_f32({a}, {b});"),
    # Conversions.
    (r"cvt\.(?P<ftz>ftz\.)?sat\.f32\.f32", _float("saturated", "a")),
    (r"cvt\.f32\.f16", "{d} = from_half({a});"),
    (r"cvt\.rn\.f16\.f32", "{d} = to_half({a});"),
    (r"cvt\.rn\.bf16\.f32", "{d} = to_bfloat({a});"),
    (r"cvt\.rn\.f16x2\.f32", "{d} = u32(to_half({a})) << 16 | to_half({b});"),
    (r"cvt\.rn\.bf16x2\.f32", "{d} = u32(to_bfloat({a})) << 16 | to_bfloat({b});"),
    (r"cvt\.rn\.f32\.(?P<from>[us]32)", "{d} = packed(float({from}({a})));"),
    (r"cvt\.(?P<to>[us](16|32|64))\.(?P<from>[us](8|16|32|64))", "{d} = {to}({from}({a}));"),
    # Comparisons and choices.
    (r"setp\.(?P<how>[a-z]+)(\.(?P<with>and|or|xor))?\.(?P<ftz>ftz\.)?"
     r"(?P<type>[usb](16|32|64)|f32)", _compare),
    (rf"selp\.{_ANY}", "{d} = {c} ? {bits}({a}) : {bits}({b});"),
)  # fmt: skip
"""Patterns of whole opcodes, each with the C++ of its instructions."""

_COMPILED = tuple((re.compile(pattern), template) for pattern, template in FORMS)
_NAMES = ("d", "a", "b", "c", "e")


def carried_out(at: Instruction, places: Places) -> str:
    """Return the C++ of one instruction, without its guard.

    Raises PtxError: its form is not in the table.
    """
    found = _form(at.opcode)
    if found is None:
        raise at.refused("this form of instruction is not known")
    template, match = found
    if not isinstance(template, str):
        return template(at, match, places)
    values = [places.value(each, at) for each in at.operands]
    groups = {name: text or "" for name, text in match.groupdict().items()}
    last = _LAST.search(at.opcode)
    type_ = last[1] if last else "b32"
    try:
        return template.format(
            **groups, **dict(zip(_NAMES, values, strict=False)), T=type_of(type_),
            bits=bits_of(type_), rest=", ".join(values[1:]), line=at.line,
            flush="true" if ".ftz" in at.opcode else "false",
        )  # fmt: skip
    except KeyError as missing:
        raise at.refused(f"operand {missing} is missing") from None


@cache
def _form(opcode: str) -> tuple[Template, re.Match[str]] | None:
    """Return what the table says of an opcode, and what its pattern found in it."""
    for pattern, template in _COMPILED:
        if match := pattern.fullmatch(opcode):
            return template, match
    return None
