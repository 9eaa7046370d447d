"""Files are read beside the window: it goes on, Cancel helps, and the latest wish counts."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from simulator.lesson.link import ViewLink
from simulator.problem.scenario import load_scenario, scenario_toml, with_values
from tests.helpers.changes import choose_algorithm
from ui.export.writers.metadata import note_of

if sys.platform == "linux":
    import fcntl

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="leases are of Linux")

SLOW = with_values(load_scenario(SCENARIOS / "causal.toml"), {"title": "Slow"})
LESSON = (
    '+++\ntitle = "T"\n+++\n## One\n```toml step\nscenario = "causal"\nchange.title = "Slow"\n```\n'
)
NOTE = note_of(ViewLink(SLOW), Path(), "1", "x").text.replace("&", "&amp;")
CONTENTS = {
    ".toml": scenario_toml(SLOW),
    ".md": LESSON,
    ".svg": f"<svg><metadata>{NOTE}</metadata></svg>",
}


@contextmanager
def held_back(path: Path, content: str) -> Iterator[threading.Event]:
    """Make a file that its reader waits for, until the event is set; it is at last after 20 s."""
    path.write_text(content, encoding="utf-8")
    go, late = threading.Event(), []
    lease = os.open(path, os.O_WRONLY)  # as a server takes one that lends the file to others
    fcntl.fcntl(lease, fcntl.F_SETSIG, signal.SIGURG)  # when somebody waits; nothing comes of it
    fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)

    def give_up() -> None:
        late.append(not go.wait(20))
        os.close(lease)

    thread = threading.Thread(target=give_up)
    thread.start()
    try:
        yield go
    finally:
        go.set()
        thread.join()
    assert late == [False], "the window stood still until the file was there"


def title(window: Any) -> str:
    return str(window.session.scenario.title)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("ending", list(CONTENTS))
def test_the_window_goes_on_while_a_file_is_read(ending, window, tmp_path, qtbot) -> None:
    path = tmp_path / f"a\x1bb{ending}"
    with held_back(path, CONTENTS[ending]) as go:
        before = window.session.view
        window.files.open_path(path)
        window.session.step()
        qtbot.waitUntil(lambda: window.session.view is not before)
        qtbot.waitUntil(window.header.progress.isVisible)
        words = window.header.progress.accessibleDescription()
        assert words == rf"reading a\x1bb{ending}: 0 %"
        go.set()
    window.session.settle()
    assert title(window) == "Slow"
    assert not window.header.progress.isVisible()


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("instead", ["cancel", "demo", "change"])
def test_what_is_wanted_later_counts(instead, window, tmp_path, qtbot) -> None:
    path = tmp_path / "slow.toml"
    acts = {
        "cancel": window.header.progress.cancelled.emit,
        "demo": lambda: window.files.open_path(SCENARIOS / "naive.toml"),
        "change": lambda: choose_algorithm(window, "naive"),
    }
    with held_back(path, CONTENTS[".toml"]) as go:
        window.files.open_path(path)
        acts[instead]()
        qtbot.waitUntil(lambda: not window.session.busy)
        go.set()
    window.session.settle()
    assert title(window) != "Slow"
    algorithm = window.session.scenario.attention.algorithm
    assert algorithm == ("flash2" if instead == "cancel" else "naive")
    assert path not in window.settings.recent


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("ending", [*CONTENTS, ".png", ".pdf"])
def test_a_pipe_is_refused_in_one_line(ending, window, tmp_path) -> None:
    path = tmp_path / f"pipe{ending}"
    os.mkfifo(path)
    window.files.open_path(path)
    window.session.settle()
    assert window.messages.text().startswith(f"{path}: expected a readable file (it is a pipe")


def test_a_file_that_does_not_fit_in_memory_is_one_line(window, tmp_path) -> None:
    told = []
    path = tmp_path / "large.toml"
    window.session.reading.read(path, lambda _: bytearray(2**62), told.append, told.append)
    window.session.settle()
    assert [type(error) for error in told] == [InputError]
    assert str(told[0]) == f"{path}: expected a file that fits in memory"
