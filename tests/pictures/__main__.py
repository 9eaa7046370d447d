"""Draws everything that a user sees, at a commit, and says what differs from another one.

``python -m tests.pictures`` draws the checkout into build/pictures; ``--at COMMIT`` draws a commit
from a worktree of its own, by that commit's own drawing code. ``--compare OTHER`` compares with a
folder that was drawn before: pictures by pixels, side by side where they differ, and bits.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.pictures.compare import compare

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("windows", "panels", "lessons", "scenes", "bits")


def draw_at(commit: str, arguments: list[str]) -> int:
    """Draw a commit from a worktree, which is taken away again."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "checkout"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(tree), commit], check=True)
        try:
            command = [sys.executable, "-m", "tests.pictures", *arguments]
            return subprocess.run(command, cwd=tree, check=False).returncode
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def draw(kinds: list[str], only: str, folder: Path) -> None:
    from tests.pictures.bits import bits
    from tests.pictures.lessons import draw_lessons
    from tests.pictures.panels import draw_panels
    from tests.pictures.windows import draw_scenes, draw_windows

    makers = dict(
        zip(KINDS, (draw_windows, draw_panels, draw_lessons, draw_scenes, bits), strict=True)
    )
    for kind in kinds:
        into = folder / kind
        into.mkdir(parents=True, exist_ok=True)
        for path in makers[kind](into, only):
            print(path, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.pictures", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build/pictures")
    parser.add_argument("--at", metavar="COMMIT", help="draw this commit instead of the checkout")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--only", default="", help="what the names of pictures contain")
    parser.add_argument("--compare", type=Path, metavar="OTHER", help="a folder drawn before")
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    folder = options.output.resolve()
    if options.compare is not None:
        return compare(options.compare, folder)
    if options.at:
        words = ["-o", str(folder), "--only", options.only, "--kinds", *options.kinds]
        return draw_at(options.at, words)
    draw(options.kinds, options.only, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
