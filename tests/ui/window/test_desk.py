"""Which layout is on show: found again at any size, lent to a lesson before the window shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCREEN = '{"screens": [{"name": "hall", "x": 0, "y": 0, "width": 3840, "height": 2160}]}'
LEFT_BEHIND = """
import sys
from pathlib import Path
from PySide6.QtTest import QTest
from simulator.base.assets import LESSONS, SCENARIOS
from ui.app.start import make_window
from ui.safety.settings import Settings

settings = Settings(Path(sys.argv[1]))
settings.motion = False
window = make_window(SCENARIOS / "flash2.toml", settings=settings)
window.show()
window.session.settle()
window.desk.take(sys.argv[2])
getattr(window, sys.argv[3])()
QTest.qWait(50)
window.close()
again = make_window(LESSONS / "01-soft-lookup.md", settings=settings)
again.session.settle()  # the lesson has its layout before the window is shown
again.show()
QTest.qWait(50)
again.close()
print("closed")
"""

LARGE_AND_BACK = """
import sys
from pathlib import Path
from PySide6.QtTest import QTest
from simulator.base.assets import SCENARIOS
from ui.app.start import make_window
from ui.safety.settings import Settings

window = make_window(SCENARIOS / "flash2.toml", settings=Settings(Path(sys.argv[1])))
window.resize(1280, 720)
window.show()
window.session.settle()
for grow in (window.showMaximized, window.showFullScreen):
    grow()
    QTest.qWait(100)
    print(window.width() > 3800, end=" ")
    window.showNormal()
    for _ in range(40):
        QTest.qWait(50)
        if window.width() == 1280:
            break
    print(window.width(), window.height())
window.resize(3840, 2160)
QTest.qWait(100)
window.resize(1280, 720)
print(window.width(), window.height())
window.close()
"""


def run(folder: Path, script: str, *arguments: str) -> tuple[int, str, str]:
    """Run a script on a large screen, in a process of its own; return its end and its words."""
    screen = folder / "screen.json"
    screen.write_text(SCREEN)
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder / "settings.ini"), *arguments],
        cwd=ROOT, env={**os.environ, "QT_QPA_PLATFORM": f"offscreen:configfile={screen}"},
        text=True, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("state", ["showMaximized", "showFullScreen"])
@pytest.mark.parametrize("layout", ["steps", "algorithm"])
def test_a_lesson_opens_in_a_window_that_was_left_large(tmp_path, layout, state):
    """In a process of its own: what is wrong here ends it."""
    assert run(tmp_path, LEFT_BEHIND, layout, state) == (0, "closed\n", "")


@pytest.mark.long
def test_a_window_that_was_large_is_as_small_again_as_before(tmp_path):
    """Its text, which was larger, keeps it from that for a moment."""
    code, told, _ = run(tmp_path, LARGE_AND_BACK)
    assert (code, told.splitlines()) == (0, ["True 1280 720", "True 1280 720", "1280 720"])
