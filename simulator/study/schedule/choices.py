"""The choices for schedules: which rows are shown, and in which order blocks start."""

from simulator.base.choices import Choice, Option
from simulator.study.declared import declared

CHOICES = declared(
    "Schedule",
    Choice("what", (
        Option("run", "This run", "Run", "The thread blocks of this run."),
        Option("orders", "Orders", "Orders",
               "The same thread blocks, started in other orders (Graham 1969)."),
        Option("algorithms", "Algorithms", "Others",
               "The same problem with other algorithms, each over its own time."),
        Option("splits", "Splits", "Splits",
               'What splits = "auto" chooses, and why (Flash-Decoding, Dao et al. 2023).'),
    ), lesson="schedule"),
    Choice("order", (
        Option("model", "long rows first", "",
               "Head by head, of each the longest blocks first: the order of the model, and of "
               "current kernels under a causal mask."),
        Option("index", "order of the grid", "",
               "What if blocks start in the order of the grid."),
        Option("longest", "longest first", "",
               "What if the blocks with the most work start first, whichever head's they are."),
        Option("persistent", "persistent", "",
               "What if as many thread blocks as fit take every so many-th piece each. The model "
               "leaves out what they save: the start of each block."),
    ), listed=True, lesson="blocks"),
)  # fmt: skip
ORDER_NAMES = {each.value: each.text for each in CHOICES[1].options}
