"""The choices for the jobs of heads: what is shown, and which head is off."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.study.declared import declared

JOBS_SHOWN, DISTANCES, TRAINING, VARIANTS = "jobs", "distances", "training", "variants"
ALL_ON = Option("", "every head on", "", "Switch off a head: it gives zeros to the concat.")
CHOICES = declared(
    "Jobs of heads",
    Choice("show", (
        Option(JOBS_SHOWN, "Jobs", "Jobs",
               "What each head reads: the token before, the first, the same one before, the one "
               "after that (Elhage et al. 2021, Olsson et al. 2022)."),
        Option(DISTANCES, "Distances", "Dist.",
               "How unlike the maps of heads are: Jensen–Shannon divergence (Lin 1991)."),
        Option(TRAINING, "Training", "Train",
               "When heads take up their jobs, and what the loss does then (Olsson et al. 2022)."),
        Option(VARIANTS, "Variants", "Var.",
               "The loss of the same model trained in other ways: without √d, with one head, with "
               "one KV head."),
    ), lesson="jobs"),
    Choice("off", (
        ALL_ON,
        Option("widest", "without layer 00 head 00", "", ""),  # the list's width
    ), listed=True, lesson="off", open=True),
)  # fmt: skip
