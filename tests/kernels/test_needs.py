"""Thread blocks of the model are those of the kernels' grids, and take what the kernels take."""

from math import prod

import pytest

from kernels.build.nvrtc import limits
from kernels.build.sources import source
from kernels.cuda.needs import block_needs
from kernels.cuda.specs import SPECS, Part, kernels_of, most_shared_bytes
from simulator.code.code_lines import exemplars
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS
from simulator.study.schedule.blocks import thread_blocks


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_there_are_as_many_as_the_grid_has(algorithm: str) -> None:
    for program in exemplars(algorithm):
        w = program.workload
        for name, launch in zip(kernels_of(w), program.launches, strict=True):
            part = Part(range(launch.times(w.heads)), range(w.grid.Tr))
            found = thread_blocks(launch, w.heads)
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
