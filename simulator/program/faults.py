"""Mistakes to switch on: each makes a few ops wrong in a way that happens in practice.

If a fault is on, the NumPy engine computes op by op; the CUDA kernels cannot make faults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from simulator.base.dtypes import E4M3_LARGEST
from simulator.base.matmul import matmul
from simulator.problem.facts import SKIPPING
from simulator.problem.scenario import Faults, Scenario
from simulator.problem.scores import SINK, SKIP, SOFTCAP
from simulator.problem.workload import Workload
from simulator.program.algorithms import ALGORITHMS
from simulator.program.gradient_ops import (
    AddKeyGradient,
    ConvertQueryGradient,
    ScoreGradient,
    WeightsAgain,
)
from simulator.program.op import Op
from simulator.program.ops import (
    Accumulate,
    ApplyMask,
    Combine,
    Exponentials,
    Initialise,
    LoadSink,
    Normalise,
    Rescale,
    RowMax,
    RowSum,
    Scores,
    exp_shift,
)
from simulator.program.state import State, Values
from simulator.program.state_ops import HidePairs, SumWeights, UpdateState
from simulator.program.tile_program import Visit

Made = Callable[[Values, Mapping[str, Values], Workload, Visit], Values]
"""Returns the wrong number: from the number that an op makes, the numbers on chip, the workload and
the visit."""
Wrong = Mapping[type[Op], Mapping[str, Made]]
"""The wrong numbers, by the kind of op and the name of the number that it makes."""

_ALL = tuple(name for name in ALGORITHMS if not ALGORITHMS[name].backward)
_SKIPS = tuple(name for name in _ALL if name in SKIPPING)
_SOFTMAX = tuple(name for name in _ALL if ALGORITHMS[name].softmax)
_BACKWARD = tuple(name for name in ALGORITHMS if ALGORITHMS[name].backward)
_AGAIN = tuple(name for name in _BACKWARD if ALGORITHMS[name].skips)
"""Backward passes that compute P again; the others read P of the forward pass."""
_FLASH = tuple(name for name in _SOFTMAX if not ALGORITHMS[name].stores_scores)
_SPLITS = tuple(name for name in _ALL if ALGORITHMS[name].splits)


def to_half(values: Values) -> Values:
    """Return `values` rounded to float16."""
    return values.astype(np.float16).astype(values.dtype)


def _half(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    return to_half(values)


def _of_new_maximum(
    values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit
) -> Values:
    """Return P relative to the largest score so far, also where m is kept below it."""
    top = np.maximum(chip["m_prev"], chip["m_tile"])
    return exp_shift(chip["S"], top[:, None])


def _not_converted(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    logits: Values = values * values.dtype.type(math.log(2))
    return logits


def _half_sum(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    """Return l; a whole row is summed in parts as wide as a tile, and each sum is rounded."""
    p = chip["P"]
    if p.shape[1] <= w.cols:
        return to_half(values)
    total = np.zeros_like(values)
    for start in range(0, p.shape[1], w.cols):
        total = to_half(total + p[:, start : start + w.cols].sum(axis=1))
    return total


def _zero(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    return np.zeros_like(values)


def _of_tile(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    return chip["m_tile"].copy()


def _unmasked(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    return chip["S"].copy()


def _unscaled(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    return matmul(chip["Q"], chip["K"].T)


def _in_base_2(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    """Return LSE of a split in base 2; the visit that joins the splits takes it as base e."""
    return values if visit.launch else values / values.dtype.type(math.log(2))


def _capped_mask(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    """Return S with hidden pairs as a soft-cap after the mask leaves them."""
    if not w.scoring.softcap:
        return values
    hidden = np.full(values.shape, -w.scoring.softcap)
    if (bias := w.bias(visit.head)) is not None:
        hidden -= bias.of(visit.rows, visit.cols)
    return np.where(np.isneginf(values), hidden.astype(values.dtype), values)


def _finite(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    return np.asarray(np.maximum(values, np.finfo(values.dtype).min))


def _wider(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    """Return S with one more key on each side; the right window still decides on visits."""
    mask = w.mask.of_head(visit.head)
    if not mask.local:
        return values
    window = mask.window
    if isinstance(window, int):
        window += 1
    else:
        window = window[0] + (window[0] >= 0), window[1] + (window[1] >= 0)
    return np.where(replace(mask, window=window).visible(visit.rows, visit.cols), chip["S"], values)


def _sink_maximum(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    return w.start(visit.head, visit.rows)[0].astype(values.dtype)


def _sink_sum(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    return w.start(visit.head, visit.rows)[1].astype(values.dtype)


def _earlier_sum(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    return np.asarray(chip["alpha"] * chip["l"])


def _without_dots(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    return chip["P"] * chip["dP"]


def _of_maximum_alone(
    values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit
) -> Values:
    return exp_shift(chip["S"], chip["m"][:, None])


def _sum_alone(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    return chip["dQ_acc"].copy()


def _of_one_head(values: Values, chip: Mapping[str, Values], w: Workload, visit: Visit) -> Values:
    """Return dK as before this tile, unless the head is the first that shares the keys."""
    first = w.kv_head_of.index(w.kv_head_of[visit.head])
    return values if visit.head == first else chip["dK"].copy()


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake."""

    name: str  # its key in the scenario's table ``[faults]``
    title: str  # its name in pictures
    words: str  # the mistake in one sentence
    cites: str  # the paper's line that is done wrong
    algorithms: tuple[str, ...]  # algorithms that can make it; in the others it has no effect
    instead: str = ""  # why the others cannot; empty where all can
    # words about the numbers that it loses, by name
    notes: Mapping[str, str] = field(default_factory=dict)
    made: Wrong = field(default_factory=dict, repr=False)  # the numbers that ops make wrong
    without_alpha: bool = False  # whether the sums so far are kept as if alpha were 1
    # the change of P between its sum and its use: P, the workload and the visit to P
    late: Callable[[Values, Workload, Visit], Values] | None = None


