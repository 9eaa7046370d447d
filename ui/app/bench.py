"""Measurements of what is drawn: painting, stepping, starting."""

from __future__ import annotations

import os
import statistics
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
from simulator.study.bench import Measurement, benchmark_scenario

if TYPE_CHECKING:
    from ui.window.main_window import MainWindow

ROOT = Path(__file__).resolve().parents[2]
PICTURE = (1920, 1080)
SIX_DOCKS = ("memory", "softmax", "code", "formula", "traffic", "exactness")
"""Docks of a crowded window, each of which shows something else at every step."""
SMALL = {
    "attention": {"seqlen_q": 64, "head_dim": 32, "dtype": "float16"},
    "mask": {"causal": True},
    "tiling": {"rows": 16, "cols": 16},
}


def measure_ui() -> Iterator[Measurement]:
    """Yield all measurements of this module; takes about a minute."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    yield _painting("painting the scene at 1920x1080, N = 64", parse_scenario(SMALL))
    yield _painting("painting the scene at 1920x1080, N = 4096", benchmark_scenario(4096))
    yield _stepping()
    yield _stepping(docks=SIX_DOCKS)
    yield from _switching()
    yield from _sliders()
    yield _inspecting()
    yield _start()


def _painting(name: str, scenario: Scenario) -> Measurement:
    """Measure the median time of painting the whole scene, another op each time."""
    from PySide6.QtCore import QRectF, QSizeF
    from PySide6.QtGui import QImage, QPainter

    from ui.export.composed import paint_scene, scene_style
    from ui.look.theme import DARK
    from ui.widgets.application import application

    application()
    trace = simulate(scenario)
    style, rect = scene_style(DARK, QSizeF(*PICTURE)), QRectF(0, 0, *PICTURE)
    image = QImage(*PICTURE, QImage.Format.Format_RGB32)
    times = []
    middle = len(trace) // 2
    for visit in range(middle, min(middle + 8, len(trace))):
        for op in range(len(trace.program.ops(visit))):
            snapshot = trace.snapshot(visit, op)
            report = row_report(snapshot, snapshot.visit.rows.start + 3)
            painter = QPainter(image)
            started = time.perf_counter()
            paint_scene(painter, snapshot, report, style, rect)
            times.append(time.perf_counter() - started)
            painter.end()
    warm = times[len(times) // 4 :]
    return Measurement(f"{name}, median", 1000 * statistics.median(warm), "ms", 12)


@contextmanager
def _open_window() -> Iterator[MainWindow]:
    """Open a window on the benchmark scenario, N = 4096, d = 128."""
    from ui.safety.settings import Settings
    from ui.session.session import Session
    from ui.widgets.application import application
    from ui.window.main_window import MainWindow

    application()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder) / "settings.ini")
        settings.motion = False
        session = Session("numpy")
        window = MainWindow(session, settings)
        window.resize(*PICTURE)
        window.show()
        session.start(benchmark_scenario(4096), None)
        session.settle()
        yield window
        window.close()


def _stepping(steps: int = 120, docks: tuple[str, ...] = ()) -> Measurement:
    """Measure from the key press to the painted window, these docks open and in sight."""
    from PySide6.QtCore import QEvent, Qt
    from PySide6.QtGui import QKeyEvent
    from PySide6.QtWidgets import QApplication

    with _open_window() as window:
        session, app = window.session, QApplication.instance()
        assert app is not None
        for name in docks:
            window.docks[name].show()
            window.docks[name].raise_()
        session.settle()
        assert all(window.docks[name].isVisible() for name in docks)
        times = []
        for _ in range(steps):
            asked = session.view
            started = time.perf_counter()
            press = QKeyEvent(
                QEvent.Type.ShortcutOverride, Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier
            )
            QApplication.sendEvent(window, press)
            window.actions_by_name["forward"].trigger()
            while session.view is asked:
                app.processEvents()
            app.processEvents()  # paints what the new view has marked
            times.append(time.perf_counter() - started)
    p95 = statistics.quantiles(times, n=20)[-1]
    words = f", {len(docks)} docks" if docks else ""
    return Measurement(f"key press to painted window, N = 4096{words}, p95", 1000 * p95, "ms", 33)


def _switching() -> list[Measurement]:
    """Measure the longest time that a switch keeps the window from answering, the first too."""
    from simulator.program.algorithms import ALGORITHMS
    from ui.look.layouts import LAYOUTS

    with _open_window() as window:
        layouts = max(
            _blocked(window, partial(window.desk.take, spec.name)) for spec in (*LAYOUTS, *LAYOUTS)
        )
        window.desk.take(LAYOUTS[0].name)
        for name in SIX_DOCKS:
            window.docks[name].show()
        themes = max(_blocked(window, window.next_theme) for _ in range(6))
        algorithms = max(
            _blocked(window, partial(window.files.choose_algorithm, name))
            for name in (*ALGORITHMS, *ALGORITHMS)
        )
    return [
        Measurement("switching layout blocks the window, longest", 1000 * layouts, "ms", 100),
        Measurement("switching theme blocks the window, longest", 1000 * themes, "ms", 100),
        Measurement("switching algorithm blocks the window, longest", 1000 * algorithms, "ms", 100),
    ]


def _inspecting(moves: int = 80) -> Measurement:
    """Measure from a move of the inspector's sliders to the painted window, 12 heads of 495 x 495.

    Small maps of all heads are made meanwhile in the other thread.
    """
    from PySide6.QtWidgets import QApplication

    from ui.panels.inspector.panel import InspectorPanel

    capture = {"input": {"source": "capture", "name": "passage-layer1"}}
    with _open_window() as window:
        window.session.start(parse_scenario(capture), None)
        window.desk.take("inspector")
        window.session.settle()
        panel = window.docks.panel("inspector")
        assert isinstance(panel, InspectorPanel)
        sliders = [panel.bar.sliders[name] for name in ("temperature", "window", "sinks")]
        times = []
        for move in range(moves):
            slider = sliders[move * len(sliders) // moves]
            started = time.perf_counter()
            slider.setValue(slider.value() + 1)
            QApplication.processEvents()
            times.append(time.perf_counter() - started)
    p95 = statistics.quantiles(times, n=20)[-1]
    return Measurement("inspector slider to painted window, 12 x 495 x 495, p95", 1000 * p95,
                       "ms", 33)  # fmt: skip


def _sliders(steps: int = 60) -> list[Measurement]:
    """Measure from a move of each slider of the layout "Cache" to the painted window."""
    from PySide6.QtWidgets import QApplication

    from ui.panels.cache.panel import CachePanel
    from ui.panels.heads.panel import HeadsPanel

    out = []
    with _open_window() as window:
        window.desk.take("cache")
        window.session.settle()
        cache, heads = window.docks.panel("cache"), window.docks.panel("heads")
        assert isinstance(cache, CachePanel)
        assert isinstance(heads, HeadsPanel)
        heads.bar.choose("of", "model")
        heads.bar.choose("model", "DeepSeek-V3")
        QApplication.processEvents()
        for name, slider in (("tokens", cache.slider), ("KV heads", heads.slider)):
            times = []
            slider.setSliderDown(True)
            for step in range(steps):
                started = time.perf_counter()
                slider.setValue(step * 17 % (slider.maximum() + 1))
                QApplication.processEvents()
                times.append(time.perf_counter() - started)
            slider.setSliderDown(False)
            p95 = statistics.quantiles(times, n=20)[-1]
            words = f"dragging the slider of {name} to painted window, p95"
            out.append(Measurement(words, 1000 * p95, "ms", 33))
    return out


def _blocked(window: MainWindow, switch: Callable[[], object]) -> float:
    """Return the longest stretch of a switch, until all is shown, without a turn for input."""
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


def _start(starts: int = 5) -> Measurement:
    """Measure `python -m ui` to the first painted view, warm."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "TILESCOPE_TIME_START": "1",
            "TILESCOPE_SETTINGS": str(Path(folder) / "settings.ini"),
            "QT_QPA_PLATFORM": "offscreen",
        }
        times = []
        for _ in range(starts + 1):
            started = time.perf_counter()
            command = [sys.executable, "-m", "ui"]
            with subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
            ) as process:
                assert process.stdout is not None
                process.stdout.readline()
                times.append(time.perf_counter() - started)
    warm = times[1:]
    return Measurement(
        "start to first painted view, warm, median", statistics.median(warm), "s", 1.5
    )
