"""What a lesson chooses in panels, and what is left of it afterwards."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton, QAbstractSlider, QComboBox, QLineEdit, QWidget

from simulator.base.assets import LESSONS
from ui.look.layouts import LAYOUTS
from ui.panels.kv_cache.panel import CachePanel
from ui.talk.lessons import Lessons
from ui.window.main_window import MainWindow

Open = Callable[..., MainWindow]
ROOT_D = LESSONS / "02-why-sqrt-d.md"


def begin(window: MainWindow, path: Path) -> Lessons:
    window.files.open_path(path)
    window.session.settle()
    return window.lessons


@pytest.mark.long
def test_choices_in_panels_follow_the_steps(open_window):
    window = open_window()
    lessons = begin(window, LESSONS / "10-sharing-heads.md")
    titles = [step.title for step in lessons.player.lesson.steps]  # type: ignore[union-attr]
    cache, heads = window.docks.panel("cache"), window.docks.panel("heads")
    for title, model in (("What that keeps", "Llama-2-7B"), ("MLA: keep a latent", "DeepSeek-V3")):
        lessons.player.go(titles.index(title))
        window.session.settle()
        assert cache.card.choice.model.name == model  # type: ignore[attr-defined]
        assert (heads.of, heads.model) == ("model", model)  # type: ignore[attr-defined]
    lessons = begin(window, ROOT_D)
    assert heads.model == "DeepSeek-V3"  # type: ignore[attr-defined]
    lessons.player.go(2)
    window.session.settle()
    assert window.docks.panel("sqrt_d").chosen["quantity"] == "entropy"  # type: ignore[attr-defined]
    lessons.player.go(0)
    lessons.player.go(1)
    window.session.settle()
    assert window.docks.panel("sqrt_d").chosen["quantity"] == "variance"  # type: ignore[attr-defined]


def _chosen(panel: QWidget) -> list[tuple[str, object]]:
    """Everything that can be chosen in a panel, as it stands."""
    return [
        *((box.accessibleName(), box.isChecked()) for box in panel.findChildren(QAbstractButton)),
        *((box.objectName(), box.currentText()) for box in panel.findChildren(QComboBox)),
        *((box.objectName(), box.value()) for box in panel.findChildren(QAbstractSlider)),
        *((line.objectName(), line.text()) for line in panel.findChildren(QLineEdit)),
    ]


@pytest.mark.long
def test_a_lesson_leaves_no_choice_behind_in_any_panel(open_window, settings, tmp_path):
    """The user's own come back, also where the lesson has chosen another model."""
    chosen = ", ".join((
        'memory = "tilted", over = "Bc", latent = "sharing", schedule = "algorithms"',
        'blocks = "longest", merge = "tree", model = "DeepSeek-V3", tokens = 32768',
        'quantity = "entropy", jobs = "distances", kernel = "factors", order = "reach"',
        'positions = "maps", jacobian = true, generation = "flops", ring = "numbers"',
        'layer = "head", cache = "hand", page = 8, card = "curve"',
    ))  # fmt: skip
    steps = (
        f'## {spec.title}\n\n```toml step\nscenario = "grouped-heads"\n'
        f'layout = "{spec.name}"\nchoose = {{ {chosen} }}\n```\n\nWords.\n\n'
        for spec in LAYOUTS
    )
    lesson = '+++\ntitle = "All"\n+++\n\n' + "".join(steps)
    path = tmp_path / "all.md"
    path.write_text(lesson, encoding="utf-8")
    window = open_window("grouped-heads", (1920, 1080))
    window.desk.take("cache")
    window.docks.panel(CachePanel).card.choose("model", "Llama-2-70B")
    names = sorted({name for spec in LAYOUTS for name in spec.docks})
    for name in names:
        if name not in ("scenario", "values", "cache", "heads"):
            panel = window.docks.panel(name)
            bar = getattr(panel, "bar", panel.title_bar)
            for choice in getattr(bar, "choices", ()):
                bar.choose(choice.name, choice.options[-1].value)
    for spec in LAYOUTS:
        window.desk.take(spec.name)
        window.session.settle()
    window.desk.take("cache")
    window.session.settle()
    before = {name: _chosen(window.docks.panel(name)) for name in names}
    window.files.open_path(path)
    window.session.settle()
    assert not window.lessons.player.lesson.mistakes
    for _ in LAYOUTS[1:]:
        window.lessons.player.next()
        window.session.settle()
    during = {name: _chosen(window.docks.panel(name)) for name in names}
    assert len([name for name in names if during[name] != before[name]]) > 12
    window.lessons.player.leave()
    window.session.settle()
    for name in names:
        assert _chosen(window.docks.panel(name)) == before[name], name
    assert window.session.model_choice.model.name == "Llama-2-70B"
    assert window.desk.current == "cache"
