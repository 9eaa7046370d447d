"""The report on the heads of a run: their jobs, their distances, and the run without one head."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simulator.base.dtypes import F64, frozen
from simulator.base.matmul import matmul
from simulator.problem.masks import Mask
from simulator.problem.sentence import computed, sentence_model
from simulator.problem.workload import Inputs, Workload
from simulator.study.attention_map import HeadScores
from simulator.study.attention_part import MapPart
from simulator.study.jobs.attention_only import (
    Head,
    Model,
    TrainingFigures,
    figures,
    layer_place,
    read_model,
)
from simulator.study.jobs.jobs import JOB_NAMES, HeadJobs, head_distances, head_jobs, shares_of_y

Progress = Callable[[float], None]
HeadName = tuple[int | None, int]
"""Layer and number of a head; the layer is None if only the run's layer is known."""
MOST_HEADS = 36
"""Most heads of a model that reads a typed text: a table of more rows is hard to read."""


@dataclass(frozen=True, slots=True)
class Training:
    """Facts about a run's layer from the whole model beside it."""

    # step, layer: the moment and the layer of the run
    step: int
    layer: int
    off: Head | None  # the head that is switched off
    # whole, now: of this moment, with all heads and without the one that is off
    whole: TrainingFigures
    now: TrainingFigures
    without: tuple[TrainingFigures, ...]  # of this moment without each of the heads alone
    course: tuple[TrainingFigures, ...]  # of every moment, without the one that is off

    @property
    def trained(self) -> bool:
        """Whether there are several moments, between which something has been learned."""
        return len(self.course) > 1


@dataclass(frozen=True, slots=True)
class HeadReport:
    """The heads of a run; if its whole model is known, the heads of all layers."""

    heads: tuple[HeadName, ...]  # at least one
    jobs: HeadJobs  # their scores
    distances: F64  # (heads, heads) float64, 0 to 1
    # (heads,) float64, by how much Y of a head's layer moves without this head alone; None if W_O
    # is not known
    shares: F64 | None
    part: str  # why these are not all heads and rows of the run; empty if they are
    tokens: bool  # whether tokens are known
    training: Training | None = None  # the facts from the whole model
    cross: bool = False  # whether queries and keys come from different texts

    @property
    def layers(self) -> bool:
        """Whether the report has the heads of several layers."""
        return self.heads[0][0] is not None


def model_place(workload: Workload) -> tuple[Path, int, int] | None:
    """Return folder, step and layer of a run's model; None: not known, or the run is no part of it.

    With another temperature or mask than the model's, with changed scores or turned by positions,
    the run is not a part of its forward pass.
    """
    w = workload
    known = w.file is not None and w.file.stored and _as_trained(w)
    return layer_place(w.file.path) if known and w.file else None


def reads_whole_model(workload: Workload) -> bool:
    """Return whether a run is a layer of the model that reads a typed text, as the model has it."""
    return workload.typed and _as_trained(workload)


def _as_trained(w: Workload) -> bool:
    same = w.temperature == 1 and math.isclose(w.scale, w.head_dim**-0.5, rel_tol=1e-6)
    plain = w.mask == Mask(w.seqlen_q, w.seqlen_k, causal=True)
    return same and plain and not w.variant and w.position is None


def head_report(
    workload: Workload,
    inputs: Inputs,
    part: MapPart,
    off: Head | None = None,
    progress: Progress = lambda share: None,
) -> HeadReport:
    """Return the report on the heads of a run.

    part: heads and rows that are looked at, if the model is not known.
    off: the head of the model that is switched off.
    progress: told the share done, 0 to 1; may raise to stop.
    Raises InputError: the files of the model cannot be read.
    """
    place = model_place(workload)
    if place is not None:
        folder, step, layer = place
        return model_report(read_model(folder), step, layer, off, progress)
    if reads_whole_model(workload):
        return sentence_report(workload, progress)
    maps = HeadScores(workload, inputs, part).maps()
    progress(0.1)
    tokens, cross = workload.aligned_tokens, bool(workload.query_tokens)
    jobs = head_jobs(
        maps.weights, workload.mask, maps.rows, tokens, placed=not cross, heads=maps.heads
    )
    shares = None
    layer_of = inputs.layer
    if layer_of is not None and len(part.heads) == workload.input_heads[0]:
        kv = [workload.kv_head_of[head] for head in part.heads]
        o = np.einsum("hij,hjd->hid", maps.weights.astype(np.float64), inputs.v[kv])
        weights = layer_of.weights
        shares = shares_of_y(o, weights["wo"], weights.get("bo", np.zeros(1, np.float32)))
    distances = head_distances(maps.weights, lambda share: progress(0.2 + 0.8 * share))
    heads = tuple((None, workload.picked[head]) for head in part.heads)
    return HeadReport(heads, jobs, distances, shares, part.reason, bool(tokens), cross=cross)


def sentence_report(w: Workload, progress: Progress = lambda share: None) -> HeadReport:
    """Return the report on the heads of all layers of the model that reads a typed text.

    Of more than `MOST_HEADS` heads the report has the ones that do most of a job.
    """
    found, model, n = computed(w.scenario.input), sentence_model(w.scenario), w.seqlen_k
    heads = [
        (layer, head) for layer in range(model.shape.layers) for head in range(len(found.q[0]))
    ]
    weights = np.concatenate(found.weights)
    jobs = head_jobs(weights, Mask(n, n, causal=True), range(n), w.tokens)
    progress(0.1)
    shares = []
    for layer, of_layer in enumerate(found.weights):
        v = np.repeat(found.v[layer], len(of_layer) // len(found.v[layer]), axis=0)
        shares.append(shares_of_y(matmul(of_layer, v), model.layers[layer].output))
    each, part = np.concatenate(shares), ""
    if len(heads) > MOST_HEADS:
        kept = _best(jobs.scores)
        part = f"Of all {len(heads)} heads of the model those {len(kept)} that do most of a job"
        heads, weights, each = [heads[at] for at in kept], weights[kept], each[kept]
        jobs = HeadJobs(frozen(jobs.scores[kept]), jobs.even, jobs.rows)
    distances = head_distances(weights, lambda share: progress(0.2 + 0.8 * share))
    return HeadReport(tuple(heads), jobs, distances, frozen(each), part, True)


def _best(scores: F64) -> list[int]:
    """Return the heads, ascending, with the largest scores in the most telling jobs."""
    jobs = [JOB_NAMES.index(name) for name in ("previous", "first", "same", "induction")]
    order = np.argsort(-np.nan_to_num(scores[:, jobs]), axis=0, kind="stable")
    return sorted(set(order[: MOST_HEADS // len(jobs)].ravel().tolist()))


def model_report(
    model: Model,
    step: int,
    layer: int,
    off: Head | None = None,
    progress: Progress = lambda share: None,
) -> HeadReport:
    """Return the report on all heads of a model at one moment, maybe with one switched off."""
    off = off if off in model.heads else None
    whole = figures(model, step)
    now = whole if off is None else figures(model, step, {off})
    without = []
    for head in model.heads:
        without.append(figures(model, step, {head}))
        progress(0.4 * len(without) / len(model.heads))
    course = []
    for moment in model.moments:
        course.append(figures(model, moment.step, () if off is None else {off}))
        progress(0.4 + 0.5 * len(course) / len(model.moments))
    training = Training(step, layer, off, whole, now, tuple(without), tuple(course))
    distances = head_distances(now.weights)
    return HeadReport(model.heads, now.jobs, distances, whole.shares, "", True, training)
