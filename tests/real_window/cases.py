"""What is tried on a real screen: starts of the program, and random sequences, a row each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simulator.base.assets import LESSONS, SCENARIOS
from ui.look.layouts import LAYOUT_NAMES

_SEQUENCES = 16
_LESSONS = sorted(path.stem for path in LESSONS.glob("*.md"))
_DEMO, _PICTURE = str(SCENARIOS / "causal.toml"), "docs/pictures/compare.png"
Life = tuple[tuple[str, ...], tuple[str, ...]]


def _lesson(number: int) -> str:
    return str(LESSONS / f"{_LESSONS[number - 1]}.md")


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that is tried."""

    name: str  # its name in a report
    script: str  # what is done with the window: a name in `SCRIPTS` of `hand`, or "processes"
    # the command line; ``{folder}`` in it stands for the folder of the settings
    arguments: tuple[str, ...] = ()
    left: str = ""  # what was done with the window before, in another process: a name in `LEFT`
    seed: int = 0  # of what is drawn at random

    @property
    def command(self) -> str:
        """What a user would type, and on what."""
        after = f" after {self.left!r}" if self.left else ""
        if self.script in ("sequence", "processes"):
            return f"{self.script} {self.name}"
        return f"`{' '.join(('python -m ui', *self.arguments))}`{after}"


LEFT = {
    "normal": (),
    "maximised": ("maximise",),
    "full screen": ("full_screen",),
    "a talk": ("present",),
    "small window": ("small",),
    "large text": ("large_text",),
    "floating docks": ("float_all",),
    "floating docks, maximised": ("float_all", "maximise"),
    "4K screen, maximised": ("maximise",),
    "4K screen, far right": ("float_all", "far"),
    **{f"layout {name}": (f"layout {name}",) for name in LAYOUT_NAMES},
    "layout compare, maximised": ("layout compare", "maximise"),
}
"""What a start may find: what was done with the window before it was closed."""

LARGE_SCREEN = "3840x2160"
"""Where those were left whose name begins with 4K; all else is on a smaller one."""

WAYS = {
    "plain": (),
    "scenario": (_DEMO,),
    "export": (_PICTURE,),
    "lesson file": (_lesson(8),),
    "--lesson": ("--lesson", "{lesson}"),
    "scenario --lesson": (_DEMO, "--lesson", _lesson(5)),
    "--present": ("--present",),
    "--present --lesson": ("--present", "--lesson", _lesson(7)),
    "--log FILE": ("--log", "{folder}/asked.log"),
    "--engine": ("--engine", "numpy", _DEMO),
}
"""Every way in which the command line opens a window."""


KINDS = (
    ("plain",),
    ("scenario", "export", "--log FILE", "--engine"),
    ("lesson file", "--lesson", "scenario --lesson"),
    ("--present", "--present --lesson"),
)
"""Those ways by what they open: the first page, a run, a lesson at the desk, a talk."""
WORST = ("", "maximised", "layout compare, maximised")
"""After these every way is tried, after a layout one, after all else one of each kind, by turns."""


def _starts() -> Iterator[Case]:
    """Yield ways to start after everything left behind; lessons by turns."""
    for turn, left in enumerate(("", *LEFT)):
        lesson = _LESSONS[turn % len(_LESSONS)]
        ways = WAYS if left in WORST else [kind[turn % len(kind)] for kind in KINDS]
        if left.startswith("layout ") and left not in WORST:
            ways = ways[turn % len(KINDS) :][:1]  # what opens depends on its kind, not on layouts
        for way in ways:
            typed = tuple(word.replace("{lesson}", lesson) for word in WAYS[way])
            yield Case(f"{way} after {left or 'nothing'}", "start", typed, left)
    for lesson in _LESSONS[2::4]:  # `PAGES` begins with others
        yield Case(f"{lesson} after maximised", "start", ("--lesson", lesson), "maximised")
    for left in ("", "maximised"):
        yield Case(f"no file after {left or 'nothing'}", "start", ("{folder}/none.toml",), left)


STARTS = tuple(_starts())
LEAVING = tuple(Case(name, "leave", left=name) for name in LEFT)
SEQUENCES = tuple(Case(f"seed-{seed:03}", "sequence", seed=seed) for seed in range(_SEQUENCES))
NEWCOMERS = tuple(Case(size, "newcomer") for size in ("1280x720", "1920x1080"))
"""First starts, by the size of the screen."""
PAGES = tuple(
    Case(name, "page", ("--engine", "numpy", "--present", "--lesson", _lesson(number)))
    for number, name in [*enumerate(_LESSONS, start=1)][::4]
)
"""Every fourth lesson: all of them take three minutes of a processor."""

LIVES: dict[str, tuple[Life, ...]] = {
    # The command of docs/first-ten-minutes.md, and other lessons, each after the one before.
    "maximised, then lessons": (
        ((), ("Super+Up",)),
        *((("--lesson", _LESSONS[n - 1]), ("Right",)) for n in (1, 7, 9, 10, 11)),
    ),
    "algorithm maximised, then a lesson": (
        ((), ("Ctrl+2", "Super+Up")), (("--lesson", _LESSONS[0]), ("PgDown",)),
    ),
    "full screen, then a talk": (
        ((_DEMO,), ("F11",)), (("--present",), ("Right",)), (("--lesson", _LESSONS[4]), ("F5",)),
    ),
}  # fmt: skip
"""Command lines of processes that follow one another, and the keys for each before Ctrl+Q."""
PROCESSES = tuple(Case(name, "processes") for name in LIVES)
ON_WAYLAND = tuple(
    Case(f"{way} after {left or 'nothing'}", "start", WAYS[way], left)
    for left in ("", "maximised", "layout compare")
    for way in ("plain", "lesson file", "--present --lesson")
)
