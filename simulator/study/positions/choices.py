"""The choices for positions."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.base.errors import spaced
from simulator.study.declared import declared

CLOCKS, MAPS, DIALS, FAR, WAVES = "clocks", "maps", "dials", "far", "sinusoids"
SHIFT, TRAINED, FACTOR = 1000, 2048, 4
"""The first settings: a shift of all places, the longest text of a training, and how many times as
long texts are to be."""
CHOICES = declared(
    "Positions",
    Choice("view", (
        Option(CLOCKS, "Clocks", "Clocks",
               "Pairs of dimensions as hands of clocks, at every token, from fast to slow "
               "(Su et al. 2021)."),
        Option(MAPS, "One vector", "Vector",
               "One vector at all places: scores under RoPE, sinusoids, a learned table and ALiBi, "
               "and what a shift of all places does."),
        Option(DIALS, "Angles", "Angles",
               "The angles of each pair that training has shown, and those that only a longer text "
               "reaches: RoPE as it is, interpolated, NTK-aware and YaRN."),
        Option(FAR, "Distance", "Far",
               "Scores over distance, beyond the trained length: position interpolation, NTK-aware "
               "and YaRN (Chen et al. 2023, Peng et al. 2023)."),
        Option(WAVES, "Sinusoids", "Sines",
               "The matrix of sines and cosines that the first transformer added to its tokens, "
               "place by place (Vaswani et al. 2017)."),
    ), lesson="positions"),
    Choice("hands", (
        Option("angles", "angles alone", "", "By how much every place turns every pair."),
        Option("before", "q before", "", "Pairs of the run's queries before they are turned."),
        Option("turned", "q turned", "", "The same, each turned by its place: what scores see."),
    ), listed=True, lesson="hands"),
    Choice("shift", tuple(
        Option(str(n), f"shift {spaced(n)}", "", "Added to all places.")
        for n in (1, 16, SHIFT, 100_000)
    ), listed=True, first=str(SHIFT)),
    Choice("trained", tuple(
        Option(str(n), f"trained {spaced(n)}", "", "Tokens of the longest text of training.")
        for n in (256, TRAINED, 8192)
    ), listed=True, first=str(TRAINED)),
    Choice("factor", tuple(
        Option(str(n), f"{n} × as long", "", "How much longer texts are to be.")
        for n in (2, FACTOR, 8, 16)
    ), listed=True, first=str(FACTOR)),
)  # fmt: skip
SHOWN_IN = {"hands": {CLOCKS}, "shift": {MAPS}, "trained": {DIALS, FAR}, "factor": {DIALS, FAR}}
"""In which views a choice means something."""