def _scaled_late(p: Values, w: Workload, visit: Visit) -> Values:
    return w.scoring.of(p)


def _masked_late(p: Values, w: Workload, visit: Visit) -> Values:
    return np.where(w.mask.of_head(visit.head).visible(visit.rows, visit.cols), p, p.dtype.type(0))


FP8_OFFSET = 8  # log2 of the factor of P before P is rounded to e4m3


def _saturated(p: Values, w: Workload, visit: Visit) -> Values:
    if not w.threshold:  # P is at most 1, if no other fault is on
        return p
    most: Values = np.minimum(p, p.dtype.type(E4M3_LARGEST / 2**FP8_OFFSET))
    return most


_AT_EVERY_TILE = "only an O that is divided once, at its end, can skip a rescale"
_NO_GRADIENTS = "it is a mistake of the backward pass"
_ONE_MAXIMUM = "naive takes one maximum over the whole row"
_ONE_SUM = "naive sums the whole row at once"
_NOTHING_JOINED = "only splits are joined by their LSE"

FAULTS = (
    Fault(
        "forget_alpha", "forget alpha",
        "ℓ and O are not rescaled when the maximum rises, so tiles count relative to different "
        "maxima.",
        "Milakov & Gimelshein 2018, Algorithm 3, line 5; Dao 2023, Algorithm 1, lines 9 and 10",
        _FLASH, f"{_ONE_MAXIMUM} and never rescales", {"alpha": "forgotten"},
        without_alpha=True,
    ),
    Fault(
        "no_maximum", "no maximum",
        "m stays 0 and P is exp(S): right until exp overflows, in float32 at S = 88.7.",
        "Dao 2023, Algorithm 1, line 9; Milakov & Gimelshein 2018, section 2",
        _SOFTMAX, notes={"m": "no maximum"},
        made={RowMax: {"m_tile": _zero, "m": _zero}, Combine: {"m": _of_tile}},
    ),
    Fault(
        "drop_previous_maximum", "drop previous maximum",
        "m is the maximum of this tile alone: alpha makes up for it, until it overflows or a row "
        "sees nothing in a tile.",
        "Dao 2023, Algorithm 1, line 9; Dao et al. 2022, Algorithm 1, line 11",
        _FLASH, _ONE_MAXIMUM,
        made={RowMax: {"m": _of_tile}, Combine: {"m": _of_tile}},
    ),
    Fault(
        "late_scale", "scale after the softmax",
        "The softmax takes unscaled scores, and its weights are multiplied by the scale.",
        "Vaswani et al. 2017, equation 1",
        _SOFTMAX,
        made={Scores: {"S": _unscaled}}, late=_scaled_late,
    ),
    Fault(
        "late_mask", "mask after the softmax",
        "The mask only zeroes P: the maximum and the sum still hold hidden keys.",
        "Dao et al. 2022, Algorithm 2, line 11",
        _ALL,
        made={ApplyMask: {"S": _unmasked}, HidePairs: {"P": _unmasked}}, late=_masked_late,
    ),
    Fault(
        "half_accumulator", "fp16 accumulator",
        "ℓ and O, or a state, are rounded to float16 after every tile instead of kept in float32.",
        "Micikevicius et al. 2018, section 3.3",
        _ALL,
        made={
            RowSum: {"l": _half_sum}, Combine: {"l": _half},
            Rescale: {"O": _half}, Accumulate: {"O": _half},
            SumWeights: {"l": _half}, UpdateState: {"state": _half},
        },
    ),
    Fault(
        "stale_frame", "stale frame of P",
        "Where a rescale is skipped m is kept, but P is relative to the new maximum: it counts too "
        "little.",
        f"{SKIP}; as repaired in meta-pytorch/MSLK #242",
        _SKIPS, _AT_EVERY_TILE,
        made={Exponentials: {"P": _of_new_maximum}},
    ),
    Fault(
        "fp8_saturation", "fp8 saturation",
        f"P goes to fp8 times 2^{FP8_OFFSET}, where nothing is above {E4M3_LARGEST:g}: a threshold "
        "and this offset add up above it, and what P has more is lost to O, not to ℓ.",
        f"{SKIP}; as repaired in Dao-AILab/flash-attention #2578",
        _SKIPS, _AT_EVERY_TILE,
        late=_saturated,
    ),
    Fault(
        "unconverted_sink", "sink in base e",
        "Exponentials are powers of 2 and scores are converted, but the sink logit is not: it "
        "counts as sink · ln 2.",
        SINK,
        _SOFTMAX,
        made={LoadSink: {"sink": _not_converted}},
    ),
    Fault(
        "lse_base_2", "LSE in base 2",
        "Splits leave their LSE as a logarithm of 2, and what joins them takes it as one of e: "
        "those with a larger sum weigh too much.",
        "Dao et al. 2023, Flash-Decoding, step 3; as in sgl-project/sglang #40903",
        _SPLITS, _NOTHING_JOINED,
        made={Normalise: {"LSE": _in_base_2}},
    ),
    Fault(
        "early_mask", "mask before soft-cap",
        "The mask comes before the soft-cap, and cap · tanh(−∞) is −cap: hidden keys of visited "
        "tiles weigh exp(−cap − m).",
        f"{SOFTCAP}; as asked in Dao-AILab/flash-attention #1025",
        _SOFTMAX,
        made={ApplyMask: {"S": _capped_mask}},
    ),
    Fault(
        "finite_mask", "finite mask",
        "Hidden scores are the most negative float, not −∞: a row that sees no key becomes the "
        "mean of V.",
        "Dao et al. 2022, Algorithm 2, line 11; as in ml-explore/mlx #2395",
        _SOFTMAX,
        made={ApplyMask: {"S": _finite}},
    ),
    Fault(
        "repeated_sink", "sink in each split",
        "Each split that has tiles begins with the sink logit, so their sum counts it as often.",
        f"{SINK}; as repaired in ROCm/rocm-libraries #12229",
        _SPLITS, _NOTHING_JOINED,
        made={Initialise: {"m": _sink_maximum, "l": _sink_sum}},
    ),
    Fault(
        "forget_tile_sum", "forget this tile's sum",
        "ℓ is rescaled, but Σ P of this tile is not added: without a sink it stays 0, and O "
        "divided by it is 0 here, NaN in most kernels.",
        "Dao et al. 2022, Algorithm 1, line 11; as tried in PaddleJitLab/CUDATutorial #69",
        _FLASH, _ONE_SUM,
        made={RowSum: {"l": _earlier_sum}, Combine: {"l": _earlier_sum}},
    ),
    Fault(
        "wide_window", "window one too wide",
        "A window of w keys is taken to reach w keys beyond the row's own: rows see one more to "
        "each side, where its tile is visited.",
        "Beltagy et al. 2020, section 3.1; as in huggingface/transformers #39408",
        _SOFTMAX,
        made={ApplyMask: {"S": _wider}},
    ),
    Fault(
        "forget_dots", "forget D",
        "dS is P · dP, without D: a softmax then gives to a key and takes from no other.",
        "Dao 2023, Algorithm 2, lines 4 and 14",
        _BACKWARD, _NO_GRADIENTS,
        made={ScoreGradient: {"dS": _without_dots}},
    ),
    Fault(
        "weights_of_maximum", "P of m alone",
        "P is computed again relative to m, not to LSE: it is not divided by ℓ.",
        "Dao 2023, Algorithm 2, line 11",
        _AGAIN, _NO_GRADIENTS,
        made={WeightsAgain: {"P": _of_maximum_alone}},
    ),
    Fault(
        "unscaled_queries", "no scale in dQ",
        "dQ is Σ dS k, without the scale of scores, which dK has.",
        "Dao et al. 2022, Algorithm 4",
        _BACKWARD, _NO_GRADIENTS,
        made={ConvertQueryGradient: {"dQ": _sum_alone}},
    ),
    Fault(
        "one_head_of_group", "dK of one head",
        "dK is that of the first query head of a group alone, though all of its heads share the "
        "keys; dV is right.",
        "Dao 2023, section 3.1",
        _BACKWARD, _NO_GRADIENTS,
        made={AddKeyGradient: {"dK": _of_one_head}},
    ),
)  # fmt: skip
"""All faults, in the order of the scenario's keys."""


