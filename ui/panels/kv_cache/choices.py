"""The choices: the words of the sentence, and the settings of curve and formula."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.problem.hardware import gpus
from simulator.problem.models import models
from simulator.study.kv_cache.counts import CONVENTIONS, ELEMENT_TYPES
from ui.panels.kv_cache.state import CONVENTION_NAMES, TYPE_NAMES

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PAGES = (1, 8, 16, 32, 64, 128, 256)
OWN, OPEN = "own", "open"
ACTS = (OPEN,)
"""Entries of lists that are actions: keys and the wheel skip them."""
_CONVENTION_TIPS = {
    "logical": "Every token in every layer, no cap.",
    "window_capped": "A layer with a sliding window holds its window at most (Beltagy et al. "
    "2020).",
    "allocated": "Window-capped, each sequence of each layer in whole pages (Kwon et al. 2023, "
    "section 4.3).",
}


def _listed(name: str, values: dict[str, str], tip: str) -> Choice:
    return Choice(
        name, tuple(Option(v, text, text, tip) for v, text in values.items()), listed=True
    )


WORDS = (
    _listed("model", {name: name for name in models()} | {OWN: "own model", OPEN: "Own file…"},
            "Whose layers and heads: published models, as their configurations say, or a TOML file "
            "with the layers, heads and widths of one model."),
    _listed("cache type", {name: TYPE_NAMES[name] for name in ELEMENT_TYPES},
            "Element type of the cache; scales of fp8, int8 and int4 are not counted."),
    _listed("GPU", {name: name for name in gpus()},
            "Whose memory has to hold it all, and whose bandwidth bounds decoding."),
    _listed("weights type", {name: TYPE_NAMES[name] for name in ELEMENT_TYPES},
            "Element type of the weights; their number is as published, rounded."),
)  # fmt: skip
"""Words of the sentence, and of the line above the GPUs."""
CHOICES = (
    Choice("convention", tuple(
        Option(key, CONVENTION_NAMES[key].capitalize(), short, _CONVENTION_TIPS[key])
        for key, short in zip(CONVENTIONS, ("No cap", "Windows", "Pages"), strict=True)
    )),
    Choice("axes", (
        Option("log", "Log", "Log", "Both axes logarithmic."),
        Option("linear", "Linear", "Lin", "Both axes linear: the cache grows evenly."),
    )),
    _listed("batch", {str(n): f"{n} conversation{'s' * (n > 1)}" for n in BATCHES},
            "Conversations at once: the cache grows with each, the weights do not."),
    _listed("page size", {str(n): f"pages of {n}" for n in PAGES},
            "Tokens of a page: allocated bytes are whole pages (Kwon et al. 2023, section 4.3)."),
)  # fmt: skip
"""Choices beside the open view below the card."""
