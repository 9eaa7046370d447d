"""The choices for generation: what is shown, and what a step computes."""

from __future__ import annotations

from typing import Literal, get_args

from simulator.base.choices import Choice, Option
from simulator.language.continuation import TEMPERATURE
from simulator.study.declared import declared
from simulator.study.generation.steps import AT_ONCE
from simulator.study.generation.typed import GREEDY

Way = Literal["cache", "again", "no mask"]
"""K and V of old tokens are kept; all rows are computed again; K and V kept, without a mask."""
WAYS: tuple[Way, ...] = get_args(Way)
EQUAL, NEXT = "equal", "next"
EACH, SUMMED = "each", "summed"
_TIP = "Of attention, from the tile programs of the steps, with the tiles of the run."
CHOICES = declared(
    "Generation",
    Choice("shows", (
        Option("bytes", "Bytes", "Bytes", _TIP),
        Option("flops", "FLOPs", "FLOPs", _TIP),
        Option("time", "Time", "Time", "On the scenario's GPU, by model."),
        Option(EQUAL, "Same rows?", "Same?",
               "How far the rows of steps are from those of one causal pass; and what becomes of "
               "old rows if nothing is masked."),
        Option(NEXT, "Next token", "Next",
               "A typed text goes on: how probable the next tokens are, and which one was drawn."),
    ), lesson="generation"),
    Choice("draw", (
        *(Option(str(seed), f"T = {TEMPERATURE}, seed {seed}", "",
                 "How a token is drawn: by the probabilities at this temperature, or the most "
                 "probable one each time.") for seed in range(4)),
        Option(GREEDY, "most probable", "", "Greedy: soon the text goes round in circles."),
    ), listed=True, lesson="draw"),
    Choice("at once", tuple(
        Option(str(n), "one query a step" if n == 1 else f"{n} queries a step", "",
               "Several at once: guesses of a draft model, all of them taken "
               "(Leviathan et al. 2023).")
        for n in AT_ONCE
    ), listed=True, lesson="at_once"),
    Choice("way", tuple(
        Option(way, words, "", "What a step computes: its own rows with a cache, all rows "
               "without one. Without the mask old rows change, so a cache would be wrong.")
        for way, words in zip(WAYS, ("with a cache", "all rows again", "no mask"), strict=True)
    ), listed=True, lesson="way"),
    Choice("sums", (
        Option(EACH, "each step", "", "What each step costs, or all steps so far."),
        Option(SUMMED, "summed", "", "What all steps so far cost, after the prompt."),
    ), listed=True, lesson="summed", open=True),
)  # fmt: skip