_SKIPPING_FAULTS = ("stale_frame", "fp8_saturation")


class _FaultyChip(dict[str, Values]):
    """Numbers on chip while a wrong op is done."""

    def __init__(
        self,
        numbers: Mapping[str, Values],
        op: Op,
        faults: tuple[Fault, ...],
        place: tuple[Workload, Visit],
    ) -> None:
        super().__init__(numbers)
        self._place = place
        self._made = [wrong for f in faults if (wrong := f.made.get(type(op)))]
        self._without_alpha = any(fault.without_alpha for fault in faults)

    def __setitem__(self, name: str, values: Values) -> None:
        for wrong in self._made:
            if name in wrong:
                values = wrong[name](values, self, *self._place)
        super().__setitem__(name, values)

    def __getitem__(self, name: str) -> Values:
        values: Values = super().__getitem__(name)
        if name == "alpha" and self._without_alpha:
            return np.ones_like(values)
        return values


def apply_with_faults(op: Op, state: State, w: Workload, visit: Visit, last_use: bool) -> None:
    """Do an op with faults; `last_use`: a late scale or mask changes P before the op."""
    on = (fault for fault in FAULTS if fault.name in w.faults.on)
    faults = tuple(fault for fault in on if w.algorithm in fault.algorithms)
    if last_use:
        for fault in faults:
            if fault.late is not None:
                state.chip["P"] = fault.late(state.chip["P"], w, visit)
    honest, state.chip = state.chip, _FaultyChip(state.chip, op, faults, (w, visit))
    op.apply(state)
    honest.update(dict(state.chip))
    state.chip = honest


