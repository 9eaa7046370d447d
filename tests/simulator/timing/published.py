"""Published speeds of attention kernels in TFLOP/s, 16 384 tokens and a hidden size of 2 048.

FLOPs are 4 N² d of each head, half of that with a causal mask.
"""

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)

Speeds = dict[tuple[int, bool], dict[str, tuple[int | None, ...]]]

H100_FORWARD: Speeds = {
    (64, False): {
        "naive": (52, 63, 67, 72, 73, None),
        "fa2": (282, 306, 318, 321, 322, 324),
        "fa3": (333, 392, 460, 476, 496, 497),
    },
    (64, True): {
        "naive": (16, 18, 18, 18, 18, None),
        "fa2": (180, 229, 262, 284, 295, 299),
        "fa3": (197, 265, 371, 420, 460, 473),
    },
    (128, False): {
        "naive": (74, 100, 119, 133, 139, None),
        "fa2": (309, 350, 362, 368, 370, 370),
        "fa3": (467, 565, 625, 638, 646, 648),
    },
    (128, True): {
        "naive": (26, 31, 34, 35, 35, None),
        "fa2": (191, 260, 298, 319, 333, 335),
        "fa3": (292, 423, 521, 579, 602, 616),
    },
    (256, False): {"fa2": (275, 313, 321, 323, 324, 326), "fa3": (482, None, 707, 736, 746, 756)},
    (256, True): {"fa2": (208, 251, 278, 293, 297, 298), "fa3": (286, 427, 537, 612, 628, 642)},
}
"""Numbers on the bars of assets/flash3_fp16_fwd.png in Dao-AILab/flash-attention (Shah et al.
2024); None where a bar is missing or cannot be read."""

A100_BOTH: Speeds = {
    (64, False): {
        "naive": (36, 40, 43, 45, 46, None),
        "fa1": (91, 92, 104, 108, 110, 110),
        "fa2": (132, 153, 162, 171, 175, 176),
    },
    (64, True): {
        "naive": (15, 16, 17, 18, 18, None),
        "fa1": (58, 70, 77, 87, 92, 97),
        "fa2": (88, 119, 140, 156, 165, 171),
    },
    (128, False): {
        "naive": (53, 67, 76, 79, 86, None),
        "fa1": (76, 72, 76, 80, 82, 83),
        "fa2": (None, 173, 187, 196, 201, 203),
    },
    (128, True): {
        "naive": (23, 28, 32, 32, 34, None),
        "fa1": (55, 62, 69, 76, 80, 83),
        "fa2": (99, 133, 155, 173, 182, 189),
    },
}
"""Numbers on the bars of assets/flash2_a100_fwd_bwd_benchmark.png there (Dao 2023): forward and
backward together; a forward pass alone is a little faster."""

A5000_FORWARD: Speeds = {(64, False): {"fa2": (84, 81, 81, 82, 82, None)}}
"""RTX A5000, forward, gpu-mode/ring-attention issue 10: 84.08, 81.02, 81.31, 81.69, 81.86."""


def tile(kind: str, width: int, length: int) -> tuple[int, int]:
    """Return rows and keys of the tiles that a kernel takes."""
    if kind == "fa1":  # release 1.0.9
        return 128, 256 if width == 64 and length > 128 else 128
    if kind == "fa2":
        return 128, 128 if width == 64 else 64
    return (192, 128) if kind == "fa3" and width == 64 else (128, 128)
