"""What this machine offers, and what to do about what is missing."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from kernels.build.shipped import ShippedKernel, read_index
from kernels.devices.driver import gpu_status
from kernels.devices.host.compiler import find_compiler
from simulator.base.assets import ASSETS, CAPTURES, SCENARIOS
from simulator.base.errors import InputError, safe_text
from simulator.base.version import version
from ui.safety.program import BINARY, CHECKOUT, with_extra
from ui.safety.streams import lack
from ui.safety.system_libraries import PLATFORMS, advice, missing_libraries, why_not_imported

FROZEN = BINARY
"""Whether this is the binary: nothing can be installed into it, so the advice differs."""
_KEPT: list[object] = []
"""Qt's application must exist as long as it is asked."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was checked."""

    what: str  # its name
    good: bool | None  # none if it is absent and nothing needs it
    says: str  # what was found, and what to do about it

    def __str__(self) -> str:
        mark = {True: "ok", False: "MISSING", None: "-"}[self.good]
        return f"{self.what:16} {mark:8} {safe_text(self.says)}"


def examine() -> Iterator[Diagnosis]:
    """Check everything, one thing after another."""
    yield Diagnosis("Tilescope", True, version())
    yield Diagnosis("Python", True, f"{platform.python_version()}, {platform.platform()}")
    yield (found := qt())
    yield _display(draws=bool(found.good))
    yield _with_qt("fonts", _fonts)
    yield _assets()
    yield _gpu()
    yield cupy()
    yield _kernels()
    yield _compiler()
    yield _with_qt("codecs", codecs)
    yield _with_qt("settings", _settings)
    yield _with_qt("log", _log)


def _with_qt(what: str, check: Callable[[], Diagnosis]) -> Diagnosis:
    """Check what is not to be found out without Qt."""
    try:
        return check()
    except ImportError:
        return Diagnosis(what, None, "not known without Qt")


def _mend(frozen: bool) -> str:
    """Return what to do about a part that always comes with Tilescope."""
    return (
        "install Tilescope again"
        if frozen or not CHECKOUT
        else "`make run` installs what is missing"
    )


def _settings() -> Diagnosis:
    from ui.safety.settings import settings_path

    try:
        path = settings_path()
    except InputError as error:
        return Diagnosis("settings", False, str(error))
    place = next(each for each in (path, *path.parents) if os.path.exists(each))
    if not os.access(place, os.W_OK):
        return Diagnosis("settings", None, f"{path}: not remembered, it cannot be written")
    return Diagnosis("settings", True, str(path) if place == path else f"{path} (none yet)")


def _log() -> Diagnosis:
    from ui.safety.log import log_path

    try:
        path = log_path()
    except InputError:  # told with the settings
        return Diagnosis("log", None, "none: it lies beside the settings")
    # `Path.exists` raises an error in a folder without permission.
    return Diagnosis("log", True, str(path) if os.path.exists(path) else f"{path} (none yet)")


def qt(*, frozen: bool = FROZEN) -> Diagnosis:
    """Return whether Qt can be imported, and where it would draw."""
    try:
        from PySide6 import __version__
        from PySide6.QtGui import QGuiApplication
        from PySide6.QtWidgets import QApplication

        os.environ["QT_QPA_PLATFORM"] = "offscreen"  # a display may be named and not exist
        if QApplication.instance() is None:
            _KEPT.append(QApplication(["doctor"]))
    except ImportError as error:
        why = why_not_imported(error) or lack(error) or f"{error}; {_mend(frozen)}"
        return Diagnosis("Qt", False, why)
    return Diagnosis(
        "Qt", True, f"PySide6 {__version__}, platform {QGuiApplication.platformName()}"
    )


def _display(*, draws: bool) -> Diagnosis:
    if not sys.platform.startswith("linux"):
        return Diagnosis("display", True, "the system's")
    named = [f"{name}={os.environ[name]}" for name in PLATFORMS if os.environ.get(name)]
    if not named:
        work = "`run` and `export` work" if draws else "`run` works"
        return Diagnosis("display", None, f"none: the window cannot open, {work}")
    missing = missing_libraries([PLATFORMS[each.partition("=")[0]] for each in named])
    says = [*named, advice(missing)] if missing else named
    return Diagnosis("display", not missing, "; ".join(says))


