"""The window's end, whoever brings it about: at once, and no change is lost."""

import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

from tests.helpers.programs import run, started
from tests.real_window.screens import WHY_NO_X, x_screen

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are another thing there")

GONE = "TEST_SCREEN_IS_GONE"
# Not the first look: a change must be there, but younger than its copy.
CHANGE = """
if once("change"):
    change(algorithm="flash1")
if w.isWindowModified() and once("told"):
    say("changed")
"""
# A call of Xlib meets the dead screen before the event loop does.
CALL = f"""
if once("xlib"):
    import ctypes
    xlib = ctypes.CDLL("libX11.so.6")
    xlib.XOpenDisplay.restype = ctypes.c_void_p
    display = ctypes.c_void_p(xlib.XOpenDisplay(None))
    w.at_death = lambda: xlib.XSync(display, 0)
{CHANGE}
    while not os.path.exists(os.environ["{GONE}"]):
        threading.Event().wait(0.01)
    w.at_death()
"""
LATE = "ui.window.autosave.WAIT_MS = 10**6"


def kept(folder):
    return [path.read_text("utf-8") for path in (folder / "autosave").glob("*.toml")]


@pytest.mark.skipif(bool(WHY_NO_X), reason=WHY_NO_X)
@pytest.mark.parametrize(
    "dies",
    [
        "screen in a call",
        *(pytest.param(d, marks=pytest.mark.long) for d in ("screen", "connection")),
    ],
)
def test_changes_outlive_their_screen(dies, tmp_path):
    act, gone = CALL if dies == "screen in a call" else CHANGE, tmp_path / "gone"
    with ExitStack() as stack:
        server = stack.enter_context(ExitStack())
        environment = server.enter_context(x_screen(tmp_path)) | {GONE: str(gone)}
        program = started(tmp_path, act, setup=LATE, environment=environment)
        process = stack.enter_context(program)
        assert process.stdout.readline() == "changed\n"
        if dies != "connection":
            server.close()
            gone.touch()
        else:
            words = ["xdotool", "search", "--sync", "--name", "Tilescope ·", "windowkill"]
            subprocess.run(words, env=environment, check=True, capture_output=True)
        process.communicate()
    assert process.returncode == 1
    (copy,) = kept(tmp_path)
    assert "flash1" in copy


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(n, marks=pytest.mark.long) for n in (signal.SIGHUP, signal.SIGINT)),
    ],
)
def test_a_signal_closes_the_window_and_its_changes_are_offered(number, tmp_path, mine):
    with started(tmp_path, CHANGE, str(mine), setup=LATE) as process:
        assert process.stdout.readline() == "changed\n"
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, "", "")
    assert "geometry=" in (tmp_path / "settings.ini").read_text("utf-8")
    (copy,) = kept(tmp_path)
    assert "flash1" in copy
    assert "flash1" in (tmp_path / "unsaved.toml").read_text("utf-8")


@pytest.mark.long
def test_a_signal_ends_a_window_that_asks_something(tmp_path, mine):
    asking = (
        CHANGE.replace("w.isWindowModified()", 'box("unsaved")')
        + """
if w.isWindowModified() and once("asked"):
    w.quit()
"""
    )
    with started(tmp_path, asking, str(mine), setup=LATE) as process:
        assert process.stdout.readline() == "changed\n"
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 0
    assert kept(tmp_path)


@pytest.mark.long
def test_the_window_closes_whatever_is_at_work(tmp_path):
    act = """
    def wait(name):
        say("waiting")
        done.add(name)
        threading.Event().wait()

    if once("start"):
        w.session.background("for ever", lambda _: wait("task"))
        w.session.reading.start("file", "a share that is gone", lambda _: wait("file"), say)
    elif {"task", "file"} < done and once("close"):
        w.close()
    """
    done = run(tmp_path, act)
    assert (done.returncode, done.stdout, done.stderr) == (0, "waiting\n" * 2, "")
