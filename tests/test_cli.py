"""The command line: what it prints, what it refuses, what it leaves behind."""

import json
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from kernels.devices import registry
from kernels.devices.driver import GpuStatus, gpu_status
from kernels.devices.host.compiler import find_compiler
from kernels.devices.host.device import HostDevice
from kernels.devices.registry import GpuAccess
from simulator.base.assets import SCENARIOS
from simulator.lesson.course import find_lesson
from simulator.problem.scenario import load_scenario, save_scenario, with_values
from simulator.run.trace import simulate
from tests.helpers.process import python
from tests.helpers.scarce import longest_file
from ui.app import doctor
from ui.app.cli import main

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return python("-m", "ui", *arguments, **options)


def test_help_names_each_command_whole(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    told = (
        capsys.readouterr().out.split("Commands: ")[1].replace(";", ",").replace(",", " ").split()
    )
    assert {"run", "self-test", "kv-cache", "races"} <= {*told}


def test_help_of_the_export_shows_what_can_be_typed(capsys):
    with pytest.raises(SystemExit):
        main(["export", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "(frame-%04d.png)" in told
    assert "or a lesson" in told


def test_json_is_the_summary_and_nothing_else(capsys):
    assert main(["run", str(SCENARIOS / "causal.toml"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    expected = simulate(SCENARIOS / "causal.toml").summary()
    del summary["seconds"], expected["seconds"]
    assert summary == expected


def test_a_batch_is_run_and_verified_sequence_by_sequence(tmp_path, capsys):
    demo = str(SCENARIOS / "batch.toml")
    assert main(["run", demo, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    lengths = load_scenario(demo).batch.lengths
    assert summary["sequences"] == list(lengths)
    assert main(["run", demo]) == 0
    told = capsys.readouterr().out
    assert f"{len(lengths)}, of {', '.join(map(str, lengths))} keys" in told
    assert (summary["splits"], summary["split_keys"]) == (2, 32)  # of the longest
    assert "splits         2 of 32 keys\n" in told
    assert main(["verify", demo]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in told] == [f"batch, sequence {n}" for n in range(3)]
    assert main(["run", demo, "-o", str(tmp_path / "o.npz")]) == 2
    assert "batch.sequence, one of 0, 1, 2" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["masks", "sweep"])
def test_what_counts_one_sequence_of_a_batch_says_which(command, capsys):
    assert main([command, str(SCENARIOS / "batch.toml")]) == 0
    assert "of sequence 0 of a batch of 3" in capsys.readouterr().out


def test_a_sequence_without_queries_is_told_nowhere_and_the_others_keep_their_numbers(
    tmp_path, capsys
):
    path = tmp_path / "mixed.toml"
    path.write_text(
        "attention = {head_dim = 4}\nbatch = {lengths = [9, 0, 7], queries = [9, 0, 1]}\n"
        "mask = {causal = true}\ntiling = {rows = 4, cols = 4}\n"
    )
    assert main(["run", str(path)]) == 0
    told = capsys.readouterr().out
    assert "2, of 9, 7 keys" in told
    assert "queries        9, 1" in told
    assert main(["verify", str(path)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in told] == ["mixed, sequence 0", "mixed, sequence 2"]


def test_what_is_not_read_as_it_is_stored_is_told(tmp_path, capsys):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", **{name: rng.standard_normal((2, 5, 4)) for name in "qkv"})
    path = tmp_path / "wide.toml"
    path.write_text('input = {source = "file", path = "x.npz"}\n')
    note = "In the file q, k and v are float64, here rounded to float32."
    for command in (["run"], ["verify"], ["run", "--json"]):
        assert main([*command, str(path)]) == 0
        assert note in capsys.readouterr().out


def test_output_holds_arrays_and_summary(tmp_path, capsys):
    target = tmp_path / "out.npz"
    assert main(["run", str(SCENARIOS / "causal.toml"), "-o", str(target)]) == 0
    trace = simulate(SCENARIOS / "causal.toml")
    saved = np.load(target)
    assert np.array_equal(saved["o"], trace.output)
    assert np.array_equal(saved["lse"], trace.lse)
    assert saved["m"].shape == saved["l"].shape == (1, 64, 4)
    beside = json.loads((tmp_path / "summary.json").read_text())
    assert beside == json.loads(saved["summary.json"])
    assert beside["visits"] == len(trace)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.npz", "summary.json"]
    assert "float64" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "missing.toml"], ["missing.toml", "No such file"]),
        (["run"], ["scenario"]),
        (["run", ""], ['"": expected a readable file']),
        (["run", "{demo}", "-o", "out.txt"], ["out.txt", ".npz"]),
        (["run", "{demo}", "-o", "{tmp}/no/out.npz"], ["no", "exists"]),
        (["run", "{demo}", "--engine", "abacus"], ["abacus", "numpy"]),
        (["run", "{bad}"], ["bad.toml", "attention.kv_heads = 4", "heads = 6"]),
        (["export", "{demo}", "-o", "{tmp}/a.bmp"], ["a.bmp", ".png"]),
        (["export", "{demo}", "-o", "{tmp}/no/a.png"], ["exists"]),
        (["export", "{demo}", "-o", "{tmp}/a.png", "--size", "10"], ["10", "1920x1080"]),
        (["export", "{demo}", "-o", "{tmp}/a.png", "--size", "1x1"], ["1x1"]),
        (["export", "{demo}", "-o", "{tmp}/a.png", "--visits", "9:5"], ["9:5", "A:B"]),
        (["export", "{demo}", "-o", "{tmp}/a.png", "--visits", "0:999"], ["999", "10"]),
        (["export", "{demo}", "-o", "{tmp}/a.png", "--visits", "x"], ["x", "A:B"]),
        (["verify", "missing.toml"], ["missing.toml"]),
        *(([name, "{empty}"], ["empty.toml: att"]) for name in ("masks", "sweep", "races")),
        (["sweep", "{demo}", "--jobs", "0"], ["--jobs = 0: expected 1 to 64"]),
        (["sweep", "{demo}", "--jobs", "x"], ['"x": expected a whole number']),
        (["--nonsense"], ["--nonsense"]),
    ],
)
def test_wrong_input_is_one_line_and_leaves_no_file(
    arguments, words, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # a long path would be cut in the message
    bad = tmp_path / "bad.toml"
    bad.write_text("[attention]\nheads = 6\nkv_heads = 4\n")
    empty = tmp_path / "empty.toml"
    empty.touch()
    demo = SCENARIOS / "causal.toml"
    places = {"{demo}": demo, "{tmp}": ".", "{bad}": bad, "{empty}": empty}
    for key, value in places.items():
        arguments = [argument.replace(key, str(value)) for argument in arguments]
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    error = capsys.readouterr().err
    assert code == 2
    assert error.count("\n") == 1
    for word in words:
        assert word in error
    assert {p.name for p in tmp_path.iterdir()} == {"bad.toml", "empty.toml"}


def test_a_size_that_a_capture_has_not_is_refused_with_what_to_write_instead(tmp_path, capsys):
    demo = load_scenario(SCENARIOS / "flash2.toml")
    assert demo.input.source == "capture"
    path = tmp_path / "wide.toml"
    save_scenario(with_values(demo, {"attention": {"head_dim": 128}}), path)
    assert main(["run", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "head_dim = 128: expected 32 as in" in error
    said = error.partition(". Random Q, K, V with d = 128: ")[2]
    assert said
    changes = {}
    for part in said.split(", "):
        ((place, value),) = tomllib.loads(part.replace(".", "_", 1)).items()
        table, key = place.split("_", 1)
        changes.setdefault(table, {})[key] = value
    save_scenario(with_values(load_scenario(path), changes), path)
    assert main(["verify", str(path)]) == 0
    assert main(["run", str(path)]) == 0
    assert "attention.head_dim other than in the file: random" in capsys.readouterr().out


@pytest.mark.skipif(gpu_status().available, reason="this machine has a GPU")
def test_without_a_gpu_its_engine_is_refused_with_the_reason(capsys):
    assert main(["run", str(SCENARIOS / "causal.toml"), "--engine", "cupy"]) == 2
    assert gpu_status().reason in capsys.readouterr().err


class LostError(RuntimeError):
    """As CuPy raises it when the driver gives up."""

    __module__ = "cupy_backends.cuda.api.runtime"


class DyingDevice(HostDevice):
    """A GPU that dies while it computes; until then the CPU plays it, with the same kernels."""

    def download(self, buffer):
        raise LostError("cudaErrorLaunchFailure")


@pytest.fixture
def dying(monkeypatch):
    gpu = GpuAccess(lambda: GpuStatus("a GPU", "13.0", ""), DyingDevice)
    monkeypatch.setattr(registry, "GPU", gpu)


@pytest.mark.long
@pytest.mark.skipif(not find_compiler().available, reason=find_compiler().reason)
def test_a_gpu_that_dies_on_the_way_gives_way_to_numpy(dying, tmp_path, capsys):
    demo, film = str(SCENARIOS / "causal.toml"), tmp_path / "film.png"
    assert main(["run", demo, "--json"]) == 0
    told = capsys.readouterr()
    assert told.err == "the GPU failed (cudaErrorLaunchFailure): NumPy computes\n"
    assert json.loads(told.out)["engine"] == "numpy"
    assert main(["export", demo, "-o", str(film), "--size", "640x360"]) == 0
    assert "cudaErrorLaunchFailure" in capsys.readouterr().err
    assert film.exists()


@pytest.mark.skipif(not find_compiler().available, reason=find_compiler().reason)
def test_a_gpu_that_was_asked_for_and_dies_is_one_line(dying, tmp_path, capsys):
    film = tmp_path / "film.mp4"
    assert main(["run", str(SCENARIOS / "causal.toml"), "--engine", "cupy"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "cudaErrorLaunchFailure" in told
    wanted = ["-o", str(film), "--size", "640x360", "--engine", "cupy"]
    assert main(["export", str(SCENARIOS / "causal.toml"), *wanted]) == 2
    assert capsys.readouterr().err.count("cudaErrorLaunchFailure") == 1
    assert not any(tmp_path.iterdir())


CODES = "a\x1b]0;title\x07\x9b31m\u202eb"
"""A name that sets a terminal's title and colour, and turns the direction of writing."""


@pytest.mark.skipif(sys.platform == "win32", reason="no such name can be")
@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "IN.toml"),
        ("run", "IN.toml", "-o", "OUT.json"),
        ("export", "IN.toml", "-o", "OUT.png", "--size", "640x360"),
        ("run", "missing IN.toml"),
        ("run", "IN.toml", "--no\x1b[2Jsuch\u202e"),
        ("kv-cache", "--model", "OUT", "--tokens", "1"),
        ("kv-cache", "--model", "OUT.toml", "--tokens", "1\x1b[1m"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_names_reach_the_terminal_without_their_codes(
    arguments, tmp_path, capsys, qapp, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # a long path would be cut in the message
    scenario = with_values(load_scenario(SCENARIOS / "flash2.toml"), {"title": CODES})
    save_scenario(scenario, tmp_path / f"{CODES}.toml")
    names = {"IN": CODES, "OUT": f"out {CODES}"}
    typed = [arguments[0]]
    for word in arguments[1:]:
        for short, name in names.items():
            word = word.replace(short, name)
        typed.append(word)
    with suppress(SystemExit):
        main(typed)
    out, err = capsys.readouterr()
    assert not set(out + err) & set("\x1b\x07\x9b\u202e")
    assert r"\x1b" in out + err


def test_verify_passes(capsys):
    assert main(["verify", str(SCENARIOS / "causal.toml")]) == 0
    assert "10 of 10 visits agree" in capsys.readouterr().out


def test_a_fault_is_named_by_verify_and_its_summary_stays_json(tmp_path, capsys):
    path = tmp_path / "fault.toml"
    faulty = with_values(
        load_scenario(SCENARIOS / "large-logits.toml"), {"faults": {"no_maximum": True}}
    )
    save_scenario(faulty, path)
    assert main(["verify", str(path)]) == 1
    assert "differs first at visit 0" in capsys.readouterr().out
    assert main(["run", str(path), "--json"]) == 0
    text = capsys.readouterr().out
    assert json.loads(text, parse_constant=pytest.fail)["max_abs_error"] is None
    assert main(["run", str(path)]) == 0
    assert "not a number or infinite against float64" in capsys.readouterr().out
    assert main(["run", str(path), "--engine", "host"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "the CUDA kernels have none" in told


def test_doctor_looks_at_everything(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for what in ("Python", "Qt", "fonts", "GPU", "CuPy", "assets", "codecs", "settings", "log"):
        assert what in out


def test_doctor_says_where_settings_and_log_lie(tmp_path, monkeypatch, capsys):
    place = tmp_path / "not there yet" / "settings.ini"
    monkeypatch.setenv("TILESCOPE_SETTINGS", str(place))
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert f"{place} (none yet)" in out
    assert f"{place.with_name('tilescope.log')} (none yet)" in out
    assert not place.parent.exists()


@pytest.mark.parametrize("frozen", [False, True], ids=["checkout", "binary"])
def test_doctor_advises_what_its_reader_can_do(monkeypatch, frozen):
    """Nothing can be installed into the binary."""
    for name in ("av", "cupy", "PySide6.QtWidgets"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it fails
    found = [look(frozen=frozen) for look in (doctor.qt, doctor.cupy, doctor.codecs)]
    assert [finding.good for finding in found] == [False, None, False]
    says = " ".join(finding.says for finding in found)
    assert ("make run" in says) is not frozen
    assert ("install Tilescope again" in says) is frozen
    assert "pip" not in says


@pytest.mark.long
def test_no_command_but_the_window_needs_a_display(tmp_path):
    environment = {"PATH": "/usr/bin", "HOME": str(tmp_path)}
    demo = str(SCENARIOS / "causal.toml")
    assert run("run", demo, env=environment).returncode == 0
    target = tmp_path / "a.png"
    assert run("export", demo, "-o", str(target), env=environment).returncode == 0
    assert target.exists()


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="others always have a display")
def test_without_a_display_the_window_says_so(tmp_path):
    done = run(env={"PATH": "/usr/bin", "HOME": str(tmp_path)})
    assert done.returncode == 2
    assert "display" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [
        ["run", str(SCENARIOS / "causal.toml")],
        ["kv-cache", "--model", "Llama-3-8B", "--tokens", "5"],
    ],
)
def test_commands_that_draw_nothing_need_no_display_and_no_qt(words, tmp_path):
    code = (
        "import sys; from ui.app.cli import main; "
        f"sys.exit(main({words!r}) or 'PySide6' in sys.modules)"
    )
    done = python("-c", code, env={"PATH": "/usr/bin", "HOME": str(tmp_path)}, text=False)
    assert done.returncode == 0


def test_interrupted_it_leaves_nothing_half_written(tmp_path, monkeypatch):
    import simulator.run.results as results

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(results.np.lib.format, "write_array", interrupt)
    target = tmp_path / "out.npz"
    assert main(["run", str(SCENARIOS / "causal.toml"), "-o", str(target)]) == 130
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_file_as_it_was(tmp_path, capsys):
    target = tmp_path / "out.npz"
    target.write_bytes(b"old")
    with longest_file(100):
        assert main(["run", str(SCENARIOS / "causal.toml"), "-o", str(target)]) == 2
    assert "File too large" in capsys.readouterr().err
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.npz"]


def test_run_says_what_the_projections_of_a_layer_cost_and_how_exact_y_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", str(SCENARIOS / "layer.toml"), "--engine", "numpy"]) == 0
    (told,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("layer"))
    assert re.fullmatch(r"layer +384 FLOPs of projections, error of Y \d\.\de-\d\d", told)
    assert main(["run", str(SCENARIOS / "causal.toml"), "--engine", "numpy"]) == 0
    assert "projections" not in capsys.readouterr().out


def test_lessons_are_listed_by_part_with_their_minutes(capsys):
    assert main(["lessons"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines if not line.startswith(" ")] == [
        "I", "II", "III", "IV", "For lecturers",
    ]  # fmt: skip
    rows = [line.split() for line in lines if line.startswith(" ")]
    assert ["3", "online-softmax", "8", "min", "linear", "algebra"] in rows
    for row in rows:
        assert find_lesson(row[1]).exists()
    minutes = [int(line.split()[-2]) for line in lines if not line.startswith(" ")]
    assert sum(minutes) == sum(int(row[2]) for row in rows)


def test_a_sweep_without_times_says_why(capsys):
    assert main(["sweep", str(SCENARIOS / "gla.toml"), "--over", "d"]) == 0
    *_, line, last = capsys.readouterr().out.splitlines()
    assert line.endswith("–")
    assert last == "no times: The time of gated linear attention is not modelled."
