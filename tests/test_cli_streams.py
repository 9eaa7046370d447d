"""The command line where its streams, its display or its paths are not as they should be."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from simulator.base.assets import SCENARIOS
from ui.app.cli import main
from ui.safety.streams import fit_encoding, lack

ROOT = Path(__file__).resolve().parent.parent
DEMO = str(SCENARIOS / "causal.toml")
KV = ["kv-cache", "--model", "Llama-3-8B", "--tokens", "100000"]
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of Linux")


def run(arguments: list[str], stdout=subprocess.PIPE, **environment: str):
    """Run a command whose output is buffered, as it is for users."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONUNBUFFERED", "DISPLAY")}
    return subprocess.run(
        [sys.executable, "-m", "ui", *arguments],
        stdout=stdout, stderr=subprocess.PIPE, cwd=ROOT, env=kept | environment, check=False,
        timeout=120,
    )  # fmt: skip


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("arguments", [KV, ["run", DEMO]])
def test_any_encoding_of_the_output_will_do(arguments, encoding):
    told = run(arguments, PYTHONIOENCODING=encoding)
    assert (told.returncode, told.stderr) == (0, b"")
    whole = run(arguments, PYTHONIOENCODING="utf-8").stdout.decode()
    assert "\u2009" in whole  # thin spaces between thousands, plain ones elsewhere
    timeless = [line for line in whole.splitlines() if not line.startswith("time")]
    printed = told.stdout.decode(encoding).splitlines()
    likeness = str.maketrans({"\u2009": " ", **({"µ": "u"} if encoding == "ascii" else {})})
    for line in timeless:
        assert line.translate(likeness) in printed


@pytest.mark.parametrize(
    ("said", "told"), [("3\u20094 µs", b"3 4 us"), ("− – ×", b"- - x"), ("/\u6f22.npz", b"/?.npz")]
)
def test_letters_that_the_output_lacks_are_told_by_others(said, told):
    fit_encoding()
    assert said.encode("ascii", "tilescope") == told


