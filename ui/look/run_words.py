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
"""Most letters of a typed text, or of a layer's change of O, among a few words."""


def scenario_words(w: Workload) -> list[str]:
    """Return what is special about a workload, a few words each, most important first."""
    mask = w.mask
    words = [
        f"Nq {count_text(w.queries)} · Nk {count_text(w.seqlen_k)} · d {w.head_dim}",
        " · ".join((f"Br {count_text(w.rows)} · Bc {count_text(w.cols)}", *splits_words(w))),
        "causal" if mask.causal else "not causal",
        *(said for said, _ in pattern_words(mask)),
        sharing_words(w),
        w.dtype,
    ]
    if w.what_if:
        words.insert(0, what_if_words(w))
    if w.scenario.batch.lengths:
        words.insert(1, batch_words(w))
    if done := done_words(w):
        words.insert(0, done)
    return [*words, *(said for said, _ in change_words(w)), input_words(w)]


def done_words(w: Workload) -> str:
    """Return what the recorded layer does to O; empty if nothing."""
    done = done_after(w.file)
    return done and f"the layer {done if len(done) <= _LONG else 'may change O'} before W_O"


def batch_words(w: Workload) -> str:
    """Return which sequence of its batch a run shows."""
    batch = w.scenario.batch
    return f"sequence {batch.shown} of a batch of {len(batch.lengths)}"


def sequence_lines(w: Workload) -> tuple[str, ...]:
    """Return the line that says which sequence of a batch a table counts; none without a batch."""
    said = f"of {batch_words(w)}: batch.sequence names another"
    return (said,) if w.scenario.batch.lengths else ()


def change_words(w: Workload) -> list[tuple[str, str]]:
    """Return other unusual settings, a few words each, with the scenario field of each."""
    words = [("RoPE", "position.kind")] * (w.position is not None)
    if w.pages is not None:
        words.append((f"pages of {count_text(w.page_size)}", "tiling.page_size"))
    words += [(change.name, f"scores.{change.key}") for change in w.score_changes]
    if w.threshold is not None:
        words.append((f"rescale threshold {w.threshold:g}", "attention.rescale_threshold"))
    words += [("deterministic", "attention.deterministic")] * takes_turns(w)
    words += [("sink logits", "scores.sink_logits")] * bool(w.sink_logits)
    words += [("gated O", "input.path")] * w.gated
    if w.temperature != 1:
        words.append((f"temperature {w.temperature:g}", "attention.temperature"))
    return words


def what_if_words(w: Workload) -> str:
    """Return how a what-if scenario differs from its file, in words."""
    if w.file is None:
        return "what if: random numbers of this shape"
    return (
        f"what if: {'the model was not trained so' if w.file.said.model else 'not as in the file'}"
    )


def window_words(window: Window) -> str:
    """Return a window in a few words."""
    if isinstance(window, int):
        return f"window {count_text(window)}"
    left, right = (count_text(side) if side >= 0 else "-1" for side in window)
    return f"window [{left}, {right}]"


def pattern_words(mask: Mask) -> list[tuple[str, str]]:
    """Return what a mask hides besides later keys, a few words each, with their scenario fields."""
    words = [("aligned top-left", "mask.align")] * mask.moved
    if mask.window:
        sinks = [plural(mask.sinks, "sink")] * (mask.sinks > 0)
        words.append((" + ".join([window_words(mask.window), *sinks]), "mask.window"))
        if mask.dilation > 1:
            words.append((f"one key in {count_text(mask.dilation)}", "mask.dilation"))
        if mask.global_tokens > 0:
            words.append((plural(mask.global_tokens, "global token"), "mask.global_tokens"))
    if mask.documents:
        words.append((plural(len(mask.documents), "document"), "mask.documents"))
    if mask.blocks:
        words.append((f"block mask of {count_text(mask.blocks.size)}", "mask.block"))
    if mask.tensor:
        words.append(
            ("mask of the file" + " for each head" * mask.tensor.of_each_head, "input.path")
        )
    return words


def file_mask_words(mask: Mask) -> str:
    """Return a sentence that the input file has a mask; empty if the file has none."""
    if mask.tensor is None:
        return ""
    if mask.tensor.of_each_head:
        return "The input file has a mask for each head: they hide pairs, whatever is set below."
    return "The input file has a mask: it hides pairs, whatever is set below."


def splits_words(w: Workload) -> tuple[str, ...]:
    """Return the number of splits of the keys, in words; empty without splits."""
    return (plural(w.splits, "split"),) if algorithm_of(w).splits else ()


def sharing_words(w: Workload) -> str:
    """Return how the input's heads share K and V, ``GQA 12:4``, and which heads run if not all."""
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
        model = "" if said.model == "own" else f"{w.file.said.model}, "
        return f"sentence “{words}”, {model}layer {said.layer}"
    name = w.file.path.stem
    return f"real layer “{name}”" if w.file.said.model else f"file “{name}”"


def engine_words(name: str, device: str) -> str:
    """Return which engine computes, in short: ``CPU · NumPy``, ``GPU H200 · CUDA kernel``."""
    if name == "numpy":
        return f"{device} · NumPy"
    return "CPU · CUDA kernel" if name == "host" else f"GPU {device} · CUDA kernel"


def engine_note(name: str, device: str, why: str) -> str:
    """Return which engine computes, in a sentence; why: what keeps it from the GPU, if anything."""
    if name != "numpy":
        return f"Numbers recorded from CUDA kernels: {device}."
    return f"Numbers computed with NumPy on the CPU{f': {why}' if why else ''}."
