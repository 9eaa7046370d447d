"""The checks of `python -m kernels.check`, as far as they can be tried without a GPU."""

import json
import math
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.build import shipped
from kernels.build.elf import architecture
from kernels.build.nvrtc import nvrtc_reason
from kernels.build.sources import whole_source
from kernels.checks import case, machine, measure, numbers, report, timing, tools
from kernels.checks.outcome import CannotRunError, Finding, Outcome, Setting, carry_out
from kernels.checks.picture import Chart, svg
from kernels.cuda.fast import FastRun
from kernels.cuda.specs import KERNELS
from kernels.devices.host.device import HostDevice
from kernels.devices.host.module import HostModule
from kernels.errors import KernelError
from simulator.problem.workload import Inputs, Workload, read_inputs
from simulator.program.algorithms import algorithm_of
from simulator.program.tile_program import Counters
from simulator.study.gpu_report import measured_dram, measured_run
from tests.helpers.process import python
from tests.helpers.runs import fitted, scenario
from tests.kernels.helpers import ChangedDevice, needs_compiler, workload_of
from tests.kernels.outcomes import DEVICE, LINES, OUTCOMES

# --- outcomes and the report --------------------------------------------------------------------


def test_whatever_a_check_raises_is_its_outcome() -> None:
    def broken(_: Setting) -> Finding:
        raise ZeroDivisionError("no")

    def missing(_: Setting) -> Finding:
        raise CannotRunError("no tool")

    def wrong(_: Setting) -> Finding:
        return Finding("looked", ("bad",), figures={"x": math.nan, "n": np.int64(3)})

    def setting() -> Setting:
        return Setting(device=None)  # type: ignore[arg-type]

    outcomes = [carry_out("c", check, setting) for check in (broken, missing, wrong)]
    assert [o.status for o in outcomes] == ["failed", "not run", "failed"]
    assert outcomes[0].faults == ("ZeroDivisionError: no",)
    assert "def" not in outcomes[0].faults[0]
    assert "broken" in outcomes[0].figures["traceback"]
    assert outcomes[1].summary == "no tool"
    assert outcomes[2].as_json()["figures"] == {"x": "nan", "n": 3}


def test_the_report() -> None:
    text = report.markdown(OUTCOMES, quick=False)
    assert "| GPU | A GPU |" in text
    assert "| conformance | passed | 9 cases |" in text
    assert "not installed \\| see the toolkit" in text
    assert "### counters: what is wrong\n\n- flash2: read K: 3 bytes, expected 4\n" in text
    assert "### Times\n\n| N | ms |\n| --- | --- |\n| 512 | 1.0 |\n" in text
    assert "(curves.svg)" in text
    assert "Checks: 3 passed, 1 failed, 1 not run." in text


def test_the_picture() -> None:
    drawn = report.picture(OUTCOMES)
    assert drawn is not None
    lines = ElementTree.fromstring(drawn).findall(".//{*}polyline")
    assert len(lines) == 4
    points = [[float(n) for n in p.split(",")] for p in lines[0].attrib["points"].split()]
    assert [x for x, _ in points] == sorted({x for x, _ in points})
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)
    assert report.picture(OUTCOMES[:2]) is None
    empty = svg([Chart("a < b", {"none": []}), Chart("one", {"p": [(4.0, 3.0)]})], "A & B")
    assert ElementTree.fromstring(empty).attrib["width"] == "840"


def test_kernel_sources_are_told_by_their_text(tmp_path: Path) -> None:
    assert machine.software()["kernel sources"] == machine.sources_digest()
    digests = set()
    for name in ("a.cu", "b.cuh", "note.md", "b.cuh"):
        (tmp_path / name).write_text(f"{name} {len(digests)}", encoding="utf-8")
        digests.add(machine.sources_digest(tmp_path))
    assert len(digests) == 3  # not of a note


# --- what tools say -----------------------------------------------------------------------------