def _fonts() -> Diagnosis:
    from ui.look.theme import CODE_FAMILY, SYMBOL_FAMILY, TEXT_FAMILY, load_fonts

    found = load_fonts()
    missing = [f for f in (TEXT_FAMILY, CODE_FAMILY, SYMBOL_FAMILY) if f not in found]
    if missing:
        return Diagnosis("fonts", False, f"{', '.join(missing)} not in {ASSETS / 'fonts'}")
    return Diagnosis("fonts", True, f"{TEXT_FAMILY}, {CODE_FAMILY} (shipped)")


def _assets() -> Diagnosis:
    captures, demos = len(list(CAPTURES.glob("*.safetensors"))), len(list(SCENARIOS.glob("*.toml")))
    return Diagnosis("assets", bool(captures and demos), f"{captures} captures, {demos} demos")


def _gpu() -> Diagnosis:
    status = gpu_status()
    if status.available:
        return Diagnosis("GPU", True, f"{status.name}, driver for CUDA {status.driver}")
    return Diagnosis("GPU", None, f"{status.reason}; NumPy computes the same trace")


def cupy(*, frozen: bool = FROZEN) -> Diagnosis:
    """Return which CuPy is installed."""
    found = cupy_version()
    if found is not None:
        where = "in this bundle" if frozen else "installed"
        unused = "" if gpu_status().available else "; it waits for a GPU"
        return Diagnosis("CuPy", True, f"{found}, {where}{unused}")
    if frozen:
        return Diagnosis("CuPy", None, "not in this bundle; the larger one, without -cpu, has it")
    return Diagnosis("CuPy", None, f"not installed; a GPU needs it: {with_extra('gpu-cuda13')}")


def cupy_version() -> str | None:
    """Return the version of the CuPy that could be imported, None if there is none."""
    if importlib.util.find_spec("cupy") is None:
        return None
    for name in ("cupy-cuda13x", "cupy-cuda12x", "cupy"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "of unknown version"


def _kernels() -> Diagnosis:
    shipped = read_index()
    if not shipped:
        return Diagnosis("GPU kernels", None, "none shipped: NVRTC compiles them for a GPU")
    return Diagnosis("GPU kernels", True, f"{kernels_words(shipped.values())}, shipped")


def kernels_words(entries: Collection[ShippedKernel]) -> str:
    """Return in words which kernels there are."""
    cubins = [entry for entry in entries if len(entry.targets) > 1]
    targets = [target for target in cubins[0].targets if target.startswith("sm_")] if cubins else []
    made = f", {len(cubins)} also for {targets[0]} to {targets[-1]}" if targets else ""
    return f"{len(entries)} as PTX{made}"


def _compiler() -> Diagnosis:
    compiler = find_compiler()
    if compiler.available:
        return Diagnosis("C++ compiler", True, f"{compiler.word}: --engine host runs the kernels")
    return Diagnosis("C++ compiler", None, f"{compiler.reason}; only --engine host needs one")


def codecs(*, frozen: bool = FROZEN) -> Diagnosis:
    """Return which formats of films can be written."""
    from ui.export.formats import FORMATS

    try:
        import av
    except ImportError:
        kept = ", ".join(f.ending for f in FORMATS if not f.codec and f.ending != "frames")
        return Diagnosis("codecs", False, f"no PyAV: only {kept}; {_mend(frozen)}")
    needed = ((f, {f.codec, f.sound} - {""}) for f in FORMATS)
    missing = [f.ending for f, codecs in needed if not codecs <= av.codecs_available]
    if missing:
        return Diagnosis(
            "codecs", False, f"PyAV {av.__version__} cannot write {', '.join(missing)}"
        )
    return Diagnosis("codecs", True, f"PyAV {av.__version__}: every format of `export`")
