"""The choices for a ring."""

from __future__ import annotations

from simulator.base.choices import Choice, Option
from simulator.problem.hardware import links
from simulator.problem.values import MAX_DEVICES
from simulator.study.declared import declared
from simulator.study.ring.dealing import DEVICES, LAYOUTS

KEYS, PARTIALS = "keys", "partials"
"""What travels: blocks of K and V, or the partial results of devices for their own keys."""

CHOICES = declared(
    "Ring",
    Choice("shows", (
        Option("time", "Time", "Time", "When each device works and sends: a model."),
        Option("numbers", "Numbers", "Numbers",
               "m, ℓ and O of a device's rows after each step, as they are computed."),
    ), lesson="ring"),
    Choice("travels", (
        Option(KEYS, "K, V travel", "K, V", "Each device has some rows, and all keys come by."),
        Option(PARTIALS, "O, LSE travel", "O, LSE", "Each device has all rows and some keys, and "
               "sends what it makes of them once: decode context parallelism."),
    )),
    Choice("layout", tuple(
        Option(name, name, name, tip) for name, tip in zip(LAYOUTS, (
            "Device n holds part n of the sequence (Liu et al. 2023).",
            "Device n holds parts n and 2g − 1 − n of 2g (zhuzilin/ring-flash-attention).",
            "Device n holds every g-th token from n on (Brandon et al. 2023).",
        ), strict=True)
    ), listed=True),
    Choice("devices", tuple(
        Option(str(n), f"{n} devices", "", "The same problem on so many devices.")
        for n in range(2, MAX_DEVICES + 1)
    ), listed=True, first=str(DEVICES)),
    Choice("link", tuple(
        Option(each.name, f"{each.title}: {each.gbps:g} GB/s", "",
               f"One direction, as published: {each.of} (assets/links.toml).")
        for each in links().values()
    ), listed=True, lesson="link", first="NVLink-4"),
    Choice("sending", (
        Option("overlapped", "during the work", "", "A block travels while it is worked on."),
        Option("after", "after the work", "", "A block travels when the work on it is done."),
    ), listed=True),
)  # fmt: skip
