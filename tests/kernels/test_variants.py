"""GPU checks run everything that kernels are compiled with, and so look at all of their lines."""

import json
import re
import sys
from pathlib import Path

import pytest

from kernels.build.sources import FOLDER
from kernels.checks import apart, case, numbers, tools
from kernels.checks.outcome import Setting
from kernels.checks.variants import HEADS, NK, NQ, SMALL, VARIANTS, Tables, in_folder, variants
from kernels.cuda.launch import build_options
from kernels.cuda.specs import KERNELS, kernels_of
from kernels.devices.host.device import HostDevice
from simulator.problem.facts import SKIPPING
from simulator.problem.scenario import parse_scenario
from simulator.problem.workload import resolve
from simulator.program.algorithms import ALGORITHMS
from tests.kernels.helpers import needs_compiler

MADE_OF = {"TRACE", "SCORES_AS_ELEMENT", "CHANGES_SCORES", "__CUDA_ARCH__", "ELEMENT"}
"""Of the build, of the check, of other names, of the compiler, of the dtype."""
OF_SOFTMAX = {"SOFTCAP", "ALIBI", "BIAS", "SINK", "PATTERN"}

SOFTMAX = [name for name in VARIANTS if name != "in turn" and "performer" not in name]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tables]:
    """Return the scenarios of all variants, by algorithm and variant."""
    return in_folder(tmp_path_factory.mktemp("variants"))


@pytest.fixture(scope="module")
def defined(tables: dict[str, Tables]) -> dict[str, set[str]]:
    """Return by algorithm all that its scenarios are compiled with beside tiles."""
    found: dict[str, set[str]] = {}
    for table in (*tools.small_scenarios(), *tables.values()):
        w = resolve(parse_scenario(table))
        found.setdefault(w.algorithm, set()).update(build_options(w, trace=False))
    return found


def test_every_definition_is_tried_with_every_algorithm(defined: dict[str, set[str]]) -> None:
    assert set(defined) == set(KERNELS)
    for name, algorithm in ALGORITHMS.items():
        wanted = {f"-D{each}" for each in OF_SOFTMAX if algorithm.softmax}
        wanted |= {"-DTHRESHOLD"} if name in SKIPPING else set()
        wanted |= {"-DROUND_PAIRS"} if algorithm.softmax else set()
        wanted |= {"-DOUTPUT_GATE"} if algorithm.softmax and not algorithm.backward else set()
        wanted |= {"-DIN_TURN"} if algorithm.adds else set()
        assert wanted <= defined[name], name
    assert {"-DPROJECTS=0", "-DPROJECTS=1"} <= defined["linear"]


def test_no_definition_of_the_sources_is_missing(defined: dict[str, set[str]]) -> None:
    named: set[str] = set()
    for path in FOLDER.glob("*.cu*"):
        if "mma" not in path.name and path.name != "ladder.cu":
            for line in re.findall(r"^\s*#\s*(?:el)?if.*", path.read_text("utf-8"), re.MULTILINE):
                named |= set(re.findall(r"\b[A-Z_]{3,}\b", line))
    every = set().union(*defined.values())
    tried = {option[2:].partition("=")[0] for option in every}
    assert named - MADE_OF <= tried


def test_every_kernel_is_run(tables: dict[str, Tables]) -> None:
    every = (*tools.small_scenarios(), *tables.values())
    run = {name for t in every for name in kernels_of(resolve(parse_scenario(t)))}
    assert run == {name for names in KERNELS.values() for name in names}


def test_all_have_tails_and_grouped_heads(tables: dict[str, Tables]) -> None:
    rows, cols = SMALL["tiling"]["rows"], SMALL["tiling"]["cols"]
    assert NQ % rows
    assert HEADS * NQ % rows
    assert NK % cols
    assert len({json.dumps(table) for table in tables.values()}) == len(tables)
    assert {name.partition(", ")[2] for name in tables} == set(VARIANTS)


def test_bits_counters_and_sanitizers_run_all_of_them(tmp_path: Path) -> None:
    device = Setting(device=None)  # type: ignore[arg-type]
    with variants() as more, numbers.tried_scenarios(device) as tried:
        assert set(more) < set(tried)
        assert any(s.attention.deterministic and s.attention.heads == 32 for s in tried.values())
        command = tools.case_command(list(more.values()), tools.BUILDS, tmp_path)
        assert command[:3] == [sys.executable, "-m", "kernels.checks.case"]
        assert json.loads(Path(command[3]).read_text("utf-8")) == list(more.values())
    assert [name for name in apart.CHECKS if name.endswith("check")] == [
        "memcheck", "racecheck", "synccheck", "initcheck",
    ]  # fmt: skip


@pytest.mark.sweep(keep=1)
@needs_compiler
@pytest.mark.parametrize("name", [*map("flash2, {}".format, SOFTMAX), "flash2-backward, in turn"])
def test_variants_on_the_host(name: str, tables: dict[str, Tables]) -> None:
    table = tables[name]
    on = Setting(HostDevice())
    chosen = {name: parse_scenario(table)}
    assert numbers.same_bits(on, chosen).faults == ()
    assert numbers.counted(on, chosen).faults == ()
    assert len(case.run(table, tools.BUILDS, on)) == 2
