"""The choices for merges: partials of a row or sums of a gradient, and named orders."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.study.declared import declared

PARTIALS, SUMS = "partials", "sums"
MERGES = {
    "list": "Each is merged with all before it, as in a running update.",
    "list, from the last": "The same from the last to the first.",
    "tree": "Neighbours in pairs, then neighbours of those.",
    "all at once": "All together, as split-KV's second kernel does (Dao et al. 2023).",
}
"""Orders of merging partials."""
BASES = {
    "base e": "LSE is m + ln ℓ, as FlashAttention returns it.",
    "base 2": "LSE is a logarithm of 2, as FlashInfer returns it, and merged with powers of 2.",
    "empty": "Base e, with a partial of no keys: its LSE is −∞.",
    "mixed": "LSE is a logarithm of 2, and merged with powers of e: a bug of several servers.",
}
"""The meanings of the LSE of partials."""
BASE_E, BASE_2, EMPTY, MIXED = BASES
ADDITIONS = {
    "in order": "In the order of column blocks, as with deterministic = True of FlashAttention.",
    "from the last": "The same from the last column block to the first.",
    "tree": "Neighbours in pairs, then neighbours of those.",
    "any order": "As atomic additions come: press again for another draw.",
}
"""Orders of adding up a gradient."""
FIRST, REVERSED, TREE, DRAWN = ADDITIONS
"""Others are compared with the first; the second is shown first; a seed decides the last."""


def _named(orders: dict[str, str]) -> tuple[Option, ...]:
    return tuple(
        Option(name, name.capitalize(), name.capitalize(), orders[name]) for name in orders
    )


CHOICES = declared(
    "Merge",
    Choice("subject", (
        Option(PARTIALS, "Partials", "Partials", "Partial (m, ℓ, O) of the row."),
        Option(SUMS, "Sums of gradients", "Sums", "What column blocks add to the gradient of the "
               "queries, in orders that leave other bits."),
    ), first=SUMS),
    Choice("sums", _named(ADDITIONS), lesson="sums", first=REVERSED),
    Choice("order", _named({"apart": "Nothing is merged yet.", **MERGES}), lesson="merge"),
    Choice("lse", tuple(
        Option(name, f"LSE: {name}", f"LSE: {name}", tip) for name, tip in BASES.items()
    ), listed=True, lesson="lse"),
)  # fmt: skip
