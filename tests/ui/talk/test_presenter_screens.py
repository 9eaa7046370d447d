"""A talk on screens of usual size: everything comes back as it was, and two screens are used."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCREENS = [
    {"name": "desk", "x": 0, "y": 0, "width": 1920, "height": 1080},
    {"name": "hall", "x": 1920, "y": 0, "width": 1280, "height": 800},
]
BEGIN = """
import json, sys
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMainWindow
from simulator.base.assets import LESSONS, SCENARIOS
from ui.app.start import make_window
from ui.safety.settings import Settings
from ui.talk import arrival

LESSON = LESSONS / "05-online-softmax.md"
settings = Settings(Path(sys.argv[1]))
settings.motion = False
window = make_window(SCENARIOS / "flash2.toml", settings=settings)
window.resize(1400, 900)
window.move(100, 100)
window.show()
window.session.settle()
presenter = window.presenter
out = {}
"""
COMES_BACK = (
    BEGIN
    + """
class Sizes(dict):
    def __eq__(self, other):  # Qt rounds by where docks come from
        return self.keys() == other.keys() and all(
            abs(a - b) <= 1 for name in self for a, b in zip(self[name], other[name])
        )

def looks():
    seen = (d for _, d in window.docks if not d.visibleRegion().isEmpty())
    docks = {d.objectName(): d.geometry().getRect() for d in seen}
    places = {
        d.objectName(): (d.isHidden(), d.isFloating(), window.dockWidgetArea(d).value)
        for _, d in window.docks
    }
    bar = window.lessons.bar
    return [
        window.geometry().getRect(), window.windowState().value, places, Sizes(docks),
        window.menuBar().isVisible(), window.header.isVisible(),
        bar.isVisible() and bar.height(),
    ]

def settled():
    found = None
    while found != looks():
        found = looks()
        window.docks.sizes.fit()
        QTest.qWait(100)
    return found

for lesson in (False, True):
    if lesson:
        window.lessons.open(LESSON)
        window.session.settle()
    window.docks["scenario"].show()
    window.docks["values"].show()
    for state in ("NoState", "Maximized", "FullScreen"):
        window.setWindowState(getattr(Qt.WindowState, f"Window{state}"))
        before = settled()
        for turn in range(2):
            presenter.start()
            for _ in range(30):
                QTest.qWait(100)
                on = [
                    window.isFullScreen(), window.size() == window.screen().size(),
                    not window.transport.isVisible(), not window.menuBar().isVisible(),
                    not window.header.isVisible(), not window.docks["scenario"].isVisible(),
                    lesson == presenter.speaker.isVisible(),
                ]
                if all(on):
                    break
            presenter.end()
            for _ in range(30):
                QTest.qWait(100)
                if looks() == before:
                    break
            found = {"on": on, "back": [one == other for one, other in zip(before, looks())]}
            out[f"{lesson} {state} {turn}"] = found
window.setWindowState(Qt.WindowState.WindowNoState)
window.lessons.player.leave()
window.session.settle()
QTest.qWait(100)
geometry, docks = window.geometry(), window.saveState()
presenter.start()
QTest.qWait(100)
window.close()
closed = {"on": [not presenter.on, not presenter.awake.on]}
again = QMainWindow()
again.restoreGeometry(settings.geometry)
closed["back"] = [again.geometry() == geometry, settings.state(settings.layout) == docks]
out["closed"] = closed
print(json.dumps(out))
"""
)
TWO_SCREENS = (
    BEGIN
    + """
def seen():
    speaker = presenter.speaker
    return {
        "window": [window.screen().name(), window.isFullScreen(), window.size().toTuple()],
        "speaker": [speaker.screen().name(), speaker.isFullScreen(), speaker.size().toTuple()]
        if speaker.isVisible() else None,
        "active": window.isActiveWindow(),
        "scale": window.style_now.scale,
    }

def note(name):
    found = []
    while len(found) < 4 or any(each != found[-1] for each in found[-4:]):
        QTest.qWait(100)  # a machine that does other work may come to little in it
        found.append(seen())
    out[name] = found[-1]

class InBetween(QObject):
    # What the window is like when it would take input after it has got another size.
    def __init__(self):
        super().__init__()
        self.found = []
        window.installEventFilter(self)

    def eventFilter(self, watched, event):
        if event.type() is QEvent.Type.Resize:
            QTimer.singleShot(0, self, self.note)
        return False

    def note(self):
        self.found.append([window.size().toTuple(), window.style_now.scale])

