"""The soak: a window used at random for a long time, measured, and judged at the end."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from PySide6.QtWidgets import QApplication

from simulator.base.assets import DEMO
from tests.soak.devices import deliver_deletes
from tests.soak.fresh import FreshSessions, differences
from tests.soak.hand import Hand
from tests.soak.memory import in_words, parts
from tests.soak.watch import LONG_MS, Block, Failures, Sample, Stopwatch, Witness, load, sample
from ui.app.start import make_window
from ui.safety.settings import Settings
from ui.session.log_lines import follow
from ui.window.autosave import Autosave
from ui.window.main_window import MainWindow

MOST_BLOCK_MS = 300
MOST_GROWTH = 1.10
"""Memory and objects at the end, over those after `WARM` actions."""
WARM = 5_000
"""Actions after which all panels have been made, and what is kept for later is there."""
NEAR = 2_000
"""Actions before and after `WARM`, and twice as many before the end, whose samples count: their
medians are compared. A single one depends on what the last actions have left in bounded caches."""
LATE = "av", "pyqtgraph", "ziamath", "latex2mathml.converter", "mdit_py_plugins.dollarmath"
"""Libraries that come in with the first film, plot or formula: 25 MiB of files, before or after
`WARM` as it happens, so they are there from the beginning."""


@dataclass(slots=True)
class Report:
    """What a soak came to."""

    # at the beginning, after every so many actions, at the end
    samples: list[Sample] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)  # the longest, longest first
    failures: dict[str, int] = field(default_factory=dict)  # what went wrong, and how often
    checks: int = 0  # how often the window was compared with a new session

    def faults(self) -> list[str]:
        """Return, in words, what is not as it must be."""
        out = [f"{count}×: {text.splitlines()[-1]}" for text, count in self.failures.items()]
        out += [f"{b.cpu:.0f} ms without input: {b.what} (action {b.at})"
                for b in self.blocks if b.cpu > MOST_BLOCK_MS]  # fmt: skip
        for name, before, after in self.growth():
            if after > before * MOST_GROWTH:
                out.append(f"{name}: {after:.0f} at the end, {before:.0f} at {WARM}")
        return out

    def growth(self) -> list[tuple[str, float, float]]:
        """Return what is measured, with its medians around `WARM` actions and at the end."""
        end = self.samples[-1].actions
        warm = [each for each in self.samples if abs(each.actions - WARM) <= NEAR]
        late = [each for each in self.samples
                if each.actions >= end - 2 * NEAR and each.actions > WARM + NEAR]  # fmt: skip
        if not warm or not late:
            return []
        return [
            (name, *(median(getattr(each, name) for each in some) for some in (warm, late)))
            for name in ("rss", "objects", "qobjects", "widgets")
        ]


def soak(
    folder: Path,
    actions: int,
    seconds: float = float("inf"),
    seed: int = 1,
    every: int = 1_000,
    check: int = 500,
    say: Callable[[str], None] = print,
) -> Report:
    """Use a window at random.

    folder: where settings and files lie.
    actions, seconds: when to end: whichever comes first.
    seed: of what is drawn.
    every, check: actions between two samples, and between two comparisons with a new session.
    say: told each line of the table.
    """
    failures = Failures()
    settings = Settings(folder / "settings.ini")
    window = make_window(DEMO, "numpy", settings)
    for name in LATE:
        importlib.import_module(name)
    autosave = Autosave(window.session, folder)
    follow(window.session)
    window.resize(1440, 900)
    window.show()
    window.activateWindow()
    window.session.settle()
    hand, fresh = Hand(window, folder, seed), FreshSessions()
    try:
        with Witness():
            return _use(window, hand, fresh, failures, (actions, seconds, every, check), say)
    finally:
        fresh.close()
        hand.close()
        hand.end_dialogs()
        window.close()
        autosave.finish()
        window.deleteLater()
        deliver_deletes()
        failures.close()


def _use(
    window: MainWindow,
    hand: Hand,
    fresh: FreshSessions,
    failures: Failures,
    plan: tuple[int, float, int, int],
    say: Callable[[str], None],
) -> Report:
    actions, seconds, every, check = plan
    report, begun = Report(), time.monotonic()
    longest = Block(0, 0, "", 0)
    say(f"{'actions':>8} {'s':>6} {'RSS MiB':>8} {'untrimmed':>9} {'objects':>8} {'QObjects':>8} "
        f"{'widgets':>8} {'longest block':>14}")  # fmt: skip

    def take(done: int) -> None:
        nonlocal longest
        failures.during = "coming to rest"
        for act in (hand.leave, settle, hand.rest, settle):
            failures.keep(act)
        now = sample(done, time.monotonic() - begun)
        report.samples.append(now)
        say(f"{now.actions:8} {now.seconds:6.0f} {now.rss:8.0f} {now.held:9.0f} {now.objects:8} "
            f"{now.qobjects:8} {now.widgets:8} {longest.cpu:5.0f} ms ({longest.wall:.0f} passed)"
            f"  load {load()}  {longest.what[:60]}"
            f"{'' if window.session.settled else ', still at work'}")  # fmt: skip
        if done % WARM == 0:
            say(f"{'':15} of it {in_words(parts())}")
        longest = Block(0, 0, "", 0)

    take(0)
    done = 0
    while done < actions and time.monotonic() - begun < seconds:
        act = hand.act()
        failures.during = f"action {done}"
        with Stopwatch() as first:
            what = failures.keep(act) or "failed"
        failures.during = f"action {done}: {what}"
        # In between, and between keys, the event loop of the window would take input.
        with Stopwatch() as then:
            failures.keep(pump)
        done += 1
        watch = max(first, then, key=lambda each: each.cpu)
        block = Block(watch.cpu, watch.wall, what if watch is first else f"after {what}", done,
                      watch.where)  # fmt: skip
        if block.cpu > longest.cpu:
            longest = block
        if block.cpu > LONG_MS:
            report.blocks = sorted([*report.blocks, block], key=lambda b: -b.cpu)[:20]
        if done % check == 0:
            failures.during = f"the comparison after action {done}"
            found = failures.keep(partial(differences, window, fresh))
            for text in found or ():
                failures.add(text)
            report.checks += found is not None
        if done % every == 0:
            take(done)
    if report.samples[-1].actions != done:
        take(done)
    report.failures = dict(failures.told)
    return report


def settle(seconds: float = 0.4) -> None:
    """Let timers that begin with what has just been done come to their end."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pump()
        time.sleep(0.002)


def pump() -> None:
    """Handle all that is due, and end what waits for its end."""
    QApplication.processEvents()
    deliver_deletes()
