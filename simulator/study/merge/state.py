"""What is shown of merges: the choices, and partials of a row or sums of a gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulator.base.choices import Choice, Option
from simulator.study.merge.block_sums import REVERSED, BlockSums
from simulator.study.merge.by_hand import RowMerge
from simulator.study.merge.gradient_sums import ORDERS as SUM_ORDERS
from simulator.study.merge.merging import ORDERS

PARTIALS, SUMS = "partials", "sums"


def _named(*orders: tuple[str, str]) -> tuple[Option, ...]:
    return tuple(Option(name, name.capitalize(), name.capitalize(), tip) for name, tip in orders)


CHOICES = (
    Choice("subject", (
        Option(PARTIALS, "Partials", "Partials", "Partial (m, ℓ, O) of the row."),
        Option(SUMS, "Sums of gradients", "Sums", "What column blocks add to the gradient of the "
               "queries, in orders that leave other bits."),
    ), first=SUMS),
    Choice("sums", _named(*zip(SUM_ORDERS, (
        "In the order of column blocks, as with deterministic = True of FlashAttention.",
        "The same from the last column block to the first.",
        "Neighbours in pairs, then neighbours of those.",
        "As atomic additions come: press again for another draw.",
    ), strict=True)), lesson="sums", first=REVERSED),
    Choice("order", _named(("apart", "Nothing is merged yet."), *zip(ORDERS, (
        "Each is merged with all before it, as in a running update.",
        "The same from the last to the first.",
        "Neighbours in pairs, then neighbours of those.",
        "All together, as split-KV's second kernel does (Dao et al. 2023).",
    ), strict=True)), lesson="merge"),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class MergeState:
    """Partials of a row, and of a backward pass the sums of its row block."""

    partials: RowMerge
    sums: BlockSums | None = None
    subject: str = SUMS  # what is shown, if there are both

    @property
    def shown(self) -> RowMerge | BlockSums:
        """What is shown."""
        return self.partials if self.sums is None or self.subject == PARTIALS else self.sums

    def chosen(self, name: str, value: str) -> MergeState:
        """Return the state after a choice."""
        if name == "subject":
            return replace(self, subject=value)
        if name == "order":
            return replace(self, partials=self.partials.ordered(value))
        return replace(self, sums=self.sums and self.sums.ordered(value))
