"""The views of the cache's dock, which the bar of each of them offers."""

from __future__ import annotations

from simulator.base.choices import Choice, Option

BYTES, PRESSURE = "bytes", "pressure"
VIEWS = Choice("view", (
    Option(BYTES, "How many bytes", "Bytes",
           "What the cache of a model takes, how many users fit, and what a decoded token reads."),
    Option(PRESSURE, "Keep less", "Less",
           "Tokens that are evicted and elements of few bits, on a captured layer: the error of O "
           "against bytes."),
))  # fmt: skip
