"""The choices for the √d experiment."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.study.declared import declared
from simulator.study.sqrt_d.experiment import DRAWN, KEYS

DRAW, CAP = "draw", "soft-cap"
SEEDS = range(10)
CHOICES = declared(
    "Why √d",
    Choice("quantity", (
        Option("variance", "Variance", "Variance",
               "Of the scores: d for q·k of normal vectors, 1 once divided by √d "
               "(Vaswani et al. 2017, footnote 4)."),
        Option("entropy", "Entropy", "Entropy",
               "Of the softmax's weights: without the division one key gets nearly all weight "
               "(Vaswani et al. 2017, section 3.2.1)."),
        Option("gradient", "Gradient", "Gradient",
               "Trace of the softmax's Jacobian, 1 − Σ p²: hardly anything is learned where it is "
               "near 0 (Vaswani et al. 2017, section 3.2.1)."),
        Option(DRAW, "One draw", "Draw",
               "The weights of one query as bars, with and without the division: how they lie, of "
               "which the other three are means."),
        Option(CAP, "Soft-cap", "Cap",
               "Scores of the row before and after c · tanh(s / c): none passes c "
               "(Gemma Team 2024)."),
    ), lesson="quantity"),
    Choice("keys", (
        Option(str(KEYS), f"{KEYS} keys", f"{KEYS} keys", f"{KEYS} keys for each query."),
        Option("2", "2 keys", "2 keys",
               "Two keys for each query: then the gradient is far smaller."),
    )),
    Choice("d", tuple(
        Option(str(d), f"d = {d}", "", "The d of the query and its keys.") for d in DRAWN
    ), listed=True, first=str(DRAWN[-1])),
    Choice("seed", tuple(
        Option(str(seed), f"seed {seed}", "",
               "Of the random vectors: the same seed draws the same numbers.") for seed in SEEDS
    ), listed=True),
)  # fmt: skip
