"""The choices for a sweep."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.program.algorithms import ALGORITHMS
from simulator.study.declared import declared

MAP, VARIANTS = "map", "variants"
KERNELS, OWN = "kernels", "own"
_MAP_TIP = "Which algorithm the map is of, at the sizes of this scenario."
CHOICES = declared(
    "Sweep",
    Choice("over", (
        Option("N", "N", "N", "Over the sequence length: naive grows as N², all ask more."),
        Option("Br", "Br", "Br",
               "Over the rows of a tile: FlashAttention-2 loads K and V once for each row block "
               "(Dao 2023, Algorithm 1)."),
        Option("Bc", "Bc", "Bc",
               "Over the keys of a tile: FlashAttention-1 moves O once for each column block "
               "(Dao et al. 2022, Algorithm 1)."),
        Option("d", "d", "d",
               "Over the head dimension: FlashAttention-1 asks for about N²d²/M, so gains while d² "
               "is far below the shared memory M (Dao et al. 2022, Theorem 2)."),
        Option(MAP, "Br × Bc", "Br×Bc",
               "A map over both tile sizes, with what fits a block's shared memory and what "
               "published kernels choose."),
        Option(VARIANTS, "Variants", "Var",
               "A table of MHA, GQA, MQA and a window: time, memory, cache and weights at this N, "
               "with the powers of N that fit (Shazeer 2019, Ainslie et al. 2023, Beltagy et al. "
               "2020)."),
    ), lesson="over"),
    Choice("quantity", (
        Option("bytes", "Bytes", "Bytes",
               "What tile loads and stores request of HBM (Dao et al. 2022, section 3.2)."),
        Option("held", "Held in HBM", "Held",
               "All tensors that the launches read or write, each once: S and P are what naive "
               "holds more (Dao et al. 2022, section 3.1)."),
        Option("flops", "FLOPs", "FLOPs",
               "Of the two matrix products: the algorithms differ in what they move, hardly in "
               "what they compute (Dao et al. 2022, section 3.1)."),
        Option("time", "Time", "Time",
               "By model, with L2, softmax and thread blocks; in the map the longer of bytes over "
               "bandwidth and FLOPs over matrix rate (Williams et al. 2009)."),
        Option("shared", "Shared memory", "Shared",
               "What tiles take of a block's shared memory, and the GPU's limit."),
    )),
    Choice("tiles", (
        Option(KERNELS, "Kernels' tiles", "Kernels",
               "The tiles that the published FlashAttention-2 kernels take."),
        Option(OWN, "This run's tiles", "This run", "The tiles of this scenario."),
    )),
    Choice("algorithm", tuple(
        Option(each.name, each.name, each.name, _MAP_TIP) for each in ALGORITHMS.values()
    ), listed=True),
)  # fmt: skip