in_between = InBetween()
arrival._UNSEEN_MS = 5000  # a machine that does other work takes long: then it is painted sooner
window.resize(1700, 1000)  # of another text size than either screen
presenter.start()
note("without a lesson")
in_between.found.clear()
presenter.end()
note("between talks")
out["on the way back"] = list(in_between.found)
window.lessons.open(LESSON)
window.session.settle()
presenter.start()
note("with a lesson")
class Restyled(QObject):
    count = 0

    def eventFilter(self, watched, event):
        self.count += event.type() is QEvent.Type.StyleChange
        return False

class Painted(QObject):
    def __init__(self):
        super().__init__()
        self.found = []

    def eventFilter(self, watched, event):
        if event.type() is QEvent.Type.Paint:
            self.found.append([*window.size().toTuple(), window.style_now.scale])
        return False

restyled, painted = Restyled(), Painted()
window.installEventFilter(restyled)
window.board.installEventFilter(painted)
in_between.found.clear()
presenter.link.swap_screens()
note("swapped")
out["on the way"] = list(in_between.found)
out["restyled"] = restyled.count
out["painted"] = list(painted.found)
class Resized(QObject):
    def __init__(self):
        super().__init__()
        self.found = []

    def eventFilter(self, watched, event):
        if event.type() is QEvent.Type.Resize:
            self.found.append(event.size().toTuple())
        return False

resized = Resized()
presenter.speaker.installEventFilter(resized)
painted.found.clear()
presenter.link.swap_screens()
note("swapped back")
out["sizes of the speaker"] = resized.found
window.board.update()
QTest.qWait(100)
out["painted back"] = list(painted.found)
presenter.end()
note("ended")
window.close()
print(json.dumps(out))
"""
)


def stage(high: int) -> float:
    """Return the scale of text on the stage of a screen that is at least 16:9 wide."""
    return pytest.approx(0.025 * high / 11)


def on_screens(script: str, folder: Path) -> dict[str, dict[str, object]]:
    """Run a script on two screens of usual size; the tests' own is small and alone."""
    extra = {"logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}
    config = folder / "screens.json"
    config.write_text(json.dumps({"screens": [{**screen, **extra} for screen in SCREENS]}))
    platform = f"offscreen:configfile={config}"
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder / "settings.ini")],
        cwd=ROOT, env={**os.environ, "QT_QPA_PLATFORM": platform, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.long
def test_everything_comes_back_as_it_was(tmp_path) -> None:
    found = on_screens(COMES_BACK, tmp_path)
    assert len(found) == 13
    assert {name: row for name, row in found.items() if not all(row["on"] + row["back"])} == {}


@pytest.mark.long
def test_two_screens(tmp_path) -> None:
    found = on_screens(TWO_SCREENS, tmp_path)
    desk, hall = ([s["name"], True, [s["width"], s["height"]]] for s in SCREENS)
    assert found["without a lesson"] == {
        "window": desk, "speaker": None, "active": True, "scale": stage(1080),
    }  # fmt: skip
    assert found["with a lesson"] == {
        "window": desk, "speaker": hall, "active": True, "scale": stage(1080),
    }  # fmt: skip
    assert found["swapped"] == {
        "window": hall, "speaker": desk, "active": True, "scale": stage(720),
    }  # fmt: skip
    assert found["restyled"] == 1  # not for the size on the way
    assert found["sizes of the speaker"] == [[1280, 800]]
    assert found["swapped back"] == found["with a lesson"]
    for name, (wide, high) in (("painted", (1280, 800)), ("painted back", (1920, 1080))):
        assert found[name], name
        assert [each for each in found[name] if each != [wide, high, stage(wide * 9 / 16)]] == []
    # Each time the window takes input before it takes its new sizes.
    assert found["on the way back"][0] == [[1700, 1000], stage(1080)]
    assert found["on the way"][-1] == [[1280, 800], stage(1080)]
    assert found["between talks"]["scale"] == 1.0
    ended = found["ended"]
    assert ended["window"] == ["desk", False, [1700, 1000]]
    assert (ended["speaker"], ended["scale"]) == (None, 1.0)
