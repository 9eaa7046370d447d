"""The choices for pages: whose cache it is, how large pages are, and who shares them."""

from simulator.base.choices import Choice, Option
from simulator.study.declared import declared

SERVER, RUN, HAND = "server", "run", "hand"
SHARED = "shared"
CHOICES = declared(
    "Pages",
    Choice("cache", (
        Option(SERVER, "a server", "", "Sequences that grow and end, step by step."),
        Option(RUN, "this run", "", "The sequences of the run, if its cache lies in pages."),
        Option(HAND, "by hand", "", "Sequences that you grow, fork and end."),
    ), listed=True, lesson="cache"),
    Choice("page", tuple(
        Option(str(n), f"pages of {n}", "", "How many tokens a page has.") for n in (2, 4, 8, 16)
    ), listed=True, lesson="page", first="4"),
    Choice("prompts", (
        Option(SHARED, "prompts shared", "",
               "Samples of one prompt share its pages, and copy one before they write into it "
               "(Kwon et al. 2023, section 4.4)."),
        Option("apart", "prompts apart", "",
               "Each sample has the whole prompt in pages of its own."),
    ), listed=True, lesson="prompts"),
)  # fmt: skip
