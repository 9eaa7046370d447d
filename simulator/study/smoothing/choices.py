"""The choices for attention as a kernel smoother."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.study.declared import declared
from simulator.study.smoothing.regression import BANDWIDTHS

KEYS, FACTORS, REGRESSION, AGAIN, FEATURES, SCORES = (
    "keys", "factors", "regression", "again", "features", "scores",
)  # fmt: skip
CHOICES = declared(
    "Kernel smoother",
    Choice("view", (
        Option(KEYS, "Keys", "Keys",
               "Keys of this head in the plane in which they spread most, as large as the row's "
               "weights, and the mean of the keys by weight (Tsai et al. 2019)."),
        Option(FACTORS, "Factors", "Factors",
               "A weight is a factor of the key's norm times a radial kernel of its distance from "
               "the query (Tsai et al. 2019, section 3)."),
        Option(REGRESSION, "Regression", "Regr.",
               "Attention over examples as keys and values is the Nadaraya–Watson estimator "
               "(Nadaraya 1964, Watson 1964)."),
        Option(AGAIN, "Again", "Again",
               "The same attention again and again: rows become the same, the rank falls to one "
               "(Dong et al. 2021)."),
        Option(FEATURES, "Features", "Feat.",
               "Random features in place of the softmax: how far O is from it, over their number, "
               "with the spread over draws (Choromanski et al. 2021)."),
        Option(SCORES, "Scores", "Scores",
               "Additive, cosine and dot product: weights of this row, FLOPs of a pair, and what "
               "is a matrix product (Bahdanau et al. 2015, Luong et al. 2015)."),
    ), lesson="kernel"),
    Choice("h", tuple(
        Option(str(h), f"h = {h:.2g}", "",
               "Bandwidth of the kernel; the temperature of the softmax is its square.")
        for h in BANDWIDTHS
    ), listed=True, first=str(BANDWIDTHS[2])),
    Choice("examples", tuple(
        Option(str(seed), f"seed {seed}", "", "Which examples are drawn.") for seed in range(8)
    ), listed=True),
)  # fmt: skip
