"""Measurements of what is drawn: painting, stepping, starting, each compared with a floor.

Painting is compared with a painter that draws the same images and words, and nothing else; a
window's answer with that of a bare window with these images and words; the start with that of a
bare window. The floor and our own time are measured in turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.problem.scenario import Scenario, parse_scenario
from simulator.run.row_report import row_report
from simulator.run.trace import simulate
from tests.bench.numbers import Measurement, benchmark_scenario, measured, p95, turns

if TYPE_CHECKING:
    from tests.bench.floors import BareWindow, Strokes
    from ui.window.main_window import MainWindow

ROOT = Path(__file__).resolve().parents[2]
PICTURE = (1920, 1080)
SIX_DOCKS = ("memory", "softmax", "code", "formula", "traffic", "exactness")
"""Docks of a crowded window, each of which shows something new at every step."""
SMALL = {
    "attention": {"seqlen_q": 64, "head_dim": 32, "dtype": "float16"},
    "mask": {"causal": True},
    "tiling": {"rows": 16, "cols": 16},
}
SIX_IMAGES = "QPainter, six images and sixty words"
PAINTER, WINDOW = "QPainter, the same images and words", "a bare window, the same images and words"


def measure_ui() -> Iterator[Measurement]:
    """Yield all measurements of this module; takes about a minute."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    yield _painting("painting the scene at 1920x1080, N = 64", parse_scenario(SMALL))
    yield _painting("painting the scene at 1920x1080, N = 4096", benchmark_scenario(4096))
    for size in (PICTURE, (3840, 2160)):
        yield _moving(size, "N = 64", parse_scenario(SMALL))
        yield _moving(size, "N = 4096", benchmark_scenario(4096))
    yield stepping()
    yield stepping(docks=SIX_DOCKS)
    yield from _switching()
    yield from _sliders()
    yield _inspecting()
    yield start()


def _painting(name: str, scenario: Scenario) -> Measurement:
    """Measure painting the whole scene, another op each time."""
    from PySide6.QtGui import QImage, QPainter

    from tests.bench.floors import RecordingPainter, Strokes
    from ui.export.scenes import scene_moment
    from ui.look.theme import DARK
    from ui.widgets.application import application

    application()
    trace = simulate(scenario)
    image = QImage(*PICTURE, QImage.Format.Format_RGB32)
    middle = len(trace) // 2
    ops = [(visit, op) for visit in range(middle, min(middle + 8, len(trace)))
           for op in range(len(trace.program.ops(visit)))]  # fmt: skip
    times, floors = [], []
    for n in turns(len(ops), 6):
        snapshot = trace.snapshot(*ops[n])
        report = row_report(snapshot, snapshot.visit.rows.start + 3)
        moment = scene_moment("scene", snapshot, report, DARK, PICTURE)
        with QPainter(image) as painter:
            started = time.perf_counter()
            moment.paint(painter)
            times.append(time.perf_counter() - started)
        strokes = Strokes()
        with RecordingPainter(image, strokes) as painter:
            moment.paint(painter)
        with QPainter(image) as painter:
            started = time.perf_counter()
            strokes.paint(painter)
            floors.append(time.perf_counter() - started)
    cold = len(times) // 4
    return measured(f"{name}, median", "ms", times[cold:], floors[cold:], PAINTER, target=12)


def _moving(size: tuple[int, int], words: str, scenario: Scenario) -> Measurement:
    """Measure a frame between two states, of each op of a visit, over what stays of the scene."""
    from PySide6.QtGui import QImage, QPainter

    from simulator.program.playback import Cursor, Granularity, step
    from simulator.run.motion import Motion
    from tests.bench.floors import paint_six_images
    from ui.export.scenes import scene_moment
    from ui.look.theme import DARK
    from ui.widgets.application import application

    application()
    trace = simulate(scenario)
    still, image = (QImage(*size, QImage.Format.Format_RGB32) for _ in range(2))
    visit, times, floors = len(trace) // 2, [], []
    for op in range(len(trace.program.ops(visit))):
        before = step(trace.program, Cursor(visit, op), Granularity.OP, forward=False)
        motion = Motion(trace.snapshot(before.visit, before.op), trace.snapshot(visit, op))
        report = row_report(motion.after, motion.after.visit.rows.start + 3)
        moment = scene_moment("scene", motion.after, report, DARK, size)
        with QPainter(still) as painter:
            moment.paint_around(painter, ground=True)
        for n in range(1, 12):
            started = time.perf_counter()
            with QPainter(image) as painter:
                painter.drawImage(0, 0, still)
                moment.paint_moving(painter, motion, n / 12)
            times.append(time.perf_counter() - started)
            started = time.perf_counter()
            with QPainter(image) as painter:
                paint_six_images(painter, moment.style, moment.rect)
            floors.append(time.perf_counter() - started)
    name = f"a frame in motion at {size[0]}x{size[1]}, {words}, median"
    return measured(name, "ms", times, floors, SIX_IMAGES, target=16, most=2)


