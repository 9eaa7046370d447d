"""The values that blank fields of a form stand for, and the words in the fields that say so."""

from __future__ import annotations

import math
from typing import NamedTuple

from simulator.problem.input_files import BIAS, SINKS, InputFile
from simulator.problem.workload import Workload
from simulator.program.faults import FAULTS
from simulator.study.ring.dealing import DEVICES, LAYOUTS
from simulator.timing.kernel_kinds import usual_kind
from ui.panels.scenario.fields import (
    BROUGHT,
    OWN,
    SHAPE_KEYS,
    SPECS,
    WHICH_INPUT,
    Texts,
    text_of,
    texts,
)


class Blank(NamedTuple):
    """The value that a blank field stands for, and the words in the field that say so."""

    value: str
    hint: str


def blanks(workload: Workload, said: Texts) -> dict[str, Blank]:
    """Return the value that each field stands for when it is blank.

    said: the texts of the fields, which may already differ from the workload.
    """
    w, shown = workload, texts(workload.scenario)
    unscaled = 1 / math.sqrt(w.head_dim)
    out = {
        "title": Blank("", "none"),
        "attention.dtype": _blank("float32", "by default"),
        "attention.p_dtype": Blank("float32", "by default"),
        "attention.scale": Blank(f"{unscaled:.4g}", f"1/√{w.head_dim} = {unscaled:.4g}"),
        "attention.temperature": _blank(1, "by default"),
        "attention.rescale_threshold": Blank("", "none"),
        "scores.softcap": Blank("", "none"),
        "scores.alibi": Blank("no", "no"),
        "scores.bias": Blank("false", "off, without a bias in the input"),
        "scores.sink_logits": Blank("", "none"),
        "batch.lengths": Blank("", "none"),
        "batch.queries": Blank("", "seqlen_q of each"),
        "batch.sequence": _blank(w.scenario.batch.shown, "by default"),
        "mask.causal": Blank("false", "off, by default"),
        "mask.align": Blank("", "bottom-right by default"),
        "mask.window": Blank("0", "0: no window"),
        "mask.sinks": Blank("0", "0: none"),
        "mask.dilation": Blank("1", "1: every key"),
        "mask.global_tokens": Blank("0", "0: none"),
        "mask.documents": Blank("", "none"),
        "mask.block": Blank("", "none"),
        "position.kind": Blank("", "none"),
        "position.theta": Blank("", "10000 by default"),
        "position.interleaved": Blank("false", "off, by default"),
        "position.fraction": Blank("", "1 by default"),
        "position.offset": Blank("", "0 by default"),
        "tiling.devices": _blank(DEVICES, "by default"),
        "tiling.layout": Blank("", f"{LAYOUTS[0]} by default"),
        "input.seed": _blank(0, "by default"),
        "input.path": Blank("", "a file"),
        "input.text": Blank("", "a text"),
        "input.layer": _blank(0, "by default"),
        "input.layout": Blank("", "hnd by default"),
        "input.head": Blank("all", "all"),
        "input.what_if": Blank("false", "off, by default"),
        "hardware.kernel": _blank(usual_kind(w.algorithm, w.gpu), "by default"),
    }
    off = Blank("false", "off, by default")
    out |= dict.fromkeys((f"faults.{fault.name}" for fault in FAULTS), off)
    out["attention.deterministic"] = off
    rule = said["tiling.rule"] or "fa2"
    for key, size in (("rows", w.rows), ("cols", w.cols)):
        by_rule = rule != OWN and rule == (shown["tiling.rule"] or "fa2")
        out[f"tiling.{key}"] = _blank(size, f"by {rule}") if by_rule else Blank(str(size), "")
    phi = w.feature_map
    random = Blank(str(2 * w.head_dim), f"{2 * w.head_dim}, 2 head_dim")
    drawn = Blank("", "of the file, or drawn" if w.file else "drawn")
    out |= {
        "attention.feature_map": _blank("elu1", "by default"),
        "attention.features": random if phi and phi.projects else Blank("", "of performer"),
        "attention.decay": drawn,
        "attention.strength": drawn,
    }
    why = "by split size" if said["tiling.split_size"] else "by auto"
    out["tiling.splits"] = _blank(w.splits, why)
    out["tiling.split_size"] = _blank(w.split_blocks * w.cols, "by splits")
    out["tiling.page_size"] = _blank(w.page_size, "divides Bc")
    lacks = Blank("", f"{w.algorithm} has none")
    out |= {name: lacks for name, spec in SPECS.items() if spec.of and w.algorithm not in spec.of}
    if (said["input.source"] or "random") == "random":
        return out | _random_blanks(w, said) | _latent_blanks(w)
    if w.file and all(said[name] == shown[name] for name in WHICH_INPUT):
        return out | _file_blanks(w.file) | _latent_blanks(w)
    return out | _latent_blanks(w) | dict.fromkeys(BROUGHT, Blank("", "from input"))


