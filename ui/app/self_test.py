"""The ``self-test`` command: tries every part of an installation, one after another.

It tries only what this copy of Tilescope contains and what the machine offers; it writes to a
temporary folder.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from kernels.devices.registry import make_engine
from kernels.errors import KernelError
from simulator.base.assets import ASSETS, CAPTURES, SCENARIOS
from simulator.base.errors import InputError
from simulator.problem.scenario import load_scenario
from simulator.run.cosimulation import verify
from simulator.run.trace import simulate
from ui.export.formats import FORMATS, Format
from ui.safety.program import with_extra
from ui.safety.signals import interrupted

CASE = ASSETS.parent / "tests" / "conformance" / "flash2-causal-gqa-tails.toml"
"""A case whose numbers and counts do not come from Tilescope."""
DEMO = SCENARIOS / "causal.toml"
SIZE = (640, 360)
STEPS = 2
"""Visits of a film."""


class NotHereError(Exception):
    """Something that is tried needs what this machine does not have, which is no failure."""


class FailedError(Exception):
    """Something that was tried does not work; the words say what."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that was tried."""

    what: str  # its name
    good: bool | None  # none if the machine lacks what it needs
    says: str  # what was found
    seconds: float  # how long it took

    def __str__(self) -> str:
        mark = {True: "ok", False: "FAILED", None: "not here"}[self.good]
        return f"{self.what:18} {mark:9} {self.seconds:6.2f} s  {self.says}"


def trials(demo: Path = DEMO) -> Iterator[Trial]:
    """Try everything, much of it on a demo; a failure does not stop the rest."""
    os.environ["QT_QPA_PLATFORM"] = os.environ.get("QT_QPA_PLATFORM") or "offscreen"
    with tempfile.TemporaryDirectory(prefix="tilescope-self-test-") as name:
        folder = Path(name)
        for what, attempt in attempts(folder, demo):
            yield tried(what, attempt)


def run(demo: Path = DEMO) -> int:
    """Print a table of all trials; return 0 if none failed, else 1.

    demo: the scenario that is run, exported and shown.
    """
    failed = count = 0
    for trial in trials(demo):
        if interrupted():  # a library may have caught the KeyboardInterrupt
            raise KeyboardInterrupt
        print(trial, flush=True)
        count += 1
        failed += trial.good is False
    print(f"{count} tried, {failed} failed" if failed else f"{count} tried, none failed")
    return 1 if failed else 0


