"""The choices for the algorithms side by side."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.study.compare import SCALE_N
from simulator.study.declared import declared

_SCALE = f"{SCALE_N:,}".replace(",", "\u2009")
CHOICES = declared(
    "Compare",
    Choice("match", (
        Option("tiles", "Same number of tiles", "Same tiles",
               "All have done as many visits as the one on show: how often each works on a tile."),
        Option("time", "Same simulated time", "Same time",
               "All as far as they come in the same time, by a model (docs/time-model.md)."),
    )),
    Choice("view", (
        Option("columns", "Columns", "Columns", "The runs beside each other, up to the cursor."),
        Option("table", "Table", "Table", "The whole runs in figures: requested bytes as Dao et "
               "al. 2022, Theorem 2, count them."),
        Option("race", "Race", "Race",
               "Starts a race of the whole runs in simulated time, by a model; a shorter run "
               f"races at N = {_SCALE}. Its speed is that of playing; again: from the "
               "start. Space lets it pause and go on where the board is not shown."),
        Option("recompute", "Store or recompute", "Recompute",
               "Forward and backward pass together: P stored and read back, or computed again from "
               "Q, K and LSE; what that saves and costs, here and over N."),
    ), lesson="compare"),
)  # fmt: skip
