"""Few lessons that show all that lessons show."""

from simulator.base.assets import LESSONS
from simulator.lesson.reader import load_lesson
from ui.look.layouts import LAYOUT_PANELS


def some_lessons(*known: str) -> list[str]:
    """Return few lessons that show every panel of every layout, beside those that are known."""
    lessons = {file.stem: load_lesson(file, LAYOUT_PANELS) for file in sorted(LESSONS.glob("*.md"))}
    shows = {stem: {(step.layout, step.panel) for step in of.steps} for stem, of in lessons.items()}
    seen = {place for stem in known for place in shows[stem]}
    found: list[str] = []
    while missing := {stem: shown - seen for stem, shown in shows.items() if shown - seen}:
        found.append(max(missing, key=lambda stem: len(missing[stem]) / len(lessons[stem].steps)))
        seen |= shows[found[-1]]
    return found
