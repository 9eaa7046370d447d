"""Use a window at random for a long time; ends with 1 where anything is wrong."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import sys
import tempfile
import time
from pathlib import Path

SCREENS = ((0, 0, 1920, 1080), (1920, 0, 1280, 720))
"""A lecturer's: places and sizes."""
TOLD = 5
"""Blocks of which the report says what ran in them."""


def _screens(folder: Path) -> Path:
    """Write what makes the offscreen platform have these screens; return the file."""
    out = folder / "screens.json"
    screens = [
        {"name": f"screen {n}", "x": x, "y": y, "width": width, "height": height,
         "logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}
        for n, (x, y, width, height) in enumerate(SCREENS)
    ]  # fmt: skip
    out.write_text(json.dumps({"screens": screens}), encoding="utf-8")
    return out


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--actions", type=int, default=0, help="100000, unless --seconds is said")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1000, help="actions between two rows")
    asked = parser.parse_args()
    actions = asked.actions or (100_000 if asked.seconds == float("inf") else sys.maxsize)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Nothing of the user's is read or written.
        os.environ.update(
            HOME=name,
            USERPROFILE=name,
            XDG_CONFIG_HOME=name,
            TILESCOPE_SETTINGS=str(folder / "settings.ini"),
            QT_QPA_PLATFORM=f"offscreen:configfile={_screens(folder)}",
        )
        from PySide6.QtCore import QCoreApplication, Qt

        QCoreApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
        from tests.soak.run import WARM, soak
        from tests.soak.watch import LONG_MS

        faulthandler.enable()
        os.chdir(name)
        begun = time.monotonic()
        report = soak(folder, actions, asked.seconds, asked.seed, asked.every)
        passed = time.monotonic() - begun
    done = report.samples[-1].actions
    print(f"\n{done} actions in {passed:.0f} s ({done / passed:.0f} a second), seed {asked.seed}; "
          f"{report.checks} comparisons with a new session")  # fmt: skip
    print(f"blocks over {LONG_MS} ms, in the time that the window's thread computed:")
    for block in report.blocks:
        print(f"  {block.cpu:5.0f} ms ({block.wall:.0f} passed) at {block.at}: {block.what[:100]}")
        if block in report.blocks[:TOLD]:
            print("".join(f"           {line}\n" for line in block.where), end="")
    print(f"medians of the samples around {WARM} actions, and of the last:")
    for name, before, after in report.growth():
        print(f"  {name:8} {before:8.0f} {after:8.0f}  {100 * (after / before - 1):+.1f} %")
    faults = report.faults()
    for text in report.failures:
        print(f"\n{text}")
    print("\n" + ("\n".join(faults) or "nothing wrong"))
    return 1 if faults else 0


code = main()
sys.stdout.flush()
os._exit(code)  # as the program itself does: Qt's objects are not taken apart in Python's order