@pytest.mark.long
@LINUX
@pytest.mark.parametrize("arguments", [KV, ["run", DEMO, "--json"], ["--help"], ["run", "--help"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_is_gone_is_no_fault(arguments, unbuffered):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        told = run(arguments, stdout=writing, PYTHONUNBUFFERED=unbuffered)
    finally:
        os.close(writing)
    assert (told.returncode, told.stderr) == (0, b"")


@pytest.mark.long
@LINUX
@pytest.mark.parametrize("arguments", [KV, ["run", DEMO, "--json"], ["--help"], ["--version"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_answer_that_finds_no_room_is_told_in_one_line(arguments, unbuffered):
    with open("/dev/full", "wb") as full:
        told = run(arguments, stdout=full, PYTHONUNBUFFERED=unbuffered)
    assert told.returncode == 2
    assert told.stderr.count(b"\n") == 1
    assert b"No space left" in told.stderr


@pytest.mark.long
@LINUX
@pytest.mark.parametrize("arguments", [["run", DEMO], ["export", DEMO, "-o", "{tmp}/a.png"]])
def test_closed_standard_streams_do_no_harm(arguments, tmp_path):
    words = [sys.executable, "-m", "ui", *(a.format(tmp=tmp_path) for a in arguments)]
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *words]
        done = subprocess.run(shell, cwd=ROOT, capture_output=True, check=False, timeout=120)
        assert (done.returncode, done.stderr) == (0, b""), closed


@pytest.mark.long
@LINUX
@pytest.mark.parametrize("named", [{"DISPLAY": ":59999"}, {"QT_QPA_PLATFORM": "bogus"}])
def test_where_qt_cannot_start_one_line_says_why(named):
    quiet = {"QT_QPA_PLATFORM": "", "WAYLAND_DISPLAY": "", "HOME": "/nonexistent"}
    told = run([], **quiet | named)
    assert told.returncode == 2
    *wayland, last = told.stderr.splitlines()  # libwayland has words of its own
    assert all(b"XDG_RUNTIME_DIR" in line for line in wayland)
    assert last.startswith(b"tilescope: Qt cannot start: ")
    assert next(iter(named.values())).encode() in last


@pytest.mark.long
@pytest.mark.parametrize("asked", [{"QT_DEBUG_PLUGINS": "1"}, {"QT_LOGGING_RULES": "*=true"}])
def test_qt_may_speak_until_the_very_end(asked, tmp_path):
    told = run(["export", DEMO, "-o", str(tmp_path / "a.svg")], **asked)
    assert told.returncode == 0
    assert b"Traceback" not in told.stderr


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        (["export", DEMO, "-o", "{tmp}/a.mp4", "--visits", "0:1"], 1),
        pytest.param([DEMO], 3, marks=pytest.mark.long),
    ],
)
def test_a_system_without_threads_is_told_in_one_line(arguments, number, tmp_path):
    # Root may start as many as it likes, so that a limit would not do.
    script = f"""
import sys, threading
from ui.app.cli import leave, main

def start(thread, begin=threading.Thread.start, left=[{number}]):
    left[0] -= 1
    if left[0] <= 0:
        raise RuntimeError("can't start new thread")
    begin(thread)

threading.Thread.start = start
leave(main(sys.argv[1:]))
"""
    told = subprocess.run(
        [sys.executable, "-c", script, *(word.format(tmp=tmp_path) for word in arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "TILESCOPE_SETTINGS": f"{tmp_path}/a"},
    )  # fmt: skip
    assert told.returncode == 2
    assert told.stderr == "not enough threads: expected a system that lets more of them start\n"
    assert not list(tmp_path.glob("*.mp4*"))


def test_memory_that_runs_out_in_an_import_is_told():
    assert "memory" in lack(ImportError("libX.so.6: failed to map segment from shared object"))
    assert lack(ImportError("No module named 'nothing'")) == ""


@pytest.mark.long
@LINUX
@pytest.mark.parametrize("arguments", [["doctor"], ["export", DEMO, "-o", "{tmp}/a.png"]])
def test_a_platform_that_is_not_there_is_not_needed(arguments, tmp_path):
    words = [word.format(tmp=tmp_path) for word in arguments]
    told = run(words, QT_QPA_PLATFORM="bogus")
    assert (told.returncode, told.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "attention.seqlen_q"),
        ("[attention]\nseqlen_q = 8\nhead_dim = 4\n[input]\nhead = [3]\n", "input.head = [3]"),
        ("[attention]\nseqlen_q = 8\nhead_dim = 4\nscale = 1e-40\n", "attention.scale = 1e-40"),
        ('[input]\nsource = "capture"\nname = "none"\n', 'input.name = "none"'),
        ('[attention]\nheads = 5\n[input]\nsource = "file"\npath = "{file}"\n', "heads = 5"),
    ],
)
@pytest.mark.parametrize("command", [["run"], ["verify"], ["export", "-o", "{tmp}/a.png"]])
def test_mistakes_name_the_scenario_file(text, words, command, tmp_path, capsys):
    file = next((SCENARIOS.parent / "captures").glob("*.safetensors")).as_posix()
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("{file}", file), encoding="utf-8")
    assert main([*(word.format(tmp=tmp_path) for word in command), str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"{path}: ")
    assert words in told
    assert told.count("\n") == 1


def test_a_byte_order_mark_is_no_mistake(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + (SCENARIOS / "causal.toml").read_bytes())
    assert main(["run", str(path), "--json"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("taken", ["out.npz", "summary.json"])
def test_a_folder_in_the_way_is_told_before_anything_is_written(taken, tmp_path, capsys):
    (tmp_path / taken).mkdir()
    assert main(["run", DEMO, "-o", str(tmp_path / "out.npz")]) == 2
    assert taken in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == [taken]


def test_an_output_is_never_written_over_its_input(tmp_path, capsys):
    numbers = np.random.default_rng(0).standard_normal((1, 4, 4)).astype(np.float32)
    np.savez(tmp_path / "in.npz", q=numbers, k=numbers, v=numbers)
    path = tmp_path / "mine.toml"
    path.write_text('[input]\nsource = "file"\npath = "in.npz"\n', encoding="utf-8")
    before = (tmp_path / "in.npz").read_bytes()
    assert main(["run", str(path), "-o", str(tmp_path / "in.npz")]) == 2
    assert "input" in capsys.readouterr().err
    assert (tmp_path / "in.npz").read_bytes() == before
    assert not (tmp_path / "summary.json").exists()


def test_an_empty_output_is_a_mistake(capsys):
    assert main(["run", DEMO, "-o", ""]) == 2
    assert "-o" in capsys.readouterr().err