NCU = """==PROF== Connected to process 4711
"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","4711","naive_scores(const unsigned short *)","dram__bytes_read.sum","byte","1,234,567"
"0","4711","naive_scores(const unsigned short *)","dram__bytes_write.sum","byte","2345678"
"1","4711","naive_softmax","dram__bytes_read.sum","byte","3"
"1","4711","naive_softmax","dram__bytes_write.sum","byte","4"
"2","4711","naive_output","dram__bytes_read.sum","byte","5"
"""


def test_the_output_of_ncu() -> None:
    assert tools.parse_ncu(NCU) == [
        tools.DramBytes("naive_scores", 1234567, 2345678),
        tools.DramBytes("naive_softmax", 3, 4),
    ]
    assert tools.parse_ncu("==ERROR== ERR_NVGPUCTRPERM - no permission") == []


def test_the_dram_bracket() -> None:
    w, _ = workload_of(scenario("flash2", nq=64, d=8, rows=8, cols=8, dtype="float16"))
    compulsory, requested, least = tools.dram_bounds(w, 1000)
    assert compulsory == 4 * 64 * 8 * 2 + 4 * 64
    assert requested == 2 * 64 * 8 * 2 + 2 * 8 * 64 * 8 * 2 + 4 * 64
    assert least == compulsory - 1000
    bounds = compulsory, requested, least
    assert tools.dram_faults("x", compulsory, bounds) == []
    assert tools.dram_faults("x", requested, bounds) == []
    assert tools.dram_faults("x", round(0.995 * least), bounds) == []
    assert "fewer than" in tools.dram_faults("x", round(0.98 * least), bounds)[0]
    assert "more than" in tools.dram_faults("x", 2 * requested, bounds)[0]
    # What stays in L2 is at most what was written.
    assert tools.dram_bounds(w, 2**30)[2] == compulsory - (64 * 8 * 2 + 4 * 64)


def shown_again(check_of_figures: Outcome) -> dict[str, Any]:
    """Return a report with an outcome in it, as its readers have it."""
    said: dict[str, Any] = json.loads(report.as_json([DEVICE, check_of_figures], quick=True))
    return said


def test_dram_bytes_are_read_back_for_their_workload() -> None:
    w, _ = workload_of(scenario("flash2", nq=64, d=8, rows=8, cols=8, dtype="float16"))
    other, _ = workload_of(scenario("flash2", nq=64, d=8, rows=8, cols=4, dtype="float16"))
    figure = tools.dram_figure(w, 40, 2, tools.dram_bounds(w, 1000))
    said = shown_again(Outcome("DRAM bytes", "passed", "", figures={"dram": [figure]}))
    assert measured_dram(w, said) == 42
    assert measured_dram(other, said) is None


@needs_compiler
def test_curves_are_read_back_for_their_workloads() -> None:
    class Card(HostDevice):
        """Stands for a GPU as far as tiles are chosen; nothing is launched."""

        name = "cupy"

    device = Card()
    found = measure.curves(Setting(device, quick=True), lambda *_: {"bytes": 2**20, "ms": 0.5})
    said = shown_again(Outcome("naive and flash2", "passed", "", figures=found.figures))
    for algorithm in ("naive", "flash2"):
        w = measure.workload_of(device, algorithm, 1024, 64, 8)
        run = measured_run(w, 10**9, said)
        assert (run.algorithm, run.gpu, run.rate) == (algorithm, "A GPU", 2e12)
        causal = measure.workload_of(device, algorithm, 1024, 64, 8, causal=True)
        assert measured_run(causal, 10**9, said) is None


@pytest.mark.parametrize(
    ("said", "status", "found"),
    [
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", 0, []),
        ("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", 0, []),
        (
            "========= Invalid __global__ read of size 2 bytes\n=========     at flash2\n"
            "========= ERROR SUMMARY: 1 error\n",
            86,
            ["Invalid __global__ read of size 2 bytes", "ERROR SUMMARY: 1 error"],
        ),
        (
            "========= Error: Race reported between Write access and Read access\n"
            "========= RACECHECK SUMMARY: 10 hazards displayed (10 errors, 0 warnings)\n",
            86,
            [
                "Error: Race reported between Write access and Read access",
                "RACECHECK SUMMARY: 10 hazards displayed (10 errors, 0 warnings)",
            ],
        ),
    ],
)  # fmt: skip
def test_the_output_of_compute_sanitizer(said: str, status: int, found: list[str]) -> None:
    assert tools.sanitizer_faults(said, status) == found


