"""The choices for a latent."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.study.declared import declared

SHARING = "sharing"
_TIP = (
    "Of attention, from its tile program with the tiles of the run, and of the projections, which "
    "move each operand once."
)
CHOICES = declared(
    "Latent",
    Choice("view", (
        Option("ways", "Absorbed or not", "Absorbed",
               "The projections of a latent absorbed in queries and output, or keys and values of "
               "every head made of it first (DeepSeek-V2, section 2.1.2)."),
        Option(SHARING, "What sharing costs", "Sharing",
               "How far O of a trained layer is off if its heads share their keys and values, or "
               "if a latent stands for them, without retraining."),
    ), lesson="latent"),
    Choice("quantity", (
        Option("flops", "FLOPs", "FLOPs", _TIP),
        Option("bytes", "Bytes", "Bytes", _TIP),
        Option("time", "Time", "Time", "The longer of both at the rates of the GPU's data sheet."),
    )),
)  # fmt: skip
