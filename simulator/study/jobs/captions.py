"""Numbers of what heads do that captions may ask for."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

from simulator.base.errors import refuse
from simulator.study.attention_map import HeadScores
from simulator.study.attention_part import MapPart
from simulator.study.captions import Numbers, chosen, known, named
from simulator.study.jobs.attention_only import Model as WholeModel
from simulator.study.jobs.attention_only import TrainingFigures as HeadFigures
from simulator.study.jobs.attention_only import figures as head_figures
from simulator.study.jobs.attention_only import read_model
from simulator.study.jobs.jobs import JOB_NAMES, HeadJobs, head_distances, head_jobs
from simulator.study.jobs.report import model_place
from simulator.study.jobs.trained import KINDS, trained_variants


@known
def head(n: Numbers) -> int:
    """Number of the query head at the cursor, among those of the input."""
    return n.workload.picked[n.head * n.workload.group]


@known
def layer(n: Numbers) -> int:
    """Number of the run's layer in its model."""
    return _place(n)[2]


@known
def steps(n: Numbers) -> int:
    """Steps of training that the run's model has had."""
    return _place(n)[1]


def _place(n: Numbers) -> tuple[Path, int, int]:
    found = model_place(n.workload)
    if found is None:
        raise refuse("", "input", "", "a layer of a model whose other files are beside it")
    return found


@known
def job(n: Numbers, name: str, head: int) -> float:
    """Score of a head in `previous`, `next`, `first`, `self`, `same` or `induction`."""
    w, inputs = n.trace.single_heads
    if head not in w.picked:
        raise refuse("", "job", head, f"a head of the run, of {w.input_heads[0]}")
    part = MapPart((w.picked.index(head),), range(w.seqlen_q))
    maps = HeadScores(w, inputs, part).maps()
    mask = w.mask.of_head(part.heads[0])
    return _score(head_jobs(maps.weights, mask, maps.rows, w.aligned_tokens), name, 0)


@known
def model_job(
    n: Numbers, name: str, layer: int, head: int, off_layer: int = -1, off_head: int = -1
) -> float:
    """Score of a head of the run's model, maybe with one of its heads switched off."""
    model, found = _model_figures(n, off_layer, off_head)
    if (layer, head) not in model.heads:
        raise refuse("", "model_job", [layer, head], "a layer and a head of the model")
    return _score(found.jobs, name, model.heads.index((layer, head)))


@known
def job_at_step(n: Numbers, name: str, layer: int, head: int, step: int) -> float:
    """Score of a head of the run's model at another moment of its training."""
    model = _model_figures(n, -1, -1)[0]
    steps = [moment.step for moment in model.moments]
    if step not in steps or (layer, head) not in model.heads:
        raise refuse("", "job_at_step", [layer, head, step], f"a head, and a step of {steps}")
    return _score(head_figures(model, step).jobs, name, model.heads.index((layer, head)))


@known
def heads_apart(n: Numbers, layer: int, head: int, other_layer: int, other: int) -> float:
    """Distance of two heads of the run's model: 0 for the same weights, 1 for no key in common."""
    model, found = _model_figures(n, -1, -1)
    pair = [(layer, head), (other_layer, other)]
    if not set(pair) <= set(model.heads):
        raise refuse("", "heads_apart", pair, "two heads of the model")
    return float(
        head_distances(found.weights)[model.heads.index(pair[0]), model.heads.index(pair[1])]
    )


@known
def model_loss(n: Numbers, kind: str, off_layer: int = -1, off_head: int = -1) -> float:
    """Loss of the run's model in nats a word, `again` or `sentences`, maybe with a head off."""
    found = _model_figures(n, off_layer, off_head)[1].loss
    return named("model_loss", kind, found)


@known
def trained_loss(_: Numbers, variant: str, kind: str, step: int = -1, seed: int = 0) -> float:
    """Loss of a variant of the small transformer, `again` or `sentences`; -1: after its last step.

    Variants are `usual`, `no root`, `one head`, `one head, no root` and `MQA`; seed 0: the mean.
    """
    found = trained_variants()
    one = named("variant", variant, {each.name: each for each in found.variants}, "; ")
    steps = {str(each): n for n, each in enumerate(found.steps)}
    place = -1 if step == -1 else named("step", str(step), steps)
    losses = one.of(chosen("kind", kind, KINDS))[:, place]
    if not seed:
        return float(losses.mean())
    seeds = {str(each): n for n, each in enumerate(found.seeds)}
    return float(losses[named("seed", str(seed), seeds)])


def _score(jobs: HeadJobs, name: str, at: int) -> float:
    if name not in JOB_NAMES or math.isnan(jobs.of(name)[at]):
        raise refuse("", "job", name, f"one of {', '.join(JOB_NAMES)} that a row can do")
    return float(jobs.of(name)[at])


def _model_figures(n: Numbers, layer: int, head: int) -> tuple[WholeModel, HeadFigures]:
    place = model_place(n.workload)
    if place is None:
        raise refuse("", "input.path", "", "a layer whose whole model is beside it")
    found = _whole_model(place[0])
    off = (layer, head)
    if off != (-1, -1) and off not in found.heads:
        raise refuse("", "head", list(off), "a layer and a head of the model")
    return found, head_figures(found, place[1], {off} - {(-1, -1)})


_whole_model = lru_cache(maxsize=2)(read_model)
