"""The choices for the order of tokens: a shuffle and what depends on places, or layers."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.study.declared import declared

SHUFFLE, REACH = "shuffle", "reach"
USUAL_WINDOW = 4
"""The window of local layers where the run's mask is not local."""
CHOICES = declared(
    "Token order",
    Choice("view", (
        Option(SHUFFLE, "Shuffle", "Shuffle",
               "Rows of O before and after the tokens were shuffled (Vaswani et al. 2017, "
               "section 3.5)."),
        Option(REACH, "Reach", "Reach",
               "Of which tokens one can hear through some layers: the boolean product of their "
               "masks (Beltagy et al. 2020, section 3.1)."),
    ), lesson="order"),
    Choice("places", (
        Option("run", "as in this run", "", "Mask, bias and positions of this run."),
        Option("none", "no mask, no positions", "", "Nothing depends on places."),
        Option("causal", "a causal mask", "", "A causal mask, and no positions."),
        Option("rope", "rotary positions", "", "Q and K are turned by their places; no mask."),
    ), listed=True, lesson="places"),
    Choice("seed", tuple(
        Option(str(seed), f"shuffle {seed}", "", "In which order the tokens stand afterwards.")
        for seed in range(8)
    ), listed=True),
    Choice("window", (
        Option("0", "local: this run's mask", "",
               f"What rows see in local layers; a window of {USUAL_WINDOW} if the run's mask is "
               "not local."),
        *(Option(str(n), f"local: window {n}", "", "What rows see in local layers.")
          for n in (2, 3, 4, 8, 16, 32, 64, 128)),
    ), listed=True, lesson="window"),
    Choice("layers", tuple(
        Option(str(n), f"{n} layer{'s' * (n > 1)}", "", "How many layers the model has.")
        for n in (1, 2, 3, 4, 6, 8, 12, 16, 24)
    ), listed=True, lesson="layers", first="4"),
)  # fmt: skip