@contextmanager
def _open_window() -> Iterator[tuple[MainWindow, BareWindow]]:
    """Open a window on the benchmark scenario, N = 4096, d = 128, and a bare one as large."""
    from tests.bench.floors import BareWindow
    from ui.safety.collector import collect_here
    from ui.safety.settings import Settings
    from ui.session.session import Session
    from ui.widgets.application import application
    from ui.window.main_window import MainWindow

    collect_here(application())  # as the program does
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder) / "settings.ini")
        settings.motion = False
        session = Session("numpy")
        window = MainWindow(session, settings)
        window.resize(*PICTURE)
        window.show()
        session.start(benchmark_scenario(4096), None)
        session.settle()
        bare = BareWindow(window.size())
        yield window, bare
        bare.close()
        window.close()


def _beside(
    window: MainWindow, bare: BareWindow, most: int, budget: float, act: Callable[[int], object]
) -> tuple[list[float], list[float]]:
    """Return how long a window takes to act, and how long a bare window takes to paint the same."""
    from PySide6.QtWidgets import QApplication

    from tests.bench.floors import recorded

    with recorded() as strokes:
        act(0)
    times, floors = [], []
    for n in turns(most, budget):
        started = time.perf_counter()
        act(n + 1)
        times.append(time.perf_counter() - started)
        floors.append(bare.seconds(strokes))
        QApplication.processEvents()
    return times, floors


def stepping(steps: int = 120, docks: tuple[str, ...] = ()) -> Measurement:
    """Measure from the key press to the painted window, with these docks open and visible."""
    from PySide6.QtCore import QEvent, Qt
    from PySide6.QtGui import QKeyEvent
    from PySide6.QtWidgets import QApplication

    with _open_window() as (window, bare):
        session, app = window.session, QApplication.instance()
        assert app is not None
        for name in docks:
            window.docks[name].show()
            window.docks[name].raise_()
        session.settle()
        assert all(window.docks[name].isVisible() for name in docks)

        def press(_: int) -> None:
            asked = session.view
            key = QKeyEvent(
                QEvent.Type.ShortcutOverride, Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier
            )
            QApplication.sendEvent(window, key)
            window.actions_by_name["forward"].trigger()
            while session.view is asked:
                app.processEvents()
            app.processEvents()  # paints what the new view has marked

        times, floors = _beside(window, bare, steps, 8, press)
    words = f", {len(docks)} docks" if docks else ""
    name = f"key press to painted window, N = 4096{words}, p95"
    return measured(name, "ms", times, floors, WINDOW, figure=p95, target=33)


def _switching() -> list[Measurement]:
    """Measure the longest time in which a change of layout blocks the window, the first too."""
    from simulator.program.algorithms import ALGORITHMS
    from tests.helpers.changes import choose_algorithm
    from ui.look.layouts import LAYOUTS

    switches: list[list[Callable[[], object]]] = []
    out = []
    with _open_window() as (window, bare):
        take, choose = window.desk.take, partial(choose_algorithm, window)
        switches = [
            [partial(take, spec.name) for spec in (*LAYOUTS, *LAYOUTS)],
            [window.next_theme] * 6,
            [partial(choose, name) for name in (*ALGORITHMS, *ALGORITHMS)],
        ]
        for what, each in zip(("layout", "theme", "algorithm"), switches, strict=True):
            times, floors = [], []
            for n in turns(len(each), 8):
                times.append(_blocked(window, each[n]))
                floors.append(bare.seconds(_drawn(window)))
            name = f"switching {what} blocks the window, longest"
            out.append(measured(name, "ms", times, floors, WINDOW, figure=max, target=100))
            window.desk.take(LAYOUTS[0].name)
            for name in SIX_DOCKS:
                window.docks[name].show()
    return out


