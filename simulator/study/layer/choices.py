"""The choices for a whole layer: a picture, and a stage."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.study.declared import declared

FLOW, STAGE, ROW, HEAD, HEADS = "flow", "stage", "row", "head", "heads"
AT_WORK = "at work"
"""The stage that is at work at the cursor."""
_NAMES = {"q": "Q", "k": "K", "v": "V", "o": "tiles", "concat": "concat", "y": "Y"}
CHOICES = declared(
    "Layer",
    Choice("layer", (
        Option(FLOW, "Flow", "Flow",
               "From X to Y: shapes, slices of heads, the stage at work. Click a stage, or ↑ ↓."),
        Option(STAGE, "One stage", "Stage",
               "What a stage takes and makes, at large. Click a number to see its sum; ↑ ↓ the "
               "stage."),
        Option(ROW, "One row of Y", "Row", "What each head gives to one row of Y; ↑ ↓ choose it."),
        Option(HEAD, "One head", "Head", "W_Q W_Kᵀ and W_V W_O of a head, and how far the first "
               "is from symmetric; ↑ ↓."),
        Option(HEADS, "How many heads", "Heads",
               "What stays and what multiplies when more heads divide the same width."),
    ), lesson="layer"),
    Choice("stage", (
        Option(AT_WORK, "stage at work", "", "Which stage is explained."),
        *(Option(stage, f"stage: {name}", "", "") for stage, name in _NAMES.items()),
    ), listed=True, lesson="stage"),
)  # fmt: skip