def attempts(folder: Path, demo: Path = DEMO) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield what is tried, and how.

    demo: the scenario that is run, exported and shown.
    """
    yield "assets", _assets
    yield "texts", _texts
    yield "fonts", _fonts
    yield "themes", _themes
    yield "formulas", _formulas
    for name in ("numpy", "host", "cupy"):
        yield f"engine {name}", partial(_engine, name, demo)
    yield "GPU kernels", _kernels
    yield "conformance", conformance
    for spec in FORMATS:
        yield f"export {spec.ending}", partial(_export, spec, folder, demo)
    yield "settings", partial(_settings, folder)
    yield "window", partial(_window, folder, demo)
    yield "lessons", _lessons
    yield "search", _search
    yield "screen stays on", _awake
    yield "sound", _sound


def tried(what: str, attempt: Callable[[], str]) -> Trial:
    """Return the result of an attempt."""
    started = time.perf_counter()
    good: bool | None
    try:
        good, says = True, attempt()
    except NotHereError as reason:
        good, says = None, str(reason)
    # Any error in one part is reported, and the other parts are still tried.
    except Exception as error:
        good, says = False, f"{type(error).__name__}: {error}".partition("\n")[0]
        if isinstance(error, FailedError | InputError):
            says = str(error)
    return Trial(what, good, says, time.perf_counter() - started)


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise FailedError(otherwise)


# --- what is shipped -------------------------------------------------------------------------


def _assets() -> str:
    from simulator.problem.hardware import gpus
    from simulator.problem.models import models

    demos = sorted(SCENARIOS.glob("*.toml"))
    for path in demos:
        load_scenario(path)
    captures = len(list(CAPTURES.glob("*.safetensors")))
    found = (len(demos), captures, len(gpus()), len(models()))
    _need(all(found), f"something is missing in {ASSETS}")
    return "{} demos, {} captures, {} GPUs, {} models".format(*found)


def _texts() -> str:
    from kernels.build.sources import anchors
    from simulator.code.numpy_lines import SOURCES
    from simulator.program.algorithms import ALGORITHMS

    for path in SOURCES:
        _need("class" in path.read_text(encoding="utf-8"), f"{path} is not the text of the ops")
    marked = sum(len(anchors(name)) for name in ALGORITHMS)
    _need(marked > 0, "no line of the kernels is marked")
    return f"the ops in NumPy and {len(ALGORITHMS)} kernels, {marked} ops marked"


def _fonts() -> str:
    from PySide6.QtGui import QFontInfo

    from ui.look.theme import CODE_FAMILY, DARK, SYMBOL_FAMILY, TEXT_FAMILY, Style, load_fonts
    from ui.widgets.application import application

    application()
    wanted = {TEXT_FAMILY, CODE_FAMILY, SYMBOL_FAMILY}
    missing = wanted - set(load_fonts())
    _need(not missing, f"{', '.join(sorted(missing))} not in {ASSETS / 'fonts'}")
    style = Style(DARK)
    used = {QFontInfo(font).family() for font in (style.text_font(13), style.code_font(12))}
    _need(used == {TEXT_FAMILY, CODE_FAMILY}, f"Qt takes {', '.join(used)} instead")
    return ", ".join(sorted(wanted))


def _themes() -> str:
    from PySide6.QtGui import QColor

    from ui.look.icons import app_icon
    from ui.look.theme import THEMES, palette

    for theme in THEMES.values():
        colours = (theme.text, theme.panel, theme.current, *theme.tensors.values())
        _need(all(QColor(c).isValid() for c in colours), f"{theme.name}: not a colour")
        palette(theme)
    _need(not app_icon().pixmap(32, 32).isNull(), "Qt cannot draw SVG icons")
    return ", ".join(THEMES)


def _formulas() -> str:
    from ui.look.formula import formula

    made = formula(r"m \leftarrow \max(m, \tilde m),\; \frac{e^{S - m}}{\ell}", 20)
    _need(made.width > 20 and made.path.elementCount() > 50, "nothing was typeset")
    return f"typeset, {made.path.elementCount()} points"


# --- what computes ---------------------------------------------------------------------------


def _engine(name: str, demo: Path) -> str:
    try:
        trace = simulate(demo, partial(make_engine, name))
        verdict = verify(trace)
    except (InputError, KernelError) as error:
        if name == "numpy":
            raise
        raise NotHereError(_why(name, error)) from None
    _need(verdict.difference is None, str(verdict))
    return str(verdict)


def _why(name: str, error: Exception) -> str:
    """Return the reason alone; an engine that is here and fails is a failure."""
    from kernels.devices.driver import gpu_status
    from kernels.devices.host.compiler import find_compiler

    reason = find_compiler().reason if name == "host" else gpu_status().reason
    if not reason and name == "cupy" and find_spec("cupy") is None:
        reason = "there is a GPU, but this copy of Tilescope comes without CuPy"
    if not reason:
        raise FailedError(str(error).replace("\n", " "))
    return reason


def _kernels() -> str:
    """Import CuPy, which no start without a GPU does, and check the kernels in the bundle."""
    from kernels.build import shipped
    from kernels.build.sources import whole_source
    from kernels.cuda.launch import build_options
    from simulator.problem.workload import resolve
    from ui.app.doctor import cupy_version, kernels_words

    entries = shipped.read_index()
    if not entries:
        raise NotHereError("none are shipped: NVRTC compiles them for a GPU")
    import cupy

    _need(cupy.__version__ == cupy_version(), f"CuPy {cupy.__version__} is not what was shipped")
    wrong = shipped.faults()
    _need(not wrong, "; ".join(wrong[:3]))
    w = resolve(load_scenario(DEMO))
    for target in shipped.ARCHITECTURES:
        options = build_options(w, trace=True)
        found = shipped.machine_code(whole_source(w.algorithm), options, int(target[3:]))
        _need(found is not None and found[0] == shipped.file_name(target), f"none for {target}")
    return f"CuPy {cupy.__version__}; {kernels_words(entries.values())}, all whole"


def conformance(case: Path = CASE) -> str:
    """Return how near a case is to its expected numbers, which did not come from Tilescope.

    Raises FailedError: a number or a count is another.
    """
    counts = json.loads(case.with_suffix(".expected.json").read_text(encoding="utf-8"))
    tolerance = counts.pop("tolerance")
    summary, arrays = simulate(case).run(keep_arrays=True)
    worst = 0.0
    with np.load(case.with_suffix(".expected.npz")) as expected:
        for name, want in expected.items():
            seen = np.isfinite(want)
            _need(np.array_equal(arrays[name][~seen], want[~seen]), f"{name}: infinities differ")
            off = np.abs(arrays[name][seen].astype(np.float64) - want[seen])
            share = float(np.max(off / (1 + np.abs(want[seen])), initial=0.0)) / tolerance[name]
            _need(share <= 1, f"{name}: off by {share:.3g} times what is allowed")
            worst = max(worst, share)
    for key, want in counts.items():
        got = {k: summary[key].get(k) for k in want} if isinstance(want, dict) else summary[key]
        _need(got == want, f"{key}: {got}, expected {want}")
    return f"numbers and counts as expected; {worst:.0%} of the tolerance used"


# --- what is written -------------------------------------------------------------------------


def _export(spec: Format, folder: Path, demo: Path) -> str:
    from simulator.base.version import version
    from ui.export.job import prepare
    from ui.export.options import ExportOptions
    from ui.widgets.application import application

    if spec.ending == ".pptx" and find_spec("pptx") is None:
        raise NotHereError(f"python-pptx is not installed: {with_extra('slides')}")
    application()
    target = f"{folder}/frames/" if spec.ending == "frames" else f"{folder}/export{spec.ending}"
    length = 0.5 if spec.film else None
    sound = bool(spec.sound)
    options = ExportOptions(target, SIZE, fps=10, visits=(0, STEPS), length=length, sound=sound)
    prepare(simulate(demo), options, str(demo), version()).make(lambda share: None)
    path = options.path.parent if spec.ending == "frames" else options.path
    if spec.folder:
        _need((path / "index.html").is_file(), "the page is missing")
        return f"{len(list(path.rglob('*')))} files"
    if path.is_dir():
        _need(len(list(path.glob("*.png"))) > 1, "single frames are missing")
        return f"{len(list(path.iterdir()))} frames"
    begins = path.read_bytes()[:12]
    _need(any(mark in begins for mark in _BEGINNINGS[spec.ending]), f"begins with {begins!r}")
    return f"{path.stat().st_size / 1000:.0f} kB"


_BEGINNINGS = {
    ".mp4": (b"ftyp",),
    ".webm": (b"\x1aE\xdf\xa3",),
    ".gif": (b"GIF89a",),
    ".webp": (b"WEBP",),
    ".apng": (b"\x89PNG",),
    ".png": (b"\x89PNG",),
    ".svg": (b"<?xml", b"<svg"),
    ".pdf": (b"%PDF",),
    ".html": (b"<!DOCTYPE",),
    ".pptx": (b"PK",),
}


def _settings(folder: Path) -> str:
    from ui.safety.settings import Settings

    path = folder / "settings" / "settings.ini"
    written = Settings(path)
    written.theme, written.text_scale = "light", 1.5
    read = Settings(path)
    _need((read.theme, read.text_scale) == ("light", 1.5), "what was written is not read back")
    return "written and read back"


def _window(folder: Path, demo: Path) -> str:
    from PySide6.QtGui import QGuiApplication
    from PySide6.QtWidgets import QApplication

    from ui.app.start import make_window
    from ui.look.layouts import LAYOUTS
    from ui.safety.settings import Settings
    from ui.widgets.application import application

    app = application()
    settings = Settings(folder / "window.ini")
    settings.motion = False
    faults: list[str] = []
    before, sys.excepthook = sys.excepthook, lambda kind, error, trace: faults.append(repr(error))
    window = make_window(demo, "numpy", settings)
    try:
        window.resize(1280, 720)
        window.show()
        for spec in LAYOUTS:
            window.desk.take(spec.name)
            window.session.settle()
            app.processEvents()
            picture = window.grab().toImage()
            _need(_colours(picture.constBits()) > 30, f"layout {spec.name}: nothing was painted")
        _need(window.session.view is not None, "the run did not reach the window")
        panels = [window.docks.panel(spec.name) for spec, _ in window.docks]
    finally:
        window.close()
        window.deleteLater()
        QApplication.processEvents()
        sys.excepthook = before
    _need(not faults, "; ".join(faults))
    platform = QGuiApplication.platformName()
    return f"{len(LAYOUTS)} layouts painted on {platform}, {len(panels)} panels made"


def _lessons() -> str:
    from simulator.lesson.course import list_lessons
    from simulator.lesson.reader import load_lesson
    from ui.app.windows import new_window
    from ui.export.frames import new_image, paint_frame
    from ui.export.lesson_frames import LessonFrames
    from ui.export.storyboard import handout
    from ui.look.layouts import LAYOUT_PANELS
    from ui.widgets.application import application

    application()
    lessons = [load_lesson(title.path, LAYOUT_PANELS) for title in list_lessons()]
    for lesson in lessons:
        _need(not lesson.mistakes, "; ".join(map(str, lesson.mistakes)))
    _need(bool(lessons), "none are shipped")
    size = 1280, 720
    frames = LessonFrames(lessons[0], handout(lessons[0], [0]), "dark", size, new_window, "numpy")
    try:
        picture = paint_frame(frames, 0, new_image(frames))
    finally:
        frames.close()
    _need(_colours(picture.constBits()) > 30, "a step was not painted")
    return f"{len(lessons)} with {sum(len(lesson.steps) for lesson in lessons)} steps open"


def _search() -> str:
    from ui.widgets.matching import find
    from ui.window.search.entries import entries

    found = find("onlin sofmax", entries()).entries
    _need(found[0].title == "Online softmax", f"it found {found[0].title}")
    return f"{len(entries())} things can be found, also with a letter missing"


def _awake() -> str:
    from ui.talk.awake import Awake

    awake = Awake()
    awake.hold()
    try:
        give_up = time.monotonic() + 5
        while not (awake.granted or awake.why) and time.monotonic() < give_up:
            time.sleep(0.01)
        if not awake.granted:
            raise NotHereError(awake.why or "the system does not answer")
    finally:
        awake.release(1.0)
    return "asked for while presenting, and granted"


def _sound() -> str:
    from ui.session.speaker import Speaker

    speaker = Speaker("NULL")  # a test is silent, and many computers have no sound device
    try:
        speaker.play("K")
        give_up = time.monotonic() + 5
        while not speaker.silent and time.monotonic() < give_up:
            time.sleep(0.01)
        _need(speaker.silent, "a tick was not played")
    finally:
        speaker.close()
    return "a tick played, to a device that nobody hears"


def _colours(pixels: bytes | bytearray | memoryview) -> int:
    """Return how many colours a picture of 32-bit pixels has."""
    return len(np.unique(np.frombuffer(pixels, dtype=np.uint32)))
