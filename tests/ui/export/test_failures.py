"""Cancel, Ctrl-C, a kill, a full disk, no permission: what was there stays, nothing is left."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import cycle
from pathlib import Path

import pytest

from simulator.base.errors import InputError
from simulator.base.files import clear_stale
from tests.ui.export.helpers import DEMO, ROOT, command, make, names, options, picture, prepared
from ui.export.film import Film
from ui.session.tasks import Cancelled

ENDINGS = (".mp4", ".webm", ".gif", ".webp", ".apng")
SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)  # Windows has the first two
]
LONG = {"size": (1920, 1080), "length": 60.0, "fps": 30}


def started(target: Path) -> subprocess.Popen[str]:
    """Start a long export and wait until it writes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ui", "export", DEMO, "-o", target, "--length", "100"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        if any(p.is_dir() or p.stat().st_size > 20_000 for p in target.parent.glob(".*.part")):
            return process
        time.sleep(0.02)
    raise AssertionError(f"nothing was written: {process.communicate()}")


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("ending", [*ENDINGS, "/"])
def test_cancel_leaves_what_was_there(ending, tmp_path):
    target = f"{tmp_path}/a{ending}"
    if ending != "/":
        Path(target).write_bytes(b"old")
    before = names(tmp_path)
    export = prepared(options(target, **LONG))
    wanted = threading.Event()

    def report(share):
        if share > 0 and not wanted.is_set():
            wanted.set()
            raise Cancelled

    threads = threading.active_count()
    with pytest.raises(Cancelled):
        export.make(report)
    assert names(tmp_path) == before
    assert ending == "/" or Path(target).read_bytes() == b"old"
    assert threading.active_count() == threads


def test_a_painter_that_fails_is_told_and_leaves_nothing(tmp_path):
    export = prepared(options(tmp_path / "a.mp4"))
    paint = export.source.paint

    def broken(painter, k):
        if k == 7:
            raise ValueError("frame 7")
        paint(painter, k)

    export.source.paint = broken
    with pytest.raises(InputError, match="frame 7"):
        export.make(lambda share: None)
    assert names(tmp_path) == []


def test_a_writer_that_fails_ends_the_painter(qapp):
    source = prepared(options("a.mp4", **LONG)).source

    class Broken:
        def prepare(self, image):
            return image.copy()

        def add(self, frame):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        Film(source, Broken()).make(lambda share: None)
    assert not [t for t in threading.enumerate() if t.name in ("paint", "encode")]


@pytest.mark.long
@pytest.mark.parametrize(("number", "ending"),
                         [*zip(SIGNALS, cycle([".mp4", ".gif", "-%04d.png"]))])  # fmt: skip
