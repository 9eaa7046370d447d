"""Train the language model: packages, tokens, the run, the files in assets/language."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from simulator.language.model import write_model
from simulator.language.models import WEIGHTS
from simulator.language.shape import Shape
from simulator.language.tokenizer import Tokenizer
from tests.training import measure, tokens
from tests.training.train import Schedule, train


def write(path: Path, checkpoint: Path, out: Path = WEIGHTS) -> None:
    """Write the model of a checkpoint, with the merges in the file of tokens at `path`."""
    state = torch.load(checkpoint, weights_only=True)["model"]
    with np.load(path) as file:
        tokenizer = Tokenizer((int(left), int(right)) for left, right in file["merges"])
    out.parent.mkdir(exist_ok=True)
    write_model(out, Shape(), {name: value.numpy() for name, value in state.items()}, tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.training", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("build/sentence-model"))
    parser.add_argument("--steps", type=int, default=Schedule.steps)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    path = tokens.prepare(asked.folder)
    train(path, asked.folder / "run", Schedule(steps=asked.steps))
    write(path, asked.folder / "run" / f"step-{asked.steps:05}.pt", asked.out)
    measure.main(path, asked.out)


if __name__ == "__main__":
    main()
