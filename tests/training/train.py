"""The training run: one schedule, seeded; a resumed run equals a whole one bit for bit.

Sequences that repeat come at all times, and make up most of a stage in the middle: without it no
induction head appeared in 2 000 steps. Matrices learn with Muon, the embedding and the norms with
AdamW. The rate warms up, holds, and falls to the end.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from simulator.language.shape import Shape
from simulator.language.tokenizer import BYTES, START
from tests.training.model import Model

MIX = {
    "addresses": 0.15,
    "moby dick": 0.08,
    "austen": 0.26,
    "definitions": 0.07,
    "examples": 0.10,
    "templates": 0.22,
}
"""Shares of rows that do not repeat, up to their sum."""
NEWLINE = 1 + BYTES.index(ord("\n"))


@dataclass(frozen=True)
class Schedule:
    steps: int = 5000
    rows: int = 16
    repeated: float = 0.12  # share of rows that repeat
    stage: tuple[int, int] = (600, 2000)  # steps of the stage in which more do
    repeated_in_stage: float = 0.55
    warm: int = 100
    falls: float = 0.4  # the share of steps at the end in which the rate falls to 2 %
    muon: float = 0.006
    adam: float = 0.004
    seed: int = 1
    frequent: tuple[int, int] = (257, 1400)  # tokens that were merged first
    parts: int = 2  # of a batch, each computed by a thread: the sums do not depend on the machine
    checkpoint: int = 500

    def rate(self, step: int) -> float:
        """What the rates are multiplied by in `step`, which counts from 1."""
        left = (self.steps - step) / (self.falls * self.steps)
        return min(1.0, step / self.warm) * min(1.0, max(0.02, left))

    def share(self, step: int) -> float:
        """The share of rows that repeat."""
        return self.repeated_in_stage if self.stage[0] < step <= self.stage[1] else self.repeated


class Rows:
    """Rows of tokens and what comes next in them; half begin where a line does, half anywhere.

    Were every text to begin with a line, what begins otherwise would be taken for what repeats: a
    model that was trained that way lost 3 nats a token on it.
    """

    def __init__(
        self, path: Path, shape: Shape, schedule: Schedule, seed: int, part: str = "learned"
    ) -> None:
        with np.load(path) as file:
            self.tokens = {name: file[f"{part} {name}"] for name in MIX}
        self.length = shape.learned
        self.vocabulary, self.frequent = shape.vocabulary, schedule.frequent
        self.rng = np.random.default_rng(seed)
        self.starts = {}
        for name, tokens in self.tokens.items():
            starts = np.flatnonzero(tokens == NEWLINE) + 1
            self.starts[name] = starts[starts < len(tokens) - self.length - 1]

    def text(self, name: str) -> NDArray[np.int64]:
        """(length + 1,): the start, then text of a source."""
        return np.concatenate([[START], self._piece(name, self.length)]).astype(int)

    def _piece(self, name: str, length: int) -> NDArray[np.uint16]:
        tokens = self.tokens[name]
        if self.rng.random() < 0.5:
            start = int(self.rng.choice(self.starts[name]))
        else:
            start = int(self.rng.integers(0, len(tokens) - length))
        return tokens[start : start + length]

    def repeats(self) -> tuple[NDArray[np.int64], int]:
        """(length + 1,): the start, then something again and again; and how long it is."""
        period = int(np.exp(self.rng.uniform(np.log(5), np.log(90))))
        kind = self.rng.random()
        if kind < 0.4:
            said = self._piece(str(self.rng.choice(["austen", "examples", "moby dick"])), period)
        elif kind < 0.85:
            said = self.rng.integers(*self.frequent, period)
        else:
            said = self.rng.integers(257, self.vocabulary, period)
        return np.concatenate([[START], np.resize(said, self.length)]).astype(int), period

    def batch(self, count: int, repeated: float) -> tuple[Tensor, Tensor]:
        """Tokens and the next ones, (count, length) each; what cannot be known counts as −100."""
        inputs, wanted = [], []
        names, shares = list(MIX), np.array(list(MIX.values()))
        for _ in range(count):
            if self.rng.random() < repeated:
                row, period = self.repeats()
                following = row[1:].copy()
                following[:period] = -100
            else:
                row = self.text(names[self.rng.choice(len(names), p=shares / shares.sum())])
                following = row[1:]
            inputs.append(row[:-1])
            wanted.append(following)
        return torch.from_numpy(np.stack(inputs)), torch.from_numpy(np.stack(wanted))


class Run:
    """A model, its optimizers and its rows after some steps of a schedule."""

    def __init__(self, tokens: Path, schedule: Schedule, shape: Shape | None = None) -> None:
        torch.manual_seed(schedule.seed)
        # A thread for each part of a batch: they wait for each other once a step, not at every op.
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = False
        self.threads = ThreadPoolExecutor(schedule.parts)
        self.schedule, self.shape = schedule, shape or Shape()
        self.model = Model(self.shape)
        matrices = [
            w for name, w in self.model.named_parameters() if w.ndim == 2 and name != "embed"
        ]
        rest = [w for name, w in self.model.named_parameters() if w.ndim == 1 or name == "embed"]
        self.optimizers = {
            schedule.muon: torch.optim.Muon(
                matrices,
                lr=schedule.muon,
                weight_decay=0.05,
                momentum=0.95,
                adjust_lr_fn="match_rms_adamw",
            ),
            schedule.adam: torch.optim.AdamW(
                rest, lr=schedule.adam, betas=(0.9, 0.95), weight_decay=0.0
            ),
        }
        self.rows = Rows(tokens, self.shape, schedule, schedule.seed)
        self.step = 0

    def advance(self) -> float:
        """Take one step; return the loss of its batch, in nats a token."""
        self.step += 1
        rate = self.schedule.rate(self.step)
        for whole, optimizer in self.optimizers.items():
            for group in optimizer.param_groups:
                group["lr"] = whole * rate
        tokens, wanted = self.rows.batch(self.schedule.rows, self.schedule.share(self.step))
        known = int((wanted != -100).sum())
        parts = (part.chunk(self.schedule.parts) for part in (tokens, wanted))
        found = list(
            self.threads.map(lambda part: self._part(*part, known), zip(*parts, strict=True))
        )
        for w, *gradients in zip(
            self.model.parameters(), *(part[1] for part in found), strict=True
        ):
            w.grad = torch.stack(gradients).sum(0)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers.values():
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return sum(loss for loss, _ in found)

    def _part(self, tokens: Tensor, wanted: Tensor, known: int) -> tuple[float, Sequence[Tensor]]:
        """The loss of a part of the batch, as a share of `known` tokens, and its gradients."""
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.model(tokens).flatten(0, 1)
        loss = F.cross_entropy(logits.float(), wanted.flatten(), reduction="sum") / known
        return loss.item(), torch.autograd.grad(loss, list(self.model.parameters()))

    def save(self, path: Path) -> None:
        """Write everything that the next step depends on; a file is whole or not there."""
        state = {
            "step": self.step,
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers.values()],
            "rows": json.dumps(self.rows.rng.bit_generator.state),
        }
        torch.save(state, path.with_suffix(".part"))
        os.replace(path.with_suffix(".part"), path)

    def load(self, path: Path) -> None:
        """Go on where the run that wrote `path` was."""
        state: dict[str, Any] = torch.load(path, weights_only=True)
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers.values(), state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.rows.rng.bit_generator.state = json.loads(state["rows"])


@torch.no_grad()
def held_out(model: Model, tokens: Path, rows: int = 12) -> dict[str, float]:
    """Losses of texts that were not learned from, and of what repeats, in nats a token."""
    drawn, out = Rows(tokens, model.shape, Schedule(), 5, "held"), {}
    for name in (*MIX, "repeated"):
        losses = []
        for _ in range(rows):
            row, known = drawn.repeats() if name == "repeated" else (drawn.text(name), 0)
            logits = model(torch.from_numpy(row[None, :-1]))[0]
            losses.append(
                F.cross_entropy(logits[known:], torch.from_numpy(row[1 + known :])).item()
            )
        out[name] = sum(losses) / rows
    return out


def train(tokens: Path, folder: Path, schedule: Schedule) -> Run:
    """Take all steps, from the last checkpoint in `folder` on, and say how it goes."""
    run = Run(tokens, schedule)
    folder.mkdir(parents=True, exist_ok=True)
    if found := sorted(folder.glob("step-*.pt")):
        run.load(found[-1])
        print(f"goes on after step {run.step}", flush=True)
    count = sum(w.numel() for w in run.model.parameters())
    print(f"{count} parameters, PyTorch {torch.__version__}, {schedule}", flush=True)
    began, first, losses = time.monotonic(), run.step, []
    while run.step < schedule.steps:
        losses.append(run.advance())
        if run.step % 50 == 0:
            took = time.monotonic() - began
            pace = took / (run.step - first)
            print(
                f"step {run.step}  loss {np.mean(losses[-50:]):.3f}  {took:.0f} s  "
                f"{pace:.3f} s a step  {pace * (schedule.steps - run.step) / 60:.0f} min left",
                flush=True,
            )
        if run.step % schedule.checkpoint == 0 or run.step == schedule.steps:
            run.save(folder / f"step-{run.step:05}.pt")
            held = {name: round(loss, 3) for name, loss in held_out(run.model, tokens).items()}
            print(f"step {run.step}  held out {held}", flush=True)
    return run
