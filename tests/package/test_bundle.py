"""The desktop binary that `make package` has built, used as a user would: `make test-package`."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = ROOT / "dist" / "tilescope"
DEMO = Path("_internal") / "assets" / "scenarios" / "causal.toml"
MEGABYTE = 1_000_000
SECONDS = 120

pytestmark = [
    pytest.mark.package,
    pytest.mark.skipif(not BUNDLE.is_dir(), reason="make package has not been run"),
    pytest.mark.skipif(sys.platform != "linux", reason="written for the bundle for Linux"),
]


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a copy where users put things: a folder with spaces and other letters, read-only."""
    folder = tmp_path_factory.mktemp("bundle") / "Überblick für 注意 & co"
    shutil.copytree(BUNDLE, folder, symlinks=True)
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


def test_self_test_without_a_network_and_without_a_home(placed):
    done = run(placed, "self-test", wrap=without_network())
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    assert "FAILED" not in done.stdout
    assert "painted on offscreen" in done.stdout


@pytest.mark.skipif(shutil.which("xvfb-run") is None, reason="Xvfb is not installed")
def test_self_test_on_x11(placed):
    wrap = ["xvfb-run", "-a", "-s", "-screen 0 1600x1000x24"]
    done = run(placed, "self-test", wrap=wrap, QT_QPA_PLATFORM="xcb")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "painted on xcb" in done.stdout


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


def test_wrong_input_is_one_line(placed):
    done = run(placed, "run", "missing.toml")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


# --- what is inside ------------------------------------------------------------------------


def modules() -> set[str]:
    """Return the Python modules in the bundle, those inside the executable too."""
    listed = subprocess.run(
        [ROOT / "build/venv-package/bin/pyi-archive_viewer", "--list", "--recursive", "--brief",
         BUNDLE / "tilescope"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return {line.strip().strip("'\",") for line in listed.splitlines()}


def test_nothing_is_inside_that_should_not_be():
    inside = modules()
    assert "ui.main_window" in inside  # or nothing was looked at
    banned = re.compile(
        r"(pytest|_pytest|hypothesis|unittest|doctest|torch|transformers|ruff|mypy|tests"
        r"|setuptools|pip|tkinter|IPython|matplotlib|PIL|pypdf"
        r"|PySide6\.Qt(Qml|Quick|WebEngine|Test|Sql|Network|Designer)\w*)(\.|$)"
    )
    assert not sorted(name for name in inside if banned.match(name))
    files = [path.relative_to(BUNDLE).as_posix() for path in BUNDLE.rglob("*")]
    unwanted = re.compile(
        r"Qt6?(Qml|Quick|WebEngine|Test|Sql|Network|Designer|Pdf)"
        r"|(^|/)(g\+\+|gcc|cc1plus|clang|nvcc|ptxas|nvrtc|libnvrtc|lld|ld)[^/]*$"
        r"|/test_\w+\.py$|/conftest\.py$|translations/|libqgtk3"
    )
    assert not [name for name in files if unwanted.search(name)]


def test_every_part_has_its_licence():
    folder = BUNDLE / "_internal" / "licences"
    told = (folder / "CONTENTS.txt").read_text(encoding="utf-8")
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for requirement in stated["project"]["dependencies"]:
        name = re.split(r"[=;]", requirement)[0]
        spelled = re.sub("[-_]", "[-_]", name)
        assert re.search(rf"^{spelled} ", told, re.MULTILINE | re.IGNORECASE), name
    assert "x264" in told
    assert "GNU General Public License" in told
    for part in ("numpy", "av", "pydantic", "Python"):
        assert any((folder / part).iterdir())


def test_sizes():
    size = sum(p.stat().st_size for p in BUNDLE.rglob("*") if p.is_file() and not p.is_symlink())
    assert size <= 210 * MEGABYTE
    archives = list(BUNDLE.parent.glob("tilescope-*.tar.xz"))
    assert archives
    assert all(path.stat().st_size <= 65 * MEGABYTE for path in archives)


def test_checksums():
    done = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=BUNDLE.parent, check=False)
    assert done.returncode == 0


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg-deb is not installed")
def test_the_debian_package_has_all_that_a_desktop_asks_for():
    (package,) = BUNDLE.parent.glob("*.deb")
    listed = subprocess.run(
        ["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True
    ).stdout
    for name in (
        "./opt/tilescope/tilescope", "./usr/bin/tilescope -> /opt/tilescope/tilescope",
        "./usr/share/applications/tilescope.desktop", "./usr/share/mime/packages/tilescope.xml",
        "./usr/share/icons/hicolor/256x256/apps/tilescope.png",
        "./usr/share/doc/tilescope/copyright",
    ):  # fmt: skip
        assert name in listed
    assert "root/root" in listed
    assert os.environ.get("USER", "root") == "root" or os.environ["USER"] not in listed
