"""The kernels as people read them: the same bits, the same lines, and nothing that records."""

import re
from collections.abc import Iterator
from functools import cache
from typing import get_args

import pytest

from kernels.build.preprocess import Preprocessor
from kernels.build.reading import readable, stripped
from kernels.build.sources import FOLDER, SourceLine, op_lines, source_lines, whole_source
from kernels.checks.left import differing, left_by
from kernels.checks.tools import tensor_scenarios
from kernels.checks.variants import VARIANTS, Tables, in_folder, small
from kernels.cuda.fast import FastRun
from kernels.cuda.specs import KERNELS, SPECS
from kernels.cuda.tensor_core import TensorCoreRun
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import HostModule
from simulator.code.code_lines import forms
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import Variant, read_inputs, resolve
from tests.kernels.helpers import ALGORITHMS, needs_compiler

MMA = "flash2_mma"
FILES = {whole_source(name): name for name in (*KERNELS, MMA)}
RECORDING = re.compile(
    r"RECORDED|_PARAMETERS|_ARGUMENTS|\b(?:READ|WRITE)_|\b(?:visit|trace|counter)\b"
    r"|\b(?:Visit|Trace|Counter|\w*Detail)\b|ptxas \w+ trace"
)
MACRO = re.compile(
    r"\b(?:\w+_PARAMETERS|MASK|MASK_OF|SCORE|SINKS|NEW_MAXIMUM|IF_RESCALES|\w+_ARGUMENTS)\b"
)
"""What stands as what it means, so that a line has words which its file has not."""
EVERY = ("-DSOFTCAP", "-DALIBI", "-DBIAS", "-DPATTERN", "-DSINK",
         "-DTHRESHOLD", "-DROUND_PAIRS", "-DOUTPUT_GATE", "-DIN_TURN")  # fmt: skip
DEFINED = {frozenset[Variant](): (), frozenset(get_args(Variant)): EVERY}
"""What kernels are compiled with in runs of each variant."""


class ReadDevice(HostDevice):
    """A CPU that compiles what people read."""

    def module(self, code: str, options: tuple[str, ...]) -> HostModule:
        lines = stripped(FILES[code], options)
        return super().module("\n".join(line.text for line in lines), options)


def same(table: dict[str, object]) -> list[str]:
    """Return the tensors of which the text that is read leaves other bits."""
    w = resolve(parse_scenario(table))
    kind = TensorCoreRun if w.algorithm == "flash2" and w.head_dim >= 64 else FastRun
    left = []
    for device in (HostDevice(), ReadDevice()):
        run = kind(w, read_inputs(w), device)
        run.launch()
        left.append(left_by(run.tensors, device))
    return differing(w, *left)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tables]:
    """Return the scenarios of all variants, by algorithm and variant."""
    return in_folder(tmp_path_factory.mktemp("variants"))


@pytest.mark.sweep(keep=1)
@needs_compiler
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_read_leaves_the_bits_of_the_fast_build(algorithm: str) -> None:
    assert same(small(algorithm)) == []


@pytest.mark.sweep(keep=1)
@needs_compiler
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_read_of_a_variant_leaves_the_same_bits(
    algorithm: str, variant: str, tables: dict[str, Tables]
) -> None:
    table = tables.get(f"{algorithm}, {variant}")
    if table is not None:
        assert same(table) == []


@pytest.mark.long
@needs_compiler
def test_what_is_read_of_the_tensor_core_kernel_leaves_the_same_bits() -> None:
    assert same(tensor_scenarios()[0]) == []


@cache
def readings(algorithm: str) -> tuple[tuple[SourceLine, ...], ...]:
    return tuple(readable(algorithm, options) for options in DEFINED.values())


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_that_records_is_read(algorithm: str) -> None:
    assert RECORDING.search("\n".join(line.text for line in source_lines(algorithm)))
    for lines in readings(algorithm):
        assert not [line for line in lines if RECORDING.search(code_of(line))]


