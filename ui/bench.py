"""Measurements of what is drawn: painting, stepping, starting."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from simulator.bench import Measurement, benchmark_scenario
from simulator.row_report import row_report
from simulator.scenario import Scenario, parse_scenario
from simulator.trace import simulate

ROOT = Path(__file__).resolve().parent.parent
PICTURE = (1920, 1080)
SMALL = {
    "attention": {"seqlen_q": 64, "head_dim": 32, "dtype": "float16"},
    "mask": {"causal": True},
    "tiling": {"rows": 16, "cols": 16},
}


def measure_ui() -> list[Measurement]:
    """Return all measurements of this module; takes about a minute."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    return [
        _painting("painting the scene at 1920x1080, N = 64", parse_scenario(SMALL)),
        _painting("painting the scene at 1920x1080, N = 4096", benchmark_scenario(4096)),
        _stepping(),
        _start(),
    ]


def _painting(name: str, scenario: Scenario) -> Measurement:
    """Measure the median time of painting the whole scene, another op each time."""
    from PySide6.QtCore import QRectF, QSizeF
    from PySide6.QtGui import QImage, QPainter

    from ui.app import application
    from ui.scene.scene import paint_scene, scene_style
    from ui.theme import DARK

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


def _stepping(steps: int = 120) -> Measurement:
    """Measure from the key press to the painted window, N = 4096, d = 128."""
    from PySide6.QtCore import QEvent, Qt
    from PySide6.QtGui import QKeyEvent
    from PySide6.QtWidgets import QApplication

    from ui.app import application
    from ui.main_window import MainWindow
    from ui.session import Session
    from ui.settings import Settings

    app = application()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder) / "settings.ini")
        settings.motion = False
        session = Session("numpy")
        window = MainWindow(session, settings)
        window.resize(*PICTURE)
        window.show()
        session.start(benchmark_scenario(4096), None)
        session.settle()
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
        window.close()
    p95 = statistics.quantiles(times, n=20)[-1]
    return Measurement("key press to painted window, N = 4096, p95", 1000 * p95, "ms", 33)


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
