"""Work in parts: the same in one process, in several, and on a cluster that loses a worker."""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import av
import psutil
import pytest

from simulator.base.errors import InputError
from ui.app.cli import main
from ui.app.export_shards import made_by
from ui.session.shards import WORD, LocalShards, mapped, shards_of

ROOT = Path(__file__).resolve().parents[3]
FILM = (
    str(ROOT / "assets/scenarios/causal.toml"), "--size", "320x240", "--fps", "60",
    "--length", "5", "--scene", "board",
)  # fmt: skip
DEMOS = ROOT / "assets" / "scenarios"
TABLES = (
    ["masks", str(DEMOS / "causal.toml"), "--k", "1"],
    ["sweep", str(DEMOS / "deltanet.toml"), "--json"],
)
"""Commands that print figures, each of which is a part of the work."""
ENVIRONMENT = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT)}


def export(folder: Path, target: str, *more: str) -> None:
    """Make a film of 300 frames, three segments, in a folder."""
    done = subprocess.run([*command(target), *more], cwd=folder, check=False, capture_output=True,
                          text=True, timeout=300, env=ENVIRONMENT)  # fmt: skip
    assert done.returncode == 0, done.stderr


def command(target: str) -> list[str]:
    return [sys.executable, "-m", "ui", "export", *FILM, "-o", target, "--engine", "numpy"]


def pictures(film: Path) -> tuple[list[str], list[int]]:
    """Return a digest of each decoded frame, and which of them need no other."""
    with av.open(film) as box:
        frames = list(box.decode(video=0))
    times = [frame.pts for frame in frames]
    assert times == sorted(set(times))
    digests = [hashlib.sha256(frame.to_ndarray()).hexdigest() for frame in frames]
    return digests, [n for n, frame in enumerate(frames) if frame.key_frame]


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("film")
    export(folder, "alone.mp4", "--sound")
    return folder / "alone.mp4"


def test_each_120_frames_begin_with_one_that_needs_no_other(alone):
    digests, keys = pictures(alone)
    assert len(digests) == 300
    assert {0, 120, 240} <= set(keys)
    assert len(set(digests)) > 100
    with av.open(alone) as box:
        packets = [packet for packet in box.demux(video=0) if packet.size]
    decoded = [packet.dts for packet in packets]
    assert decoded == sorted(set(decoded))
    assert all(packet.dts <= packet.pts for packet in packets)


def test_two_processes_write_the_bytes_of_one(alone, tmp_path):
    export(tmp_path, "alone.mp4", "--sound", "--jobs", "2")
    assert (tmp_path / "alone.mp4").read_bytes() == alone.read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("target", ["frames/", "film.webp", "film.webm"])
