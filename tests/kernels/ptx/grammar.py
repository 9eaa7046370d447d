"""PTX as text, taken apart: kernels, their parameters, registers and instructions.

It knows the directives that NVRTC writes for the project's kernels and refuses all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMMENT = re.compile(r"//[^\n]*")
_KERNEL = re.compile(
    r"\.visible\s+\.entry\s+(?P<name>\w+)\s*\((?P<parameters>[^)]*)\)\s*"
    r"(?:\.(?:maxntid|reqntid|minnctapersm|maxnreg)\s+[\d, ]+\s*)*\{"
)
_PARAMETER = re.compile(
    r"\.param\s+\.(?P<type>\w+)(?:\s+\.ptr(?:\s+\.\w+)*?(?:\s+\.align\s+\d+)?)?\s+(?P<name>[\w$]+)"
)
_DYNAMIC = re.compile(r"\.extern\s+\.shared\s+\.align\s+\d+\s+\.b8\s+([\w$]+)\[\]")
_FIXED = re.compile(
    r"\.shared\s+\.align\s+(?P<align>\d+)\s+\.b8\s+(?P<name>[\w$]+)\[(?P<bytes>\d+)\]"
)
_HEAD = re.compile(r"\.(version|target|address_size)\b[^\n]*")
_REGISTERS = re.compile(r"\.reg\s+\.(?P<type>\w+)\s+(?P<name>%?[\w$]+)(?:<(?P<count>\d+)>)?")
_LABEL = re.compile(r"([\w$]+):")
_STATEMENT = re.compile(
    r"(?:@(?P<guard>!?%?\w+)\s+)?(?P<opcode>[\w.:]+)(?:\s+(?P<operands>.*))?", re.S
)
_IGNORED = re.compile(r"\.(pragma|loc|file)\b")


class PtxError(Exception):
    """PTX that the translator does not know: the line, its text and what was expected."""


@dataclass(frozen=True, slots=True)
class Registers:
    """A declaration of registers: a name, or a prefix and how many there are."""

    type: str
    name: str
    count: int | None


@dataclass(frozen=True, slots=True)
class Label:
    """A place to jump to."""

    name: str


@dataclass(frozen=True, slots=True)
class Scope:
    """A brace; what is declared between two is known only there."""

    brace: str


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction."""

    line: int  # of the PTX, from 1
    guard: str  # the predicate under which it is carried out, with ``!`` if inverted; empty: always
    opcode: str  # whole, such as ``ld.shared.v4.f32``
    operands: tuple[str, ...]  # as they stand there

    def refused(self, why: str) -> PtxError:
        """Return the error that names this instruction."""
        guard = f"@{self.guard} " if self.guard else ""
        return PtxError(
            f"line {self.line} of the PTX, `{guard}{self.opcode} {', '.join(self.operands)}`: {why}"
        )


Item = Registers | Label | Scope | Instruction


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: its name, its parameters as pairs of type and name, and what it does."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    body: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Module:
    """A whole text."""

    kernels: tuple[Kernel, ...]  # in their order
    dynamic: frozenset[str]  # names of the shared memory that a launch gives
    fixed: dict[str, int]  # offset of each shared array of a stated size
    fixed_bytes: int  # all of these arrays together


def parsed(ptx: str) -> Module:
    """Take PTX apart.

    Raises PtxError: there is a directive that no kernel of the project had.
    """
    text = _COMMENT.sub("", ptx)
    kernels, outside, at = [], [], 0
    for found in _KERNEL.finditer(text):
        end = _closing(text, found.end())
        body = tuple(_items(text, found.end(), end))
        parameters = tuple(
            (each["type"], each["name"]) for each in _PARAMETER.finditer(found["parameters"])
        )
        if len(parameters) != found["parameters"].count(".param"):
            raise PtxError(f"the parameters of {found['name']} are of a form that is not known")
        kernels.append(Kernel(found["name"], parameters, body))
        outside.append(text[at : found.start()])
        at = end + 1
    outside.append(text[at:])
    fixed: dict[str, int] = {}
    bytes_ = 0
    for array in _FIXED.finditer(text):
        fixed[array["name"]] = start = -(-bytes_ // int(array["align"])) * int(array["align"])
        bytes_ = start + int(array["bytes"])
    dynamic = frozenset(_DYNAMIC.findall(text))
    rest = _HEAD.sub("", _FIXED.sub("", _DYNAMIC.sub("", "".join(outside))))
    if left := rest.replace(";", "").strip():
        raise PtxError(f"outside of kernels, `{left.splitlines()[0]}`: not known here")
    return Module(tuple(kernels), dynamic, fixed, bytes_)


def _closing(text: str, at: int) -> int:
    """Return where the brace closes that was opened before `at`."""
    depth = 1
    for found in re.finditer(r"[{}]", text[at:]):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return at + found.start()
    raise PtxError("a kernel has no end")


def _items(text: str, at: int, end: int) -> Iterator[Item]:
    """Yield what stands between two places, statement by statement."""
    line, counted = text.count("\n", 0, at) + 1, at
    while True:
        while at < end and text[at].isspace():
            at += 1
        if at >= end:
            return
        line, counted = line + text.count("\n", counted, at), at
        label = _LABEL.match(text, at, end)
        if text[at] in "{}":
            yield Scope(text[at])
            at += 1
        elif label:
            yield Label(label[1])
            at = label.end()
        elif text.startswith((".loc ", ".loc\t"), at):  # the directive without a semicolon
            at = text.index("\n", at)
        else:
            stop = text.index(";", at)
            statement, at = text[at:stop].strip(), stop + 1
            if statement.startswith("."):
                yield from _declared(statement, line)
            else:
                yield _instruction(statement, line)


def _declared(statement: str, line: int) -> Iterator[Item]:
    if registers := _REGISTERS.fullmatch(statement):
        count = registers["count"]
        yield Registers(registers["type"], registers["name"], int(count) if count else None)
    elif not _FIXED.fullmatch(statement) and not _IGNORED.match(statement):
        raise PtxError(f"line {line} of the PTX, `{statement}`: a directive that is not known")


def _instruction(statement: str, line: int) -> Instruction:
    found = _STATEMENT.fullmatch(statement)
    if found is None:
        raise PtxError(f"line {line} of the PTX, `{statement}`: no instruction")
    operands = re.findall(r"(?:[^,{}\[\]]|\{[^}]*\}|\[[^\]]*\])+", found["operands"] or "")
    stripped = tuple(operand.strip() for operand in operands)
    return Instruction(line, found["guard"] or "", found["opcode"], stripped)