def _drawn(window: MainWindow) -> Strokes:
    """Return the images and words of everything that is visible."""
    from tests.bench.floors import recorded

    with recorded() as strokes:
        window.grab()
    return strokes


def _inspecting(moves: int = 80) -> Measurement:
    """Measure from a move of the inspector's sliders to the painted window, 12 heads of 495 x 495.

    Small maps of all heads are made in the other thread at the same time.
    """
    from PySide6.QtWidgets import QApplication

    from ui.panels.inspector.panel import InspectorPanel

    capture = {"input": {"source": "capture", "name": "passage-layer1"}}
    with _open_window() as (window, bare):
        window.session.start(parse_scenario(capture), None)
        window.desk.take("inspector")
        window.session.settle()
        panel = window.docks.panel("inspector")
        assert isinstance(panel, InspectorPanel)
        sliders = [panel.bar.sliders[name] for name in ("temperature", "window", "sinks")]

        def move(n: int) -> None:
            slider = sliders[n % len(sliders)]
            slider.setValue(slider.value() + 1)
            QApplication.processEvents()

        times, floors = _beside(window, bare, moves, 8, move)
    name = "inspector slider to painted window, 12 x 495 x 495, p95"
    return measured(name, "ms", times, floors, WINDOW, figure=p95, target=33)


def _sliders(steps: int = 60) -> list[Measurement]:
    """Measure from another length or sharing in the layout "Cache" to the painted window."""
    from PySide6.QtWidgets import QApplication

    from simulator.problem.models import models
    from ui.panels.heads.panel import HeadsPanel
    from ui.panels.kv_cache.panel import CachePanel

    out = []
    with _open_window() as (window, bare):
        window.desk.take("cache")
        window.session.settle()
        cache, heads = window.docks.panel("cache"), window.docks.panel("heads")
        assert isinstance(cache, CachePanel)
        assert isinstance(heads, HeadsPanel)
        window.session.model_choice.take(models()["DeepSeek-V3"], by_hand=True)
        QApplication.processEvents()
        for name, control in (("tokens", cache.card.tokens), ("KV heads", heads.slider)):

            def move(n: int) -> None:
                control.setValue((n + 1) * 17 % (control.maximum() + 1))  # noqa: B023
                QApplication.processEvents()

            times, floors = _beside(window, bare, steps, 5, move)
            words = f"changing {name} to painted window, p95"
            out.append(measured(words, "ms", times, floors, WINDOW, figure=p95, target=33))
    return out


def _blocked(window: MainWindow, switch: Callable[[], object]) -> float:
    """Return the longest time without a turn for input during a switch, until all is shown."""
    from PySide6.QtWidgets import QApplication

    started = time.perf_counter()
    switch()
    longest = time.perf_counter() - started
    quiet = 0
    while quiet < 3:
        started = time.perf_counter()
        QApplication.processEvents()
        longest = max(longest, time.perf_counter() - started)
        quiet = quiet + 1 if window.session.settled else 0
        time.sleep(0.001)
    return longest


def start(starts: int = 4) -> Measurement:
    """Measure `python -m ui` to the first painted view, warm, and a window with one word."""
    from tests.bench.floors import BARE_START

    times, floors = [], []
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "TILESCOPE_TIME_START": "1",
            "TILESCOPE_SETTINGS": str(Path(folder) / "settings.ini"),
            "QT_QPA_PLATFORM": "offscreen",
        }
        for _ in turns(starts + 1, 15):
            times.append(_first_frame(["-m", "ui"], environment))
            floors.append(_first_frame(["-c", BARE_START], environment))
    name = "start to first painted view, warm, median"
    return measured(name, "s", times[1:], floors[1:], "the start of a bare window", target=1.5)


def _first_frame(arguments: list[str], environment: dict[str, str]) -> float:
    """Return how long Python takes to say that it has painted."""
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        return time.perf_counter() - started
