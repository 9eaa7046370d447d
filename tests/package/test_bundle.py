"""The bundles that `make package` has built, used as a user would: `make test-package`.

There are two, with CuPy and without; what was not built is skipped.
"""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pypdf import PdfReader

from kernels.build import shipped
from kernels.build.sources import whole_source
from kernels.cuda.launch import build_options
from kernels.devices.driver import gpu_status
from simulator.base.version import built
from simulator.problem.scenario import load_scenario
from simulator.problem.workload import resolve

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
NAMES = ("tilescope", "tilescope-cpu")
DEMO = Path("_internal") / "assets" / "scenarios" / "causal.toml"
MEGABYTE = 1_000_000
SECONDS = 300
ON_X11 = shutil.which("xvfb-run") is not None
LARGEST = {"tilescope": (280, 100), "tilescope-cpu": (225, 72)}
"""Megabytes unpacked, and of the .tar.xz."""

pytestmark = [
    pytest.mark.package,
    pytest.mark.skipif(sys.platform != "linux", reason="written for the bundle for Linux"),
]


# Both at once where there are processors, each by one worker of pytest-xdist.
EACH = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in NAMES]


@pytest.fixture(scope="module", params=EACH)
def bundle(request: pytest.FixtureRequest) -> Path:
    """Return the folder of a bundle."""
    folder: Path = DIST / request.param
    if not folder.is_dir():
        pytest.skip(f"{folder.name} has not been built: make package, make package GPU=0")
    return folder


@pytest.fixture(scope="module")
def placed(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a copy where users put things: a folder with spaces and other letters, read-only."""
    folder = tmp_path_factory.mktemp("bundle") / "Überblick für 注意 & co"
    shutil.copytree(bundle, folder, symlinks=True)
    everything = [folder, *(p for p in folder.rglob("*") if not p.is_symlink())]
    for path in everything:
        path.chmod(path.stat().st_mode & ~0o222)
    yield folder
    for path in everything:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def run(
    placed: Path, *arguments: str, cwd: Path | None = None, wrap: Sequence[str] = (), **variables
) -> subprocess.CompletedProcess[str]:
    """Run the binary without a home, a display and Python's own variables."""
    wanted = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "QT_QPA_PLATFORM": "offscreen"}
    return subprocess.run(
        [*wrap, str(placed / "tilescope"), *arguments],
        capture_output=True, text=True, check=False, timeout=SECONDS,
        cwd=cwd or placed, env=wanted | variables,
    )  # fmt: skip


def without_network() -> list[str]:
    """Return what starts a command without a network, nothing where that is not allowed."""
    wrap = ["unshare", "--net", "--map-root-user"]
    if shutil.which("unshare") is None:
        return []
    tried = subprocess.run([*wrap, "true"], capture_output=True, check=False)
    return wrap if tried.returncode == 0 else []


def test_version_and_help(placed):
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    done = run(placed, "--version")
    assert (done.returncode, done.stdout) == (0, stated["project"]["version"] + "\n")
    done = run(placed, "--help")
    assert done.returncode == 0
    assert "self-test" in done.stdout


def test_the_day_of_the_sources_is_known(bundle):
    assert date.fromisoformat(built(bundle / "_internal" / "built")) <= date.today()


@pytest.fixture(scope="module")
def tried(placed: Path, bundle: Path) -> subprocess.CompletedProcess[str]:
    """Return what `self-test` says without a network and a home, on X11 where there is Xvfb."""
    number = 100 + 50 * NAMES.index(bundle.name)  # two that look for a free one may find the same
    screen = ["xvfb-run", "-a", "-n", f"{number}", "-s", "-screen 0 1600x1000x24"]
    wrap = [*without_network(), *(screen if ON_X11 else [])]
    platform = "xcb" if ON_X11 else "offscreen"
    return run(placed, "self-test", wrap=wrap, QT_QPA_PLATFORM=platform)


def test_self_test_without_a_network_and_without_a_home(tried):
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert not tried.stderr
    assert "FAILED" not in tried.stdout


@pytest.mark.skipif(not ON_X11, reason="Xvfb is not installed")
def test_self_test_paints_on_x11(tried):
    assert "painted on xcb" in tried.stdout


def test_the_window_starts_and_paints(placed, tmp_path):
    settings = str(tmp_path / "settings.ini")
    done = run(placed, TILESCOPE_TIME_START="1", TILESCOPE_SETTINGS=settings)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == {"first frame"}