def code_of(line: SourceLine) -> str:
    """Return a line without its comment, but for what it says of registers."""
    return line.text if line.text.startswith("// ptxas") else line.text.partition("//")[0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_lines_keep_their_numbers(algorithm: str) -> None:
    whole = source_lines(algorithm)
    for lines in readings(algorithm):
        numbers = [line.number for line in lines if line.number]
        assert numbers == sorted(set(numbers))
        for line in lines:
            own = (FOLDER / line.file).read_text("utf-8").split("\n")[line.shown - 1]
            if line.number:
                assert own == whole[line.number - 1].text
                if not MACRO.search(own):
                    left = iter(own)
                    assert all(
                        letter in left for letter in re.sub(r"\) const|[(),; ]", "", line.text)
                    ), line


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_line_of_every_op_is_read(algorithm: str) -> None:
    for variant, lines in zip(DEFINED, readings(algorithm), strict=True):
        read = {line.number: line.text for line in lines}
        for op in forms(algorithm, variant):
            shown = [read[n] for n in op_lines(algorithm, op) if n in read]
            assert shown, op
            assert all(f"[{op.name}]" in text for text in shown)


def parameters(lines: tuple[SourceLine, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each kernel and the lines of its parameters."""
    text = "\n".join(line.text for line in lines)
    for found in re.finditer(r"__global__ void \w+\(\w+\) (\w+)\(\n(.*?)\n{", text, re.DOTALL):
        yield found[1], found[2].split("\n")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_signature_says_what_the_kernel_is_given(algorithm: str) -> None:
    """By name and in order; that there are as many, a launch shows."""
    for lines in readings(algorithm):
        for kernel, listed in parameters(lines):
            code = " ".join(line.partition("//")[0] for line in listed)
            assert code.strip().endswith(")")
            names = re.findall(r"(\w+)\s*(?=[,)])", code)
            given = [name.removesuffix("_hbm").lower() for name in names]
            assert given == [name for name in SPECS[kernel].arguments if name in given]
            assert len(code.split(",")) == len(given)
            for line in listed:
                assert "*" not in line.partition("//")[0] or re.search(r"\*.*// \S", line), line


def test_the_parameters_are_those_of_the_build() -> None:
    plain, every = (dict(parameters(lines))["flash2"] for lines in readings("flash2"))
    assert not [line for line in plain if "slopes" in line or "block_mask" in line]
    assert any(re.search(r"slopes,\s+// \[query heads\]", line) for line in every)
    assert any(re.search(r"block_mask,\s+// \[row blocks, blocks_across\]", line) for line in every)


def test_conditions_and_macros_are_decided_as_a_compiler_does() -> None:
    text = """\
#if A > 1 && !defined(B) || C
#define TWICE(x, y) ((x) + \\
    (y))
#else
#define TWICE(x, y) none
#endif
#ifdef __CUDA_ARCH__
both
#else
branches
#endif
#ifndef B
#if A == 1
one
#elif A != 2
two
#elif A >= 2
three
#else
four
#endif
#endif
TWICE(f(a, b), c) KEPT"""

    def read(*options: str) -> list[str]:
        tokens = Preprocessor(text.split("\n"), options).tokens()
        return "".join(t.text for t in tokens).split("\n")[1:]

    stays = ["#ifdef __CUDA_ARCH__", "both", "#else", "branches", "#endif"]
    assert [line for line in read("-DA=2") if line] == [*stays, "three", "((f(a, b)) + (c)) KEPT"]
    assert [line for line in read("-DA=2", "-DB") if line] == [*stays, "none KEPT"]
    assert [line for line in read("-DA=1") if line] == [*stays, "one", "none KEPT"]
    assert [line for line in read("-DA=3", "-DB", "-DC=1") if line][-1] == "((f(a, b)) + (c)) KEPT"
    with pytest.raises(ValueError, match=r"A \+ 1: expected a name"):
        Preprocessor(["#if A + 1", "#endif"], ()).tokens()