def _blank(value: object, why: str) -> Blank:
    return Blank(str(value), f"{value} {why}")


def _random_blanks(w: Workload, said: Texts) -> dict[str, Blank]:
    heads, kv_heads = said["attention.heads"], said["attention.kv_heads"]
    return {
        "attention.heads": _blank(kv_heads, "as kv_heads") if kv_heads else _blank(1, "by default"),
        "attention.kv_heads": _blank(heads or 1, "as heads"),
        "attention.seqlen_q": Blank(
            str(w.queries), "of the batch" if said["batch.queries"] else "needed"
        ),
        "attention.seqlen_k": _blank(w.seqlen_k, "of the batch")
        if said["batch.lengths"]
        else _blank(said["attention.seqlen_q"] or w.queries, "as seqlen_q"),
        "attention.head_dim": Blank(str(w.head_dim), "needed"),
        "attention.value_dim": _blank(said["attention.head_dim"] or w.head_dim, "as head_dim"),
    }


def _latent_blanks(w: Workload) -> dict[str, Blank]:
    own, other = ("latent_dim", "rope_dim"), ("head_dim", "value_dim")
    if not w.latent:
        return {f"attention.{key}": Blank("", "none: K and V are apart") for key in own}
    sizes = w.value_dim, w.head_dim - w.value_dim
    return {
        **{f"attention.{key}": _blank(n, "in all") for key, n in zip(own, sizes, strict=True)},
        **{f"attention.{key}": Blank("", "of the latent") for key in other},
        "attention.kv_heads": Blank("1", "1: the latent"),
    }


def _file_blanks(file: InputFile) -> dict[str, Blank]:
    brought = "from input"
    heads, seqlen_q, head_dim = file.q.shape
    kv_heads, seqlen_k, value_dim = file.v.shape
    sizes = (heads, kv_heads, seqlen_q, seqlen_k, head_dim, value_dim)
    out = {
        f"attention.{key}": _blank(size, brought)
        for key, size in zip(SHAPE_KEYS, sizes, strict=True)
    }
    out["attention.dtype"] = _blank(file.q.dtype, brought)
    if file.said.scale is not None:
        out["attention.scale"] = _blank(f"{file.said.scale:.4g}", brought)
    if file.said.causal is not None:
        word = "on" if file.said.causal else "off"
        out["mask.causal"] = Blank(text_of(file.said.causal), f"{word}, {brought}")
    if file.said.window:
        out["mask.window"] = _blank(file.said.window, brought)
    if file.said.softcap:
        out["scores.softcap"] = _blank(f"{file.said.softcap:g}", brought)
    if file.said.alibi:
        out["scores.alibi"] = Blank("yes", f"slopes {brought}")
    if SINKS in dict(file.extra):
        out["scores.sink_logits"] = Blank("file", brought)
    if BIAS in dict(file.extra):
        out["scores.bias"] = Blank("true", f"on, {brought}")
    return out
