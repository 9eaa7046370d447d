"""Updates of the state that linear attention keeps of the keys so far, and the gates they take.

``linear`` and ``linear-recurrent`` are one function, added up chunk by chunk or token by token:
S ← S + φ(k)ᵀ [v, 1]. Gated linear attention forgets, S ← diag(α) S + kᵀ v, and the delta rule
replaces the value that the state has for a key, S ← S + β kᵀ (v − k S).

References: Katharopoulos, Vyas, Pappas, Fleuret 2020, "Transformers are RNNs: Fast Autoregressive
Transformers with Linear Attention", equations 16 to 20. Yang, Wang, Shen, Panda, Kim 2024, "Gated
Linear Attention Transformers with Hardware-Efficient Training", section 4. Yang, Wang, Zhang, Shen,
Kim 2024, "Parallelizing Linear Transformers with the Delta Rule over Sequence Length", section 2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from simulator.base.dtypes import F32, F64
from simulator.base.errors import SCENARIO, refuse
from simulator.base.matmul import matmul
from simulator.problem.features import MapName
from simulator.problem.input_files import InputFile, check_finite, read_tensor
from simulator.problem.scenario import Attention, Scenario


@dataclass(frozen=True, slots=True)
class Gate:
    """Numbers that an update takes for each key, beside K and V."""

    name: str  # of the tensor in a file, and of the key in scenarios that gives one number for all
    of_features: bool  # whether a key has one number for each feature, or one alone
    # the one number that a scenario gives for all keys; None if it gives none
    said: Callable[[Attention], float | None]
    drawn: Callable[[F64], F64]  # makes the numbers from standard normal ones

    def shape(self, kv_heads: int, keys: int, features: int) -> tuple[int, ...]:
        """Return the shape of the numbers of all KV heads."""
        return (kv_heads, keys, features) if self.of_features else (kv_heads, keys)


def _sigmoid(x: F64) -> F64:
    return np.asarray(1 / (1 + np.exp(-x)))


@dataclass(frozen=True, slots=True)
class Rule:
    """How an algorithm without a softmax updates its state."""

    # whether the run goes token by token; else chunk by chunk, or without a mask all at once
    tokens: bool = False
    sums: bool = True  # whether the state has the sum of the weights, by which a row is divided
    # the fixed feature map of the algorithm; None for the scenario's feature map
    own_map: MapName | None = None
    gate: Gate | None = None  # numbers that the update takes beside K and V
    corrects: bool = False  # whether the state's value for a key is subtracted from the new one

    def weights(self, q: F64, k: F64, gate: F64 | None, rows: range) -> F64:
        """Return the weight of each key's value in some rows, from the definition, not divided.

        Without a gate, later keys have weights, too: the caller hides them.

        q: (rows, f) float64, features of the query rows.
        k: (Nk, f) float64, features of all keys.
        gate: (Nk, f) or (Nk,) float64.
        rows: which rows these are; they see the keys up to their own.
        """
        if gate is None:
            return matmul(q, k.T)
        # Row t is q_t A_t … A_(j+1) b_j, so what is left of q goes back from key to key.
        left, out = q.copy(), np.zeros((len(q), len(k)))
        for j in range(rows.stop - 1, -1, -1):
            begun = max(0, j - rows.start)
            if not self.corrects:
                later = max(0, j + 1 - rows.start)
                if later < len(q):
                    left[later:] *= gate[j + 1]
            out[begun:, j] = matmul(left[begun:], k[j])
            if self.corrects:
                out[begun:, j] *= gate[j]
                left[begun:] -= np.outer(out[begun:, j], k[j])
        return out


DECAY = Gate("decay", True, lambda said: said.decay, lambda x: _sigmoid(x) ** (1 / 16))
"""α of gated linear attention; drawn like the gate in its paper, with τ = 16."""
STRENGTH = Gate("strength", False, lambda said: said.strength, _sigmoid)
"""β of the delta rule, how much of the difference is written."""


def check_gate(rule: Rule, file: InputFile | None, features: int) -> None:
    """Refuse gates whose shape does not fit K."""
    stored = dict(file.extra).get(rule.gate.name) if file and rule.gate else None
    if file and rule.gate and stored:
        kv_heads, keys, _ = file.k.shape
        wanted = rule.gate.shape(kv_heads, keys, features)
        if stored.shape != wanted:
            raise refuse(str(file.path), f"shape of {rule.gate.name}", stored.shape, f"{wanted}")


def read_gate(
    rule: Rule | None, said: Scenario, file: InputFile | None, shape: tuple[int, int, int]
) -> F32 | None:
    """Return the gates of all KV heads: from the scenario, from the file, or drawn."""
    gate = rule.gate if rule else None
    if gate is None:
        return None
    constant = gate.said(said.attention)
    if constant is not None:
        return np.full(gate.shape(*shape), constant, dtype=np.float32)
    stored = dict(file.extra).get(gate.name) if file else None
    if file is None or stored is None:
        rng = np.random.default_rng([said.input.seed, 1])
        return gate.drawn(rng.standard_normal(gate.shape(*shape))).astype(np.float32)
    numbers = read_tensor(file.path, gate.name, stored)
    check_finite(str(file.path), gate.name, numbers)
    outside = (numbers < 0) | (numbers > 1)
    if outside.any():
        raise refuse(str(file.path), gate.name, float(numbers[outside][0]), "numbers in 0 to 1")
    return numbers


def check_tokens(rule: Rule, causal: bool, seqlen: int, most: int) -> None:
    """Refuse a run token by token in which rows see later keys, or with too many tokens."""
    if not rule.tokens:
        return
    if not causal:
        expected = "true: a run token by token sees no later key"
        raise refuse(SCENARIO, "mask.causal", False, expected)
    if seqlen > most:
        raise refuse(SCENARIO, "attention.seqlen_q", seqlen, f"at most {most}, token by token")
