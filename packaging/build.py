"""`make package`: from a checkout to dist/tilescope, and what is downloaded.

It makes an environment of its own in build/, so that nothing of the tests gets in, and needs
nothing but Python: on Linux also cc and binutils, and dpkg-deb for the .deb.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import archives
import licences
import slim

ROOT = Path(__file__).resolve().parent.parent
BUILD, DIST = ROOT / "build" / "package", ROOT / "dist"
VENV = ROOT / "build" / "venv-package"


def main() -> None:
    """Build everything that this system can."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle-only", action="store_true", help="no archive, no .deb")
    options = parser.parse_args()
    os.chdir(ROOT)
    stated = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    version = stated["project"]["version"]
    python = _environment()
    subprocess.run([python, "packaging/icons.py", BUILD], check=True)
    subprocess.run([python, "packaging/licences.py", BUILD / "licences"], check=True)
    shutil.rmtree(DIST / "tilescope", ignore_errors=True)
    subprocess.run(
        [python, "-P", "-m", "PyInstaller", "--noconfirm", "--log-level", "ERROR",
         "--workpath", ROOT / "build" / "pyinstaller", "--distpath", DIST, "build.spec"],
        check=True, env={**os.environ, "PYTHONHASHSEED": "1"},
    )  # fmt: skip
    bundle = DIST / "tilescope"
    if sys.platform == "linux":
        slim.slim(bundle)
        licences.add_system_libraries(bundle)
    print(f"{bundle}: {archives.size_of(bundle) / 1e6:.0f} MB")
    if not options.bundle_only:
        made = archives.make(bundle, version, DIST, BUILD)
        archives.write_sums(made, DIST / "SHA256SUMS")
        for path in made:
            print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def _environment() -> Path:
    """Return the Python of an environment with what is packaged, and PyInstaller."""
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp, wanted = VENV / "installed-from", Path("pyproject.toml").read_bytes()
    if not (stamp.exists() and stamp.read_bytes() == wanted):
        print("Installing what is packaged into build/venv-package", flush=True)
        venv.create(VENV, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, ".[package]"], check=True)
        stamp.write_bytes(wanted)
    return python


if __name__ == "__main__":
    main()
