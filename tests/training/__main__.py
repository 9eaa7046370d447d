"""Train the language model: packages, tokens, the run, the files in assets/language."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.training import tokens
from tests.training.train import Schedule, train


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.training", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/sentence-model"))
    parser.add_argument("--steps", type=int, default=Schedule.steps)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    path = tokens.prepare(asked.folder)
    train(path, asked.folder / "run", Schedule(steps=asked.steps))


if __name__ == "__main__":
    main()