def test_an_interrupt_is_130_and_leaves_nothing(ending, number, tmp_path):
    process = started(tmp_path / f"a{ending}")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert (out, err) == ("", "")
    assert names(tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("call", [2000, 20_000, 60_000])
def test_an_interrupt_while_qt_is_imported_is_130_and_says_nothing(call, tmp_path):
    # Qt makes classes in Python as they are first asked for, and drops exceptions in these calls.
    script = """
import os, signal, sys
from ui.app.cli import leave, main

left = int(sys.argv[1])

def look(frame, event, argument):
    global left
    name = frame.f_code.co_filename
    left -= event == "call" and ("shiboken" in name or name.endswith("enum.py"))
    if left == 0:
        sys.setprofile(None)
        print("sent", flush=True)
        os.kill(os.getpid(), signal.SIGINT)

sys.setprofile(look)
leave(main(sys.argv[2:]))
"""
    words = ["export", "05-online-softmax", "-o", str(tmp_path / "a.svg"), "--engine", "numpy"]
    done = subprocess.run(
        [sys.executable, "-c", script, str(call), *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "sent\n", "")
    assert names(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals are another thing there")
def test_a_self_test_whose_terminal_is_closed_leaves_nothing(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "ui", "self-test"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert process.stdout.readline().startswith("assets")
    process.send_signal(signal.SIGHUP)
    assert process.communicate()[1] == ""
    assert process.returncode == 130
    assert names(tmp_path) == []


def test_a_self_test_interrupted_in_an_import_is_130_and_says_nothing(tmp_path):
    (tmp_path / "sender.py").write_text("import os\nos.kill(os.getpid(), 2)\n", encoding="utf-8")
    script = """
import time
import ui.app.self_test
from ui.app.cli import leave, main

def attempts(folder, demo):
    for n in range(5000):  # takes longer to delete than the interrupt waits
        (folder / str(n)).touch()
    yield "import", lambda: str(__import__("sender"))
    yield "rest", lambda: str(time.sleep(1))

ui.app.self_test.attempts = attempts
leave(main(["self-test"]))
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", script], capture_output=True, text=True, check=False,
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "")
    assert names(tmp_path) == ["sender.py"]


@pytest.mark.long
@pytest.mark.parametrize("ending", [".mp4", ".webp"])
def test_after_a_kill_the_target_is_as_before_and_the_next_export_clears_up(ending, tmp_path):
    target = tmp_path / f"a{ending}"
    target.write_bytes(b"old")
    process = started(target)
    process.kill()
    process.communicate(timeout=30)
    assert target.read_bytes() == b"old"
    left = [name for name in names(tmp_path) if name.endswith(".part")]
    assert len(left) == 1
    old = time.time() - 10
    os.utime(tmp_path / left[0], (old, old))
    make(options(target))
    assert names(tmp_path) == [target.name]
    assert target.stat().st_size > 1000


@pytest.mark.long
def test_what_another_export_writes_is_not_cleared_away(tmp_path):
    target = tmp_path / "a.mp4"
    process = started(target)
    try:
        (part,) = tmp_path.glob(".*.part")
        old = time.time() - 10
        os.utime(part, (old, old))
        clear_stale(target)
        assert part.exists()
    finally:
        process.kill()
        process.communicate(timeout=30)
    os.utime(part, (old, old))
    clear_stale(target)
    assert not part.exists()


def test_only_its_own_leftovers_are_cleared_away(tmp_path):
    kept = [".b.mp4.0123abcd.part", ".a.mp4.txt", ".a.mp4.0123abcdef.part", "a.mp4.0123abcd.part"]
    for name in [*kept, ".a.mp4.0123abcd.part"]:
        (tmp_path / name).write_bytes(b"")
        os.utime(tmp_path / name, (0, 0))
    clear_stale(tmp_path / "a.mp4")
    assert names(tmp_path) == sorted(kept)


# --- the disk --------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder: Path, size: str):
    """Mount a file system of that size, where that is allowed."""
    folder.mkdir()
    asked = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no small disk can be mounted: {error}")
    if done.returncode:
        pytest.skip(f"no small disk can be mounted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.long
@pytest.mark.parametrize("ending", [".mp4", ".webp", ".apng", "/", ".svg", ".pdf"])
def test_a_full_disk_is_a_line_and_leaves_what_was_there(ending, tmp_path):
    moves = ending not in (".png", ".svg", ".pdf")
    with small_disk(tmp_path / "disk", "24k") as disk:
        target = f"{disk}/a{ending}"
        old = Path(target) if ending in (*ENDINGS, ".png", ".svg", ".pdf") else None
        if old is not None:
            old.write_bytes(b"old")
        before = names(disk)
        length = ("--length", "2", "--fps", "10") if moves else ()
        done = command("-o", target, "--size", "640x480", *length)
        assert done.returncode == 2
        assert "No space left" in done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""
        assert names(disk) == before
        if old is not None:
            assert old.read_bytes() == b"old"


@pytest.mark.long
def test_a_limit_on_the_length_of_files_is_a_line(tmp_path):
    resource = pytest.importorskip("resource", reason="this system has no such limits")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = command("-o", str(tmp_path / "a.mp4"), "--length", "3", preexec_fn=limit,
                   env=environment)  # fmt: skip
    assert done.returncode == 2
    assert "too large" in done.stderr
    assert names(tmp_path) == []


@pytest.mark.long
@pytest.mark.parametrize("ending", [".mp4", "-%02d.png", "/"])
def test_a_folder_that_may_not_be_written_is_a_line(ending, tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):  # root may write everywhere: a read-only disk stops it, too
        folder.chmod(0o755)
        with small_disk(tmp_path / "disk", "1m") as disk:
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
            done = command("-o", f"{disk}/a{ending}", "--size", "480x320", "--length", "1")
            assert names(disk) == []
    else:
        done = command("-o", f"{folder}/a{ending}", "--size", "480x320", "--length", "1")
        folder.chmod(0o755)
        assert names(folder) == []
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Read-only" in done.stderr or "denied" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "{tmp}/none/a.mp4"], ["none", "exists"]),
        (["-o", "{tmp}/none/frames/"], ["none", "exists"]),
        (["-o", "{tmp}/none/f-%d.png"], ["none", "exists"]),
        (["-o", "{tmp}"], ["ends in .mp4"]),
        (["-o", "{tmp}/a.avi"], ["a.avi", ".mp4"]),
        (["-o", "{tmp}/folder.mp4"], ["a file", "folder.mp4/"]),
        (["-o", "{tmp}/f-%d-%d.png"], ["one number"]),
        (["-o", "{tmp}/f-%s.png"], ["one number"]),
        (["-o", "{tmp}/a.mp4", "--size", "481x320"], ["481x320", "even", "482x320"]),
        (["-o", "{tmp}/a.mp4", "--size", "99999x320"], ["99999x320", "7680x4320"]),
        (["-o", "{tmp}/a.mp4", "--transparent"], ["--transparent", ".mp4 cannot"]),
        (["-o", "{tmp}/a.gif", "--transparent"], ["--transparent", ".gif cannot"]),
        (["-o", "{tmp}/a.gif", "--sound"], ["--sound", ".mp4, .webm", ".gif has none"]),
        (["-o", "{tmp}/a.png", "--sound"], ["--sound", ".png has none"]),
        (["-o", "{tmp}/a.mp4", "--sound", "--scene", "race"], ["--sound", "a race shows none"]),
        (["-o", "{tmp}/a.gif", "--fps", "60"], ["--fps = 60", "1 to 50"]),
        (["-o", "{tmp}/a.mp4", "--fps", "0"], ["--fps = 0"]),
        (["-o", "{tmp}/a.mp4", "--pace", "nan"], ["--pace", "seconds"]),
        (["-o", "{tmp}/a.mp4", "--pace", "-1"], ["--pace", "seconds"]),
        (["-o", "{tmp}/a.mp4", "--pace", "1", "--length", "2"], ["not both"]),
        (["-o", "{tmp}/a.mp4", "--pace", "9000"], ["--pace", "frames"]),
        (["-o", "{tmp}/a.png", "--length", "2"], ["--length", ".png is a still"]),
        (["-o", "{tmp}/a.mp4", "--op", "2"], ["--op", ".mp4 moves"]),
        (["-o", "{tmp}/a.png", "--op", "99"], ["--op = 99", "0 to"]),
        (["-o", "{tmp}/a.png", "--row", "64"], ["--row = 64", "0 to 63"]),
        (["-o", "{tmp}/a.mp4", "--visits", "5:3"], ["5:3", "A:B"]),
        (["-o", "{tmp}/a.mp4", "--scene", "opera"], ["opera", "board"]),
        (["-o", "{tmp}/a.pdf", "--notes"], ["--notes", "lesson"]),
        (["-o", "{tmp}/a.png", "--steps", "1"], ["--steps", "--visits"]),
        (["online-hardmax", "-o", "a.mp4"], ["online-hardmax", "05-online-softmax", ".md"]),
        (["none.md", "-o", "a.mp4"], ["none.md", "No such file"]),
        *(
            (["online-softmax", "-o", f"a{ending}", *more], words)
            for ending, more, words in (
                (".mp4", ["--steps", "8:9"], ["--steps", "8:9", "<= 8"]),
                (".mp4", ["--visits", "1:2"], ["--visits", "lesson"]),
                (".mp4", ["--scene", "memory"], ["--scene", "lesson"]),
                (".png", ["--row", "2"], ["--row", "lesson"]),
                (".png", ["--transparent"], ["--transparent", "window"]),
                (".pdf", ["--length", "2"], ["--length", "still"]),
                (".pdf", ["--per-page", "3"], ["--per-page", "1 or 2"]),
                (".mp4", ["--answers", "end"], ["--answers", "handout"]),
            )
        ),
        *(
            (["-o", "{tmp}/a.mp4", "--scene", "race", name, value], [f"export: {name} = "])
            for name, value in (
                ("--visits", "2:4"),
                ("--by", "tile"),
                ("--row", "3"),
                ("--pace", "2"),
                ("--steps", "1:2"),
            )
        ),
    ],
)
def test_what_cannot_be_is_a_line_and_leaves_nothing(
    arguments, words, tmp_path, capsys, monkeypatch
):
    from ui.app.cli import main

    monkeypatch.chdir(tmp_path)  # a long path would be cut in the message
    (tmp_path / "folder.mp4").mkdir()
    filled = [a.replace("{tmp}", ".") for a in arguments]
    try:
        code = main(["export", *[str(DEMO)] * (filled[0] == "-o"), *filled])
    except SystemExit as stop:
        code = stop.code
    error = capsys.readouterr().err
    assert code == 2
    assert error.count("\n") == 1
    for word in words:
        assert word in error
    assert names(tmp_path) == ["folder.mp4"]


@pytest.mark.parametrize("ending", [".mp4", ".webm", ".gif", ".webp"])
def test_a_missing_encoder_is_a_line(ending, tmp_path, monkeypatch, capsys):
    import av

    from ui.app.cli import main

    monkeypatch.setattr(av, "codecs_available", {"h264"})
    wanted = ["export", str(DEMO), "-o", str(tmp_path / f"a{ending}"), "--length", "1"]
    assert main(wanted) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "encoder" in error
    assert names(tmp_path) == []


@pytest.mark.long
def test_without_pyav_what_needs_none_is_exported_all_the_same(tmp_path):
    code = (
        "import sys; sys.modules['av'] = None; from ui.app.cli import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    for ending, expected in ((".mp4", 2), (".apng", 0), (".png", 0), (".gif", 2)):
        length = () if ending == ".png" else ("--length", "0.5", "--fps", "4")
        asked = ["export", DEMO, "-o", tmp_path / f"a{ending}", "--size", "480x320", *length]
        done = subprocess.run(
            [sys.executable, "-c", code, *asked],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == expected, done.stderr
        assert ("PyAV" in done.stderr) is (expected == 2)
        assert done.stderr.count("\n") == (expected == 2)
    assert names(tmp_path) == ["a.apng", "a.png"]


# --- single frames ---------------------------------------------------------------------------


def test_a_shorter_sequence_never_mixes_with_a_longer_one(tmp_path):
    target = f"{tmp_path}/frames/"
    make(options(target, length=0.5))
    kept = picture(tmp_path / "frames" / "frame-00004.png")
    with pytest.raises(InputError, match=r"frame-0000[34]\.png"):
        make(options(target, length=0.3))
    assert (picture(tmp_path / "frames" / "frame-00004.png") == kept).all()
    make(options(target, length=0.5, theme="light"))  # as long: every frame is replaced
    assert (picture(tmp_path / "frames" / "frame-00004.png") != kept).any()
    assert len(names(tmp_path / "frames")) == 5
    assert names(tmp_path) == ["frames"]
