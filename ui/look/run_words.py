"""A run in a few words each: its scenario, where its input comes from, which engine computes."""

from __future__ import annotations

from simulator.base.errors import shortened
from simulator.problem.input_files import done_after
from simulator.problem.masks import Mask, Window
from simulator.problem.workload import Workload
from simulator.program.algorithms import algorithm_of, takes_turns
from ui.look.units import count_text, plural

_MOST_NAMED = 4
"""Most heads that are named one by one."""
_LONG = 24
"""Letters of a typed text, or of what a layer does to O, that are said among a few words."""


def scenario_words(w: Workload, *, asked: bool = True) -> list[str]:
    """Return what is special about a workload, a few words each, most important first.

    asked: with tokens, width, tile and causal, which the strip of questions has fields for.
    """
    mask, words = w.mask, []
    if asked:
        words = [
            f"Nq {count_text(w.queries)} · Nk {count_text(w.seqlen_k)} · d {w.head_dim}",
            f"Br {count_text(w.rows)} · Bc {count_text(w.cols)}" + splits_words(w),
            "causal" if mask.causal else "not causal",
        ]
    elif algorithm_of(w).splits:
        words = [splits_words(w).removeprefix(" · ")]
    words += [*pattern_words(mask), sharing_words(w), w.dtype]
    if w.what_if:
        words.insert(0, what_if_words(w))
    batch = w.scenario.batch
    if batch.lengths:
        words.insert(1, f"sequence {batch.shown} of a batch of {len(batch.lengths)}")
    if done := done_after(w.file):
        words.insert(0, f"the layer {done if len(done) <= _LONG else 'may change O'} before W_O")
    if w.position is not None:
        words.append("RoPE")
    if w.pages is not None:
        words.append(f"pages of {count_text(w.page_size)}")
    words += [change.name for change in w.score_changes]
    if w.threshold is not None:
        words.append(f"rescale threshold {w.threshold:g}")
    if takes_turns(w):
        words.append("deterministic")
    if w.sink_logits:
        words.append("sink logits")
    if w.gated:
        words.append("gated O")
    if w.temperature != 1:
        words.append(f"temperature {w.temperature:g}")
    words.append(input_words(w))
    return words


def what_if_words(w: Workload) -> str:
    """Return what is not as in the file of a scenario that asks what would be."""
    if w.file is None:
        return "what if: random numbers of this shape"
    return f"what if: {'the model was not trained so' if w.file.model else 'not as in the file'}"


def window_words(window: Window) -> str:
    """Return a window in a few words."""
    if isinstance(window, int):
        return f"window {count_text(window)}"
    left, right = (count_text(side) if side >= 0 else "-1" for side in window)
    return f"window [{left}, {right}]"


def pattern_words(mask: Mask) -> list[str]:
    """Return what a mask hides beside the keys to come, a few words each."""
    words = ["aligned top-left"] * mask.moved
    if mask.window:
        sinks = [plural(mask.sinks, "sink")] * (mask.sinks > 0)
        words.append(" + ".join([window_words(mask.window), *sinks]))
        words += [f"one key in {count_text(mask.dilation)}"] * (mask.dilation > 1)
        words += [plural(mask.global_tokens, "global token")] * (mask.global_tokens > 0)
    if mask.documents:
        words.append(plural(len(mask.documents), "document"))
    if mask.blocks:
        words.append(f"block mask of {count_text(mask.blocks.size)}")
    if mask.tensor:
        words.append("mask of the file" + " for each head" * mask.tensor.of_each_head)
    return words


def file_mask_words(mask: Mask) -> str:
    """Return as a sentence that the input file has a mask; empty if it has none."""
    if mask.tensor is None:
        return ""
    if mask.tensor.of_each_head:
        return "The input file has a mask for each head: they hide pairs, whatever is set below."
    return "The input file has a mask: it hides pairs, whatever is set below."


def splits_words(w: Workload) -> str:
    """Return into how many splits keys are dealt out; nothing where they are not."""
    return f" · {plural(w.splits, 'split')}" if algorithm_of(w).splits else ""


def sharing_words(w: Workload) -> str:
    """Return how the heads of the input share, ``GQA 12:4``, and which of them run if not all."""
    heads, kv_heads = w.input_heads
    kind = "MHA" if kv_heads == heads else "MQA" if kv_heads == 1 else "GQA"
    said = f"{kind} {heads}:{kv_heads}"
    if w.picked == tuple(range(heads)):
        return said
    if len(w.picked) > _MOST_NAMED:
        return f"{said} · {len(w.picked)} of the heads"
    return f"{said} · head{'s' * (len(w.picked) > 1)} {', '.join(map(str, w.picked))}"


def input_words(w: Workload) -> str:
    """Return where Q, K and V come from."""
    said = w.scenario.input
    if w.file is None:
        return f"random input, seed {said.seed}"
    if said.source == "sentence":
        words = shortened(said.text or "")
        words = words if len(words) <= _LONG else f"{words[: _LONG - 1]}…"
        model = "" if said.model == "own" else f"{w.file.model}, "
        return f"sentence “{words}”, {model}layer {said.layer}"
    name = w.file.path.stem
    return f"real layer “{name}”" if w.file.model else f"file “{name}”"


def engine_words(name: str, device: str) -> str:
    """Return which engine computes, in short: ``CPU · NumPy``, ``GPU H200 · CUDA kernel``."""
    if name == "numpy":
        return f"{device} · NumPy"
    return "CPU · CUDA kernel" if name == "host" else f"GPU {device} · CUDA kernel"