def test_so_they_do_of_other_formats(tmp_path, target):
    """A WebM file has a random number in it: its frames are compared."""
    for name, more in (("one", ()), ("two", ("--jobs", "2"))):
        (tmp_path / name).mkdir()
        export(tmp_path / name, target, "--visits", "0:3", *more)
    if target == "film.webm":
        assert pictures(tmp_path / "one" / target) == pictures(tmp_path / "two" / target)
        return
    files = sorted(path for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert files
    for path in files:
        other = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert other.read_bytes() == path.read_bytes()


# --- a cluster -------------------------------------------------------------------------------

CLUSTER = """
import json, os, signal, subprocess, sys, time
import psutil
from distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            pids = client.run(os.getpid)
            film, *tables = json.loads(sys.argv[1])
            there = ["--cluster", cluster.scheduler_address]
            made = subprocess.Popen([*film, *there])
            killed, listening = None, 0
            while made.poll() is None:
                time.sleep(0.05)
                if killed is None:
                    busy = [name for name, keys in client.processing().items() if keys]
                    if len(busy) == 2:
                        time.sleep(1.0)  # in the middle of its part
                        killed = pids[busy[0]]
                        os.kill(killed, signal.SIGKILL)
                        found = psutil.Process(made.pid).net_connections("inet")
                        listening = sum(each.status == "LISTEN" for each in found)
            told = [subprocess.check_output([*each, *there], text=True) for each in tables]
            print(json.dumps([made.returncode, killed in pids.values(), listening, told]))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is of POSIX")
def test_a_cluster_that_loses_a_worker_writes_the_same_bytes(alone, tmp_path, capsys):
    pytest.importorskip("distributed", reason="needs the extra cluster: make run EXTRAS=cluster")
    (tmp_path / "cluster.py").write_text(CLUSTER)
    tables = [[sys.executable, "-m", "ui", *words] for words in TABLES]
    words = json.dumps([[*command("alone.mp4"), "--sound"], *tables])
    done = subprocess.run(
        [sys.executable, "cluster.py", words], cwd=tmp_path, check=False, capture_output=True,
        text=True, timeout=300, env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *film, told = json.loads(done.stdout.splitlines()[-1])
    assert film == [0, True, 0], done.stderr
    assert told == [printed_by(words, capsys) for words in TABLES]
    assert (tmp_path / "alone.mp4").read_bytes() == alone.read_bytes()


def printed_by(words: list[str], capsys) -> str:
    capsys.readouterr()
    assert main(words) == 0
    return capsys.readouterr().out


# --- tables and pages ------------------------------------------------------------------------


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("words", TABLES, ids=["masks", "sweep"])
def test_figures_that_two_processes_compute_are_printed_the_same(words, capsys):
    one, two = (printed_by([*words, *more], capsys) for more in ([], ["--jobs", "2"]))
    assert len(one) > 500
    assert two == one


@pytest.mark.long
def test_a_picture_of_the_site_is_made_elsewhere_as_by_its_command(tmp_path, monkeypatch, capsys):
    scenario = tmp_path / "tiny.toml"
    scenario.write_text("[attention]\nseqlen_q = 4\nhead_dim = 2\n[tiling]\nrows = 4\ncols = 2\n")
    target = tmp_path / "out" / "tiny.png"
    words = [str(scenario), "-o", str(target), "--size", "320x240", "--engine", "numpy"]
    (data, said), *more = mapped(LocalShards(1), made_by, [words, words])
    assert said.startswith(f"{target}: visit 1, op ")
    assert [each for each, _ in more] == [data]
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    target.unlink()
    printed_by(["export", *words], capsys)
    assert target.read_bytes() == data


def test_what_a_page_refuses_is_told_in_a_line(tmp_path):
    words = [str(tmp_path / "none.toml"), "-o", str(tmp_path / "none.html")]
    with pytest.raises(InputError, match=r"none\.toml"):
        list(mapped(LocalShards(1), made_by, [words]))


# --- parts -----------------------------------------------------------------------------------


def dies_once(mark: str) -> int:
    """End the process the first time that it is called."""
    path = Path(mark)
    if not path.exists():
        path.touch()
        os._exit(1)
    return 7


def nothing() -> None:
    """Look at nothing."""


def test_results_come_in_order_and_a_part_whose_process_died_is_done_again(tmp_path):
    calls = [(time.sleep, (0.2,)), (dies_once, (str(tmp_path / "mark"),)), (pow, (3, 2))]
    assert list(LocalShards(2).results(calls, nothing)) == [None, 7, 9]


@pytest.mark.long
def test_a_part_that_always_ends_its_process_is_told_in_a_line():
    with pytest.raises(InputError, match="has ended its process 3 times"):
        list(LocalShards(1).results([(os._exit, (1,))], nothing))


def test_what_a_part_refuses_is_refused_here():
    with pytest.raises(InputError, match=r"--jobs = 0: expected 1 to 64"):
        list(LocalShards(1).results([(shards_of, (0, None))], nothing))


def test_cancel_ends_the_processes_at_once():
    def cancel() -> None:
        if time.monotonic() > begun + 1:
            raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(LocalShards(2).results([(time.sleep, (60,))] * 3, cancel))
    assert time.monotonic() - begun < 20
    assert not [each for each in psutil.Process().children() if WORD in each.cmdline()]


def test_places_that_cannot_be_are_refused_in_a_line(monkeypatch):
    with pytest.raises(InputError, match=r"^--jobs = 2: expected either --jobs or --cluster, not"):
        shards_of(2, "tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"--cluster .*: expected the extra `cluster`: "):
        shards_of(None, "tcp://127.0.0.1:9")


@pytest.mark.parametrize("address", ["nowhere", "tcp://127.0.0.1:1"])
def test_a_cluster_that_is_not_there_is_refused_before_a_client_waits_for_it(address, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "Client", None)
    with pytest.raises(InputError, match=r"^--cluster = .*: expected the address of a Dask"):
        shards_of(None, address)