def late_op(ops: tuple[Op, ...]) -> int | None:
    """Return which op of a visit uses the weights that the visit has made; None without one."""
    if not any(isinstance(op, Exponentials | HidePairs) for op in ops):
        return None
    return next(
        n
        for n, op in enumerate(ops)
        if isinstance(op, Accumulate) or (isinstance(op, Normalise) and op.tensor == "P")
    )


def fault_labels(scenario: Scenario) -> tuple[str, ...]:
    """Return the labels of a run with faults, longest first, such as ``FAULT: forget alpha``."""
    titles = [fault.title for fault in FAULTS if fault.name in scenario.faults.on]
    if not titles:
        return ()
    word = "FAULT" if len(titles) == 1 else "FAULTS"
    return f"{word}: {', '.join(titles)}", f"{len(titles)} {word}", word


def fault_note(w: Workload, number: str) -> str:
    """Return the words on a number that a fault of the run loses; empty if no fault does."""
    on = (fault for fault in FAULTS if fault.name in w.faults.on)
    return next((fault.notes[number] for fault in on if number in fault.notes), "")


def without_effect(fault: Fault, w: Workload) -> str:
    """Return why a fault has no effect in a workload, in words; empty if it has one."""
    if fault.instead == _NO_GRADIENTS and w.algorithm not in fault.algorithms:
        return "P is that of the forward pass" if w.algorithm in _BACKWARD else fault.instead
    if w.algorithm in _BACKWARD and w.algorithm not in fault.algorithms:
        return "it is a mistake of the forward pass, which is right here"
    if not ALGORITHMS[w.algorithm].softmax and w.algorithm not in fault.algorithms:
        return "linear attention has no softmax"
    if w.algorithm not in fault.algorithms:
        return fault.instead
    if fault.name in _SKIPPING_FAULTS and not w.threshold:
        return "no rescale is skipped here: there is no threshold"
    if fault.name == "fp8_saturation" and 2 ** (FP8_OFFSET + (w.threshold or 0)) <= E4M3_LARGEST:
        return f"P · 2^{FP8_OFFSET} stays below {E4M3_LARGEST:g} here"
    if fault.name in ("unconverted_sink", "repeated_sink") and not w.sink_logits:
        return "there is no sink logit here"
    if fault.name in ("late_mask", "early_mask", "finite_mask") and not w.mask.hides:
        return "there is no mask here"
    if fault.name == "early_mask" and not w.scoring.softcap:
        return "there is no soft-cap here"
    if fault.name == "wide_window" and not w.mask.local:
        return "there is no window here"
    if fault.name == "repeated_sink" and w.splits == 1:
        return "there is one split here"
    if fault.name in ("late_scale", "unscaled_queries") and w.logit_scale == 1:
        return "the scale is 1 here"
    if fault.name == "one_head_of_group" and len(set(w.kv_head_of)) == len(w.kv_head_of):
        return "no two heads share keys here"
    return ""


def honest(workload: Workload) -> Workload:
    """Return the same workload without faults."""
    scenario = workload.scenario.model_copy(update={"faults": Faults()})
    return replace(workload, scenario=scenario)