def test_a_sanitizer_that_did_not_look_is_no_pass() -> None:
    with pytest.raises(CannotRunError, match="gives no summary"):
        tools.sanitizer_faults("Device not supported", 1)
    died = tools.sanitizer_faults("Killed\n========= ERROR SUMMARY: 0 errors\n", 137)
    assert died[0].startswith("the program under it ended with status 137")


def test_a_tool_beside_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = tmp_path / "compute-sanitizer" / "compute-sanitizer"
    place.parent.mkdir()
    place.write_text("#!/bin/sh\n", encoding="utf-8")
    place.chmod(0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert tools.tool("compute-sanitizer") == str(place)


# --- cubins -------------------------------------------------------------------------------------


@pytest.mark.skipif(bool(nvrtc_reason()), reason=nvrtc_reason())
def test_cubins_are_found_by_what_they_are_made_of(tmp_path: Path) -> None:
    table = tools.small_scenarios()[0]
    w = numbers.resolve(numbers.parse_scenario(table))
    options = case.options_of(w, "fast")
    path = case.write_cubin(tmp_path, w.algorithm, options, "sm_80")
    found = shipped.machine_code(whole_source(w.algorithm), options, 86, tmp_path)
    assert found[0] == "sm_80.cubin"
    assert architecture(found[1]) == 80
    assert list(tmp_path.iterdir()) == [path]
    assert case.options_of(w, "trace") != options


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("table", tools.small_scenarios(), ids=list(KERNELS))
def test_the_options_of_a_case_are_those_it_runs_with(table: dict[str, Any]) -> None:
    """Else the process that must do with cubins would look for one that was not made."""
    seen = []

    class Watched(HostDevice):
        def module(self, code: str, options: tuple[str, ...]) -> Any:
            seen.append((code, options))
            return super().module(code, options)

    outputs = case.run(table, ("fast", "trace"), Setting(Watched()))
    w = numbers.resolve(numbers.parse_scenario(table))
    own = [options for code, options in seen if code == whole_source(w.algorithm)]
    assert own == [case.options_of(w, "fast"), case.options_of(w, "trace")]
    # A backward pass runs its forward pass as well, of which there is a scenario, too.
    before = w.as_algorithm(algorithm_of(w).forward or w.algorithm)
    wanted = [(whole_source(before.algorithm), case.options_of(before, build))
              for build in ("fast", "trace")]  # fmt: skip
    assert all(each in wanted for each in seen if each[0] != whole_source(w.algorithm))
    assert [left["o"].shape for left in outputs] == [(w.heads, w.seqlen_q, w.value_dim)] * 2


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("table", tools.tensor_scenarios(), ids=str)
def test_what_the_sanitizer_watches_of_tensor_cores(table: dict[str, Any]) -> None:
    [left] = case.run(table, (case.TENSOR_CORES,), Setting(HostDevice()))
    w, inputs = numbers.numbers_of(numbers.parse_scenario(table))
    assert left["o"].shape == (2, 370, w.head_dim)
    want = FastRun(w, inputs, HostDevice())
    want.launch()
    got, exact = (numbers.widened(x, w.dtype) for x in (left["o"], want.tensors.o))
    assert np.all(np.abs(got - exact) <= 5e-3)
    assert not np.any(got[:, :200])  # rows that see nothing: more than a row block
    assert np.all(np.any(got[:, 200:], axis=2))


@pytest.mark.skipif(bool(nvrtc_reason()), reason=nvrtc_reason())
def test_nvrtc_can_be_forbidden() -> None:
    code = (
        "from kernels.checks.case import forbid_nvrtc; forbid_nvrtc();"
        "from kernels.build.nvrtc import compile_cubin; compile_cubin('', 'a.cu', 'sm_80')"
    )
    done = python("-c", code)
    assert "NVRTC was asked to compile, where cubins should do" in done.stderr


# --- numbers, on the CPU ------------------------------------------------------------------------


@pytest.fixture
def host() -> Setting:
    try:
        return Setting(HostDevice(), quick=True)
    except KernelError as error:
        pytest.skip(str(error))


ONE = {"one": scenario("flash2", nq=9, rows=4, cols=3, d=5, dv=7, dtype="float16")}


@pytest.mark.long
@needs_compiler
def test_conformance_on_the_host(host: Setting, tmp_path: Path) -> None:
    for file in numbers.CONFORMANCE.glob("*-small.*"):
        shutil.copy(file, tmp_path)
    found = numbers.conformance(host, tmp_path)
    assert found.summary == f"{len(list(tmp_path.glob('*.toml')))} cases of tests/conformance"
    assert found.faults == ()
    wanted = tmp_path / "flash2-small.expected.npz"
    with np.load(wanted) as arrays:
        np.savez(wanted, **{**arrays, "o": arrays["o"] + 1})
    (fault,) = numbers.conformance(host, tmp_path).faults
    assert fault.startswith("flash2-small: o: off by ")


@needs_compiler
def test_numbers_on_the_host(host: Setting) -> None:
    for look in (numbers.against_float64, numbers.same_bits, numbers.counted):
        found = look(host, ONE)
        assert found.faults == (), look
        assert found.summary


@needs_compiler
def test_faults_of_numbers_are_found() -> None:
    class Unlike(HostDevice):
        """Compiles the fast build without its rescaling."""

        def module(self, code: str, options: tuple[str, ...]) -> HostModule:
            changed = code if "-DTRACE" in options else code.replace("O[r][n] *= alpha;", ";")
            return super().module(changed, options)

    found = numbers.same_bits(Setting(Unlike()), ONE).faults
    assert "one: o differs between fast and trace build" in found

    def broken(code: str) -> str:
        raise KernelError("no such kernel")

    on = Setting(ChangedDevice(broken))
    assert numbers.counted(on, ONE).faults == ("one: KernelError: no such kernel",)
    assert numbers.against_float64(on, ONE).faults == ("one: KernelError: no such kernel",)


def test_counts_are_compared_by_tensor() -> None:
    want = Counters({"Q": 8, "K": 4}, {"O": 2}, 100)
    assert numbers.count_faults(Counters({"Q": 8, "K": 4, "S": 0}, {"O": 2}, 100), want) == []
    assert numbers.count_faults(Counters({"Q": 8, "K": 5}, {"O": 2, "m": 4}, 99), want) == [
        "read K: 5 bytes, expected 4",
        "write m: 4 bytes, expected 0",
        "99 FLOPs, expected 100",
    ]


@pytest.mark.long
@needs_compiler
def test_tensor_cores_on_the_host(host: Setting) -> None:
    table = {"attention": {"heads": 1, "seqlen_q": 70, "head_dim": 64}, "mask": {"causal": True}}
    found = numbers.tensor_cores(host, {"one": table})
    assert found.summary == "O and lse of 6 workloads against float64, 3 runs of each alike"
    assert found.faults == ()

    class Off(HostDevice):
        """Hands back one number of O that is another: in both dtypes NaN, or of the other sign."""

        lost = True

        def download(self, buffer: np.ndarray) -> np.ndarray:
            copy = super().download(buffer)
            if copy.dtype == np.uint16:
                copy[0, 3, 5] = 0x7FFF if self.lost else copy[0, 3, 5] ^ 0x8000
            return copy

    off = Off()
    for off.lost in (True, False):
        told = numbers.tensor_cores(Setting(off), {"one": table}).faults
        assert len(told) == 6
        assert all("O of head 0 is off by" in fault for fault in told)


# --- times --------------------------------------------------------------------------------------


def sized(causal: bool, **sizes: Any) -> Workload:
    mask = {"causal": causal}
    return workload_of(scenario("flash2", mask=mask, rows=16, cols=16, **sizes))[0]


def test_flops_and_rates() -> None:
    w = sized(False, nq=40, nk=50, d=8, dv=4, heads=3)
    assert timing.needed_flops(w) == 2 * 3 * 40 * 50 * 12
    for nq, nk in ((40, 50), (50, 40), (33, 33)):
        w = sized(True, nq=nq, nk=nk)
        pairs = sum(w.mask.visible(range(nq), range(nk)).ravel())
        assert timing.visible_pairs(w) == pairs
    assert timing.tera_per_second(3e12, 1000) == 3
    assert timing.summary([4.0, 2.0, 9.0], 5) == timing.Timing(4.0, 2.0, 9.0, 5, 3)
    with pytest.raises(ValueError, match="window 3"):
        timing.visible_pairs(workload_of(scenario(mask={"window": 3}))[0])


@pytest.mark.parametrize(
    ("cost", "launches", "measurements", "before"),
    [(0.05, 100, 15, 200), (20.0, 1, 15, 200), (600.0, 1, 3, 600)],
)
def test_a_gpu_is_warm_before_it_is_measured(
    cost: float, launches: int, measurements: int, before: float
) -> None:
    """With a clock in the place of the GPU's: the first two launches take 3 ms longer."""
    now, calls = 0.0, 0

    class Moment:
        at = 0.0

        def record(self) -> None:
            self.at = now

        def synchronize(self) -> None:
            pass

    class Watch:
        def Event(self) -> Moment:
            return Moment()

        def get_elapsed_time(self, start: Moment, stop: Moment) -> float:
            return stop.at - start.at

    def launch(count: int) -> None:
        nonlocal now, calls
        assert count == calls
        calls += 1
        now += cost + 3 * (calls <= 2)

    found = timing.timed(launch, clock=Watch())
    assert (found.launches, found.measurements) == (launches, measurements)
    assert found.median == found.most == pytest.approx(cost)
    assert now - cost * launches * measurements >= before


def bench_line(name: str, ms: float | None, causal: bool = False) -> dict[str, Any]:
    found = {"name": name, "N": 8192, "d": 128, "causal": causal}
    return found | ({"reason": "no"} if ms is None else {"ms": ms, "tflops": 100 / ms})


def test_the_tables_of_the_benchmark() -> None:
    lines = [
        bench_line("fast", 50.0),
        bench_line("tensor cores, 4 warps", 2.0),
        bench_line("tensor cores, 8 warps", 2.5),
        bench_line("PyTorch flash", 1.0),
        bench_line("PyTorch cudnn", None),
        {"name": "trace", "N": 8192, "d": 128, "causal": False, "fault": "off"},
    ]
    matrix = {"float16": {"n": 8192, "ms": 1.5, "tflops": 200.0}}
    first, second = measure.benchmark_tables({"lines": lines, "matrix": matrix})
    assert first.rows == (("float16", "8192", "1.500", "200.0"),)
    assert second.title == "TFLOP/s (share of the measured matrix rate), d = 128, no mask"
    cells = dict(zip(second.header, second.rows[0], strict=True))
    assert cells["tensor cores, 4 warps"] == "50.0 (25%)"
    assert cells["trace"] == "wrong"
    assert cells["PyTorch cudnn"] == cells["/ cuDNN"] == "–"
    assert cells["best tensor cores / flash"] == "0.50"
    assert measure.benchmark_tables({"lines": lines[:1], "matrix": {}})[0].rows[0][1] == "2.0"


def test_the_goal_on_hopper() -> None:
    def lines(ms: float) -> list[dict[str, Any]]:
        return [bench_line("tensor cores, 4 warps", ms), bench_line("PyTorch flash", 1.0)]

    assert measure.missed_goals(lines(1.2), 90) == []
    assert measure.missed_goals(lines(2.0), 80) == []
    assert "0.50 of the speed" in measure.missed_goals(lines(2.0), 90)[0]


@pytest.mark.long
@needs_compiler
def test_what_is_timed_is_right(host: Setting) -> None:
    """Builds as the benchmark places them, on the CPU: the same numbers from all of them."""
    w = measure.workload_of(host.device, "flash2", 100, 64, 2, causal=True)
    sets = [measure.shaped(w, flat) for flat in measure.drawn(2 * 100 * 64)]
    wanted, others = (numbers.samples(w, inputs) for inputs in sets)
    found = measure.candidates(w, sets, host, torch_too=False)
    assert list(found) == [
        "fast",
        "trace",
        "tensor cores, 4 warps",
        "tensor cores, 4 warps, one buffer",
        "tensor cores, 8 warps",
    ]
    for name, make in found.items():
        candidate = make()
        # NaN before the first launch.
        assert numbers.sample_fault(wanted, candidate.output) != ""
        candidate.launch(0)
        assert numbers.sample_fault(wanted, candidate.output) == "", name
        assert numbers.sample_fault(others, candidate.output) != "", name


def test_a_tile_taken_twice_is_found_in_a_long_row() -> None:
    """It moves O by less than 0.01, where V is about 1: O is as small among so many keys."""
    nk = 2**14
    w, _ = workload_of(scenario("flash2", nq=nk, d=64, rows=64, cols=64, dtype="float16"))
    q, k, v = (x.reshape(1, nk, 64) for x in measure.drawn(nk * 64, 1)[0])
    stale = v.copy()
    stale[:, 6400:6464] = v[:, 6336:6400]
    wanted, wrong = (numbers.samples(w, Inputs(q, k, x)) for x in (v, stale))
    assert [s.rows for s in wanted] == [range(n, n + 128) for n in (0, 8064, 16256)]

    def output(samples: list[numbers.Sample]) -> Any:
        o = np.full((nk, 64), np.nan, np.float32)
        for sample in samples:
            o[sample.rows.start : sample.rows.stop] = sample.exact.astype(np.float16)
        return lambda head: o

    assert np.nanmax(np.abs(output(wrong)(0) - output(wanted)(0))) < 0.01
    assert numbers.sample_fault(wanted, output(wanted)) == ""
    assert "O of head 0, rows 0 to 127, is off by" in numbers.sample_fault(wanted, output(wrong))


@pytest.mark.sweep(keep=1)
@needs_compiler
@pytest.mark.parametrize("algorithm", list(KERNELS))
def test_what_the_trace_is_timed_with_is_all_that_kernels_read(
    host: Setting, algorithm: str
) -> None:
    w = measure.workload_of(host.device, algorithm, 20, 4, 2, causal=True)
    inputs = measure.shaped(w, measure.drawn(2 * 20 * 4, 1)[0])
    assert set(inputs.given(w)) == set(read_inputs(w).given(w))
    fast = FastRun(w, inputs, host.device)
    fast.launch()
    o = numbers.widened(host.device.download(fast.tensors.o), w.dtype)
    assert numbers.sample_fault(numbers.samples(w, inputs), lambda head: o[head]) == ""


@needs_compiler
def test_a_gate_that_is_missing_is_told_before_a_kernel_reads_it(host: Setting) -> None:
    w, inputs = workload_of(scenario("gla", **fitted("gla")))
    with pytest.raises(KernelError, match="gla reads decay, which its inputs lack"):
        FastRun(w, replace(inputs, gate=None), host.device)


@pytest.mark.parametrize("algorithm", KERNELS)
def test_every_algorithm_has_a_workload_whose_dram_bytes_are_measured(algorithm: str) -> None:
    w = numbers.resolve(numbers.parse_scenario(tools.dram_scenario(algorithm, 2048)))
    assert (w.algorithm, len(w.picked), w.queries) == (algorithm, 16, 2048)


def test_memory_that_grows_otherwise() -> None:
    assert measure.growth_faults(LINES[:3]) == []
    assert measure.growth_faults([n | {"bytes": n["N"] * 7} for n in LINES[3:]]) == []
    assert "twice the tokens take 4.00" in measure.growth_faults(LINES[3:])[0]
