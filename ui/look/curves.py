"""The looks of algorithms: the same colour, line and mark in all plots."""

from __future__ import annotations

from typing import Literal, NamedTuple

Marker = Literal["circle", "square", "triangle", "diamond", "ring", "cross", "star"]
Dash = Literal["solid", "dash", "dot", "dashdot"]


class CurveLook(NamedTuple):
    """Looks of a curve."""

    colour: str  # a role of the theme, or a tensor, whose colour it has
    line: Dash
    mark: Marker


LOOKS: dict[str, CurveLook] = {
    "naive": CurveLook("bad", "dash", "square"),
    "flash1": CurveLook("text", "dashdot", "triangle"),
    "flash2": CurveLook("good", "solid", "circle"),
    "split-kv": CurveLook("Q", "dot", "diamond"),
    "paged": CurveLook("Q", "dash", "square"),
    "mla": CurveLook("V", "dashdot", "triangle"),
    "linear": CurveLook("S", "dot", "cross"),
    "linear-recurrent": CurveLook("S", "dashdot", "diamond"),
    "gla": CurveLook("S", "dash", "square"),
    "deltanet": CurveLook("S", "solid", "triangle"),
    "naive-backward": CurveLook("bad", "dot", "cross"),
    "flash2-backward": CurveLook("V", "dash", "triangle"),
}
"""The looks of all algorithms, by their names in scenarios."""
