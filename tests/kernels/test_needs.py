"""Thread blocks of the model are those of the kernels' grids, and take what the kernels take."""

from math import prod

import pytest

from kernels.build.elf import registers
from kernels.build.nvrtc import ARCHITECTURES, compile_cubin, limits, nvrtc_reason
from kernels.build.sources import source, whole_source
from kernels.cuda.launch import build_options
from kernels.cuda.needs import block_needs, known_cubin
from kernels.cuda.specs import SPECS, LaunchPart, kernels_of, most_shared_bytes
from kernels.devices.cupy import compiled
from simulator.code.code_lines import exemplars
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS
from simulator.study.schedule.blocks import blocks_of


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_there_are_as_many_as_the_grid_has(algorithm: str) -> None:
    for program in exemplars(algorithm):
        w = program.workload
        for number, name in enumerate(kernels_of(w)):
            launch = program.launches[number]
            part = LaunchPart(range(launch.times(w.heads)), range(w.grid.Tr))
            found = blocks_of([program], number)
            assert len(found) == prod(SPECS[name].grid(w, part)), name


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_they_take_what_is_written_beside_the_kernel(algorithm: str) -> None:
    for program in exemplars(algorithm):
        w = program.workload
        needs = block_needs(w)
        assert [each.kernel for each in needs] == list(kernels_of(w))
        assert max(each.shared for each in needs) == most_shared_bytes(w)
        for each in needs:
            assert each.threads == SPECS[each.kernel].threads(w)
            assert each.registers == limits(source(algorithm))[each.kernel, "fast"].registers


@pytest.mark.long
@pytest.mark.skipif(bool(nvrtc_reason()), reason=nvrtc_reason())
@pytest.mark.parametrize("preset", ["RTX-4090", "H100-SXM"])
def test_registers_are_those_of_the_build_at_hand(preset: str) -> None:
    """At 64 x 64, d = 128 on sm_89 the backward tiles take more than the source states."""
    w = resolve(
        parse_scenario(
            {
                "attention": {
                    "algorithm": "flash2-backward",
                    "seqlen_q": 64,
                    "head_dim": 128,
                    "dtype": "float16",
                },
                "tiling": {"rows": 64, "cols": 64},
                "hardware": {"preset": preset},
            }
        )
    )
    code, options = whole_source(w.algorithm), build_options(w, trace=False)
    arch = round(10 * w.gpu.capability)
    made = compile_cubin(code, "made.cu", f"sm_{arch}", options)
    assert registers(made.code) == {name: taken.registers for name, taken in made.usage.items()}
    stated = limits(source(w.algorithm), w.value_dim)
    if preset == "RTX-4090":
        assert made.usage["backward_tiles"].registers > stated["backward_tiles", "fast"].registers
    without = {each.kernel: each for each in block_needs(w)}
    assert not any(each.compiled for each in without.values())
    content = compiled(code, options, arch)
    assert known_cubin(w) == content
    for each in block_needs(w, content):
        assert each.compiled
        assert each.registers == made.usage[each.kernel].registers
        assert each.shared == without[each.kernel].shared


@pytest.mark.sweep(keep=2)
@pytest.mark.skipif(bool(nvrtc_reason()), reason=nvrtc_reason())
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_registers_of_a_cubin_are_those_that_the_assembler_tells(arch: str) -> None:
    w = next(iter(exemplars("naive"))).workload
    made = compile_cubin(whole_source("naive"), "n.cu", arch, build_options(w, trace=False))
    assert registers(made.code) == {name: taken.registers for name, taken in made.usage.items()}


def test_a_latent_of_512_numbers_takes_the_registers_of_its_gate() -> None:
    """FlashMLA's shapes: keys of 512 + 64 numbers, tiles of 64 rows and keys."""
    sizes = {"heads": 16, "seqlen_q": 4, "seqlen_k": 64, "latent_dim": 512, "rope_dim": 64}
    w = resolve(
        parse_scenario(
            {
                "attention": {"algorithm": "mla", "dtype": "bfloat16", **sizes},
                "tiling": {"rows": 64, "cols": 64},
            }
        )
    )
    first = block_needs(w)[0]
    assert (first.registers, first.shared) == (255, 164_096)
    assert first.registers * first.threads <= 65_536  # one thread block fits a multiprocessor