def test_run_computes_what_the_checkout_computes(placed, tmp_path):
    target = tmp_path / "out.npz"
    done = run(placed, "run", str(DEMO), "--json", "-o", str(target))
    assert done.returncode == 0, done.stderr
    checkout = subprocess.run(
        [sys.executable, "-m", "ui", "run", ROOT / "assets/scenarios/causal.toml", "--json"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    ours, theirs = json.loads(checkout.stdout), json.loads(done.stdout)
    for timed in (ours, theirs):
        del timed["seconds"]
    assert theirs == ours
    with np.load(target) as arrays:
        assert np.isfinite(arrays["o"]).all()


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_the_users_compiler_makes_the_kernels(placed, tmp_path):
    done = run(placed, "verify", str(DEMO), "--engine", "host", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "agree with float64" in done.stdout
    assert list(tmp_path.rglob("*.so"))


@pytest.mark.parametrize("ending", [".png", ".mp4"])
def test_export(placed, tmp_path, ending):
    target = tmp_path / f"schöner Titel{ending}"
    done = run(placed, "export", str(DEMO), "-o", str(target), "--size", "1280x720",
               "--visits", "0:2")  # fmt: skip
    assert done.returncode == 0, done.stderr
    if ending == ".png":
        with Image.open(target) as picture:
            assert picture.size == (1280, 720)
            assert len(picture.getcolors(1 << 20) or range(1000)) > 50
    else:
        assert b"ftyp" in target.read_bytes()[:12]


def test_a_lesson_becomes_a_handout(placed, tmp_path):
    target = tmp_path / "handout.pdf"
    done = run(placed, "export", "online-softmax", "-o", str(target), "--steps", "0:2")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert len(PdfReader(target).pages) == 2


def test_wrong_input_is_one_line(placed):
    done = run(placed, "run", "missing.toml")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


# --- what is inside ------------------------------------------------------------------------


def modules(bundle: Path) -> set[str]:
    """Return the Python modules in a bundle: inside the executable, and compiled ones beside it."""
    listed = subprocess.run(
        [ROOT / "build/venv-package/bin/pyi-archive_viewer", "--list", "--recursive", "--brief",
         bundle / "tilescope"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    inside = bundle / "_internal"
    compiled = {
        ".".join(path.relative_to(inside).parts).partition(".cpython")[0].partition(".abi3")[0]
        for path in [*inside.rglob("*.so"), *inside.rglob("*.pyc")]
    }
    compiled |= {name.removesuffix(".pyc").removesuffix(".__init__") for name in compiled}
    return compiled | {line.strip().strip("'\",") for line in listed.splitlines()}


def test_nothing_is_inside_that_should_not_be(bundle):
    inside = modules(bundle)
    assert {
        "ui.window.main_window",
        "numpy._core._multiarray_umath",
    } <= inside  # or nothing was looked at
    assert ("cupy._core.core" in inside) is (bundle.name == "tilescope")
    banned = re.compile(
        r"(pytest|_pytest|hypothesis|unittest|doctest|torch|transformers|ruff|mypy|tests"
        r"|setuptools|pip|tkinter|IPython|matplotlib|PIL|pypdf|scipy|nvidia"
        r"|cupy\.testing\.\w+|cupyx\.scipy|cupy_backends\.cuda\.libs\.cu\w+"
        r"|PySide6\.Qt(Qml|Quick|WebEngine|Test|Sql|Network|Designer)\w*)(\.|$)"
    )
    assert not sorted(name for name in inside if banned.match(name))
    if bundle.name == "tilescope-cpu":
        assert not sorted(n for n in inside if re.match(r"(cupy\w*|cuda)(\.|$)", n))
        assert not (bundle / "_internal" / "kernels" / "cubins").exists()
    files = [path.relative_to(bundle).as_posix() for path in bundle.rglob("*")]
    unwanted = re.compile(
        r"Qt6?(Qml|Quick|WebEngine|Test|Sql|Network|Designer|Pdf)"
        r"|(^|/)(g\+\+|gcc|cc1plus|clang|nvcc|ptxas|nvrtc(?!\.(cpython|pyc))|libnvrtc|lld|ld)[^/]*$"
        r"|/test_\w+\.pyc?$|/conftest\.pyc?$|translations/|libqgtk3"
    )
    assert not [name for name in files if unwanted.search(name)]


def test_every_part_has_its_licence(bundle):
    folder = bundle / "_internal" / "licences"
    told = (folder / "CONTENTS.txt").read_text(encoding="utf-8")
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = [re.split(r"[=;]", r)[0] for r in stated["project"]["dependencies"]]
    with_cupy = bundle.name == "tilescope"
    filled = {p.name.lower().replace("_", "-") for p in folder.iterdir() if p.is_dir()}
    for name in [*names, *(["cupy-cuda13x", "cuda-pathfinder"] if with_cupy else [])]:
        spelled = re.sub("[-_]", "[-_]", name)
        assert re.search(rf"^{spelled} ", told, re.MULTILINE | re.IGNORECASE), name
        assert name.lower().replace("_", "-") in filled, name
    assert "x264" in told
    assert "GNU General Public License" in told
    for text in ("GPL-2", "GPL-3", "LGPL-2.1", "LGPL-3"):  # on every system
        assert "Version" in (folder / f"{text}.txt").read_text(encoding="utf-8")
    assert ("NVIDIA" in told) is with_cupy
    parts = ["numpy", "av", "pydantic", "Python"]
    for part in [*parts, *(["cupy-cuda13x", "nvidia-cuda-runtime"] if with_cupy else [])]:
        assert any((folder / part).iterdir())


def archives(bundle: Path, pattern: str) -> list[Path]:
    """Return what is downloaded of a bundle."""
    found = DIST.glob(pattern)
    return [path for path in found if ("-cpu" in path.name) is bundle.name.endswith("-cpu")]


def test_sizes(bundle):
    unpacked, packed = (n * MEGABYTE for n in LARGEST[bundle.name])
    # As the build tells it: files alone, for what a folder takes depends on the file system.
    files = (path for path in bundle.rglob("*") if path.is_file() and not path.is_symlink())
    assert sum(path.stat().st_size for path in files) <= unpacked
    (archive,) = archives(bundle, "tilescope-*-linux-*.tar.xz")
    assert archive.stat().st_size <= packed


def test_checksums(bundle):
    listed = (DIST / "SHA256SUMS").read_text(encoding="ascii")
    made = [*archives(bundle, "tilescope-*.tar.xz"), *archives(bundle, "tilescope*.deb")]
    assert made
    assert all(f"  {path.name}\n" in listed for path in made)
    done = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=DIST, check=False)
    assert done.returncode == 0


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_the_debian_package_has_all_that_a_desktop_asks_for(bundle):
    (package,) = archives(bundle, "tilescope*.deb")
    said = subprocess.run(
        ["dpkg-deb", "--field", package, "Package", "Conflicts"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    other = next(name for name in NAMES if name != bundle.name)
    assert said == f"Package: {bundle.name}\nConflicts: {other}\n"
    listed = subprocess.run(
        ["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True
    ).stdout
    for name in (
        "./opt/tilescope/tilescope", "./usr/bin/tilescope -> /opt/tilescope/tilescope",
        "./usr/share/applications/tilescope.desktop", "./usr/share/mime/packages/tilescope.xml",
        "./usr/share/icons/hicolor/256x256/apps/tilescope.png",
        "./usr/share/metainfo/tilescope.metainfo.xml",
        "./usr/share/doc/tilescope/copyright",
    ):  # fmt: skip
        assert name in listed
    assert "root/root" in listed
    assert os.environ.get("USER", "root") == "root" or os.environ["USER"] not in listed


# --- a GPU -----------------------------------------------------------------------------------


def test_the_kernels_that_are_shipped(bundle):
    folder = bundle / "_internal" / "kernels" / "cubins"
    entries = shipped.read_index(folder)
    if bundle.name == "tilescope-cpu":
        assert not entries
        return
    assert shipped.faults(folder) == []
    assert {f"{name}.tar.xz" for name in entries} | {"index.json"} == {
        path.name for path in folder.iterdir()
    }
    on_chip = [resolve(load_scenario(path)) for path in (ROOT / "assets/scenarios").glob("*.toml")]
    assert on_chip
    for w in on_chip:
        options = build_options(w, trace=True)
        code = whole_source(w.algorithm)
        for target in shipped.ARCHITECTURES:
            found = shipped.machine_code(code, options, int(target[3:]), folder)
            assert found is not None, w.scenario.title
            assert found[0] == f"{target}.cubin"
        later = shipped.machine_code(code, options, 990, folder)
        assert later[0] == "compute_75.ptx"


def test_what_is_said_of_the_gpu(placed, bundle, tried):
    done = run(placed, "doctor")
    assert done.returncode == 0, done.stdout
    rows = {row[:16].strip(): row[16:].strip() for row in done.stdout.splitlines()}
    (row,) = [line for line in tried.stdout.splitlines() if line.startswith("GPU kernels")]
    if bundle.name == "tilescope-cpu":
        assert rows["CuPy"].startswith("-")
        assert "not in this bundle" in rows["CuPy"]
        assert "not here" in row
    else:
        pin = re.search(r"cupy-cuda13x==([\d.]+)", (ROOT / "pyproject.toml").read_text())
        assert rows["CuPy"].startswith("ok")
        assert f"{pin[1]}, in this bundle" in rows["CuPy"]
        assert "sm_75 to sm_120" in rows["GPU kernels"]
        assert f"CuPy {pin[1]}" in row  # and so it was imported


@pytest.mark.skipif(gpu_status().available, reason="there is a GPU")
def test_a_start_without_a_gpu_does_not_load_cupy(placed, tmp_path):
    """LD_DEBUG tells every library that the window's start has loaded."""
    settings = str(tmp_path / "settings.ini")
    done = run(placed, LD_DEBUG="files", LD_DEBUG_OUTPUT=str(tmp_path / "files"),
               TILESCOPE_TIME_START="1", TILESCOPE_SETTINGS=settings)  # fmt: skip
    assert done.returncode == 0, done.stderr
    loaded = "".join(path.read_text(errors="replace") for path in tmp_path.glob("files.*"))
    assert "libQt6Widgets" in loaded
    assert "/cupy" not in loaded
