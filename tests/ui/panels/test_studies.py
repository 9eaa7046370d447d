"""What every study in a dock keeps to, at all sizes, in all themes, at the desk and on stage."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter

from simulator.base.assets import CAPTURES, SCENARIOS
from simulator.base.choices import Choice
from simulator.problem.scenario import parse_scenario
from tests.helpers.approved import check
from tests.helpers.drawn_words import drawn_words, faults
from tests.helpers.random_pages import overlapping
from ui.kit.shapes import Paragraph
from ui.look.theme import THEMES, Style, Theme, stage_label, stage_scale
from ui.panels.study_panel import StudyPanel
from ui.plots.painter import paint_over
from ui.session.session import Session
from ui.window.panel_specs import PANELS

LAYER = SCENARIOS / "layer.safetensors"
TRAINED = CAPTURES / "small/step-2000-layer1.safetensors"
CAUSAL = {"mask": {"causal": True}, "tiling": {"rows": 4, "cols": 4}}
RUNS = {
    "generation": (
        {"input": {"source": "capture", "name": "passage-layer1"}},
        {"attention": {"seqlen_q": 4, "seqlen_k": 24, "head_dim": 4}, **CAUSAL},
    ),
    "sweep": (
        {"attention": {"heads": 2, "seqlen_q": 64, "head_dim": 16, "dtype": "float16"},
         "mask": {"causal": True}, "tiling": {"rows": 16, "cols": 16}},
        {"attention": {"algorithm": "flash2-backward", "seqlen_q": 64, "head_dim": 8},
         "mask": {"documents": [13, 30, 21]}, "tiling": {"rows": 16, "cols": 16}},
    ),
    "compare": (
        {"attention": {"seqlen_q": 64, "head_dim": 32}, "mask": {"causal": True},
         "tiling": {"rows": 16, "cols": 16}},
        {"attention": {"algorithm": "flash2-backward", "seqlen_q": 64, "head_dim": 8}, **CAUSAL},
        {"attention": {"algorithm": "linear", "seqlen_q": 4096, "head_dim": 64,
                       "dtype": "float16"}, "tiling": {"rows": 64, "cols": 64}},
    ),
    "jobs": (
        {"attention": {"heads": 4}, "tiling": {"rows": 8, "cols": 8},
         "input": {"source": "layer",
                   "path": str(TRAINED)}},
        {"attention": {"heads": 12, "seqlen_q": 16, "head_dim": 4}, **CAUSAL},
    ),
    "kernel": (
        {"input": {"source": "capture", "name": "passage-layer1"}},
        {"attention": {"seqlen_q": 1025, "head_dim": 4}, "tiling": {"rows": 64, "cols": 64}},
        {"attention": {"seqlen_q": 9, "seqlen_k": 4, "head_dim": 4},
         "scores": {"softcap": 2.0, "sink_logits": [1.0]}},
    ),
    "latent": (
        {"attention": {"algorithm": "mla", "heads": 4, "seqlen_q": 1, "seqlen_k": 256,
                       "latent_dim": 32, "rope_dim": 8}},
        {"input": {"source": "capture", "name": "passage-layer1"}},
    ),
    "layer": (
        {"attention": {"heads": 1}, "input": {"source": "layer", "path": str(LAYER)},
         "tiling": {"rows": 2, "cols": 2}},
        {"attention": {"heads": 4}, "tiling": {"rows": 8, "cols": 8},
         "input": {"source": "layer", "path": str(TRAINED)}},
        {"attention": {"seqlen_q": 16, "head_dim": 4}, **CAUSAL},
    ),
    "masks": (
        {"attention": {"heads": 2, "seqlen_q": 32, "head_dim": 8}, **CAUSAL},
        {"attention": {"seqlen_q": 2048, "head_dim": 32}, "mask": {"causal": True},
         "tiling": {"rows": 64, "cols": 64}},
    ),
    "merge": (
        {"attention": {"seqlen_q": 256, "head_dim": 64}, "mask": {"causal": True},
         "tiling": {"rows": 32, "cols": 32}},
        {"attention": {"algorithm": "flash2-backward", "seqlen_q": 64, "head_dim": 8}, **CAUSAL},
        {"attention": {"algorithm": "linear", "seqlen_q": 16, "head_dim": 4}},
    ),
    "order": (
        {"attention": {"heads": 2, "seqlen_q": 20, "head_dim": 8}, **CAUSAL},
        {"attention": {"seqlen_q": 1024, "head_dim": 8}, "mask": {"causal": True, "window": 64},
         "tiling": {"rows": 128, "cols": 128}},
        {"attention": {"seqlen_q": 4, "seqlen_k": 24, "head_dim": 4}, **CAUSAL},
    ),
    "pages": (
        {"attention": {"algorithm": "paged", "heads": 2, "seqlen_q": 1, "head_dim": 4},
         "batch": {"lengths": [9, 30, 17, 4]},
         "tiling": {"rows": 4, "cols": 8, "page_size": 4, "splits": 2}},
        {"attention": {"seqlen_q": 16, "head_dim": 4}},
    ),
    "positions": (
        {"attention": {"heads": 2, "seqlen_q": 40, "head_dim": 16},
         "position": {"kind": "rope", "offset": 2}, **CAUSAL},
        {"attention": {"seqlen_q": 2, "head_dim": 2}},
        {"attention": {"seqlen_q": 2048, "head_dim": 128},
         "tiling": {"rows": 128, "cols": 128}},
    ),
    "ring": (
        {"attention": {"heads": 2, "seqlen_q": 32, "head_dim": 4, "dtype": "float16"}, **CAUSAL},
        {"attention": {"seqlen_q": 8192, "head_dim": 64, "dtype": "float16"},
         "tiling": {"rows": 128, "cols": 128, "devices": 8}},
        {"attention": {"algorithm": "linear", "seqlen_q": 16, "head_dim": 4}},
        {"attention": {"algorithm": "split-kv", "heads": 8, "kv_heads": 2, "seqlen_q": 1,
                       "seqlen_k": 2048, "head_dim": 64, "dtype": "float16"},
         "tiling": {"rows": 16, "cols": 64, "devices": 4}},
    ),
    "roofline": (
        {"attention": {"heads": 2, "seqlen_q": 512, "head_dim": 64, "dtype": "float16"},
         "tiling": {"rows": 128, "cols": 64}},
        {"attention": {"algorithm": "flash2-backward", "seqlen_q": 64, "head_dim": 8}, **CAUSAL},
    ),
    "schedule": (
        {"attention": {"heads": 8, "seqlen_q": 2048, "head_dim": 64}, "mask": {"causal": True},
         "tiling": {"rows": 64, "cols": 64}},
        {"attention": {"algorithm": "split-kv", "heads": 8, "kv_heads": 2, "seqlen_q": 1,
                       "seqlen_k": 16384, "head_dim": 64, "dtype": "float16"},
         "tiling": {"rows": 16, "cols": 128}},
        {"attention": {"algorithm": "flash2-backward", "seqlen_q": 64, "head_dim": 8}, **CAUSAL},
        {"attention": {"algorithm": "naive", "seqlen_q": 1, "seqlen_k": 131072, "head_dim": 64},
         "tiling": {"rows": 1, "cols": 128}},
    ),
    "sqrt_d": (
        {"input": {"source": "capture", "name": "passage-layer1"}},
    ),
}  # fmt: skip
"""Runs of which a study shows what it has to show, and one of which it says why it does not."""
SIZES = ((430, 300), (640, 540), (960, 810), (640, 1000))
APPROVED = Path(__file__).parent / "approved"
"""What is read aloud of each run: all as usual, then of each choice the sentences that differ."""
STAGES = {(640, 540): (1280, 720), (960, 810): (1920, 1080), (430, 300): (1280, 720)}
"""Windows on stage in which a panel is so large."""


USUAL = "as usual"
LONGEST = 240
"""Seconds that a state may take: a map of tiles, half a minute of a processor."""
Shown = tuple[StudyPanel, Session]


@pytest.fixture(params=[(name, n) for name, runs in RUNS.items() for n in range(len(runs))],
                ids=lambda each: f"{each[0]}-{each[1]}")  # fmt: skip
def shown(request: pytest.FixtureRequest, qapp: object) -> Iterator[Shown]:
    name, n = request.param
    session = Session("numpy")
    session.motion = False
    session.propose(parse_scenario(RUNS[name][n]), "a run")
    session.settle(LONGEST)
    session.choose_row(session.trace.workload.seqlen_q * 3 // 4)
    session.last()
    session.settle(LONGEST)
    panel = next(spec for spec in PANELS if spec.name == name).make(session)
    assert isinstance(panel, StudyPanel)
    panel.show()
    assert session.view is not None
    panel.show_view(session.view, None)
    session.settle(LONGEST)
    yield panel, session
    panel.close()
    session.close()
    panel.deleteLater()


def in_turn(panel: StudyPanel, session: Session) -> Iterator[str]:
    """Choose the values of each choice that has a sense here, of lists the first and the last.

    The other choices are as usual.
    """
    assert session.trace is not None
    yield USUAL
    for choice in panel.study.choices:
        values = offered(panel, choice)
        for value in values[:: max(len(values) - 1, 1) if choice.listed else 1]:
            if choice.name not in panel.study.hidden(session.trace, panel.chosen):
                panel.bar.choose(choice.name, value)
                session.settle(LONGEST)
                assert session.settled
                yield f"{choice.name} = {value}"
        panel.bar.choose(choice.name, choice.usual)
        session.settle()


def offered(panel: StudyPanel, choice: Choice) -> list[str]:
    """Return the values that can be chosen in a run."""
    if choice.listed:
        box = panel.bar.lists[choice.name]
        return [box.itemData(n) for n in range(box.count())]
    return [each for each in choice.values if panel.bar.buttons[choice.name, each].isEnabled()]


def styles(size: tuple[int, int], theme: Theme) -> Iterator[Style]:
    """Yield the style of a theme, and that on the stage if a panel is so large there."""
    yield Style(theme)
    if size in STAGES:
        yield Style(theme, stage_scale(*STAGES[size]), stage_label(*STAGES[size]))


def parts(panel: StudyPanel) -> Iterator[tuple[Callable[[QPainter], None], QRectF]]:
    """Yield what paints the boxes of a panel, and the words of its plot, with their places."""
    if not panel.picture.isHidden() and panel.picture.height():
        yield panel.picture.scene.paint, QRectF(panel.picture.rect())
    if not panel.plot.isHidden():
        layout = panel.plot.plot_layout()
        yield partial(paint_over, model=panel.plot.model, layout=layout), QRectF(panel.plot.rect())


def lost(panel: StudyPanel) -> list[str]:
    """Return the sentences that are neither drawn nor in the tooltip of the title."""
    if panel.picture.isHidden() or not panel.picture.height():
        return []
    scene = panel.picture.scene
    at = next(rect.center() for box, rect in scene.placed if isinstance(box, Paragraph))
    drawn = drawn_words(scene.paint, QRectF(panel.picture.rect()))
    read = letters("".join(each.text for each in drawn) + panel.picture.tip(at))
    said = panel.study.words(panel.state).sentences
    return [each for each in said if letters(each)[:12] not in read]


def letters(text: str) -> str:
    return re.sub(r"\W", "", text)


def test_every_study_is_here(qapp):
    session = Session("numpy")
    made = {spec.name: spec.make(session) for spec in PANELS}
    assert {name for name, each in made.items() if isinstance(each, StudyPanel)} == set(RUNS)
    session.close()


def check_words(panel: StudyPanel, size: tuple[int, int], theme: Theme) -> None:
    """Hold that words are whole, apart and large enough."""
    panel.resize(*size)
    for style in styles(size, theme):
        panel.set_style(style)
        for paint, rect in parts(panel):
            drawn = drawn_words(paint, rect)
            assert drawn
            wrong = faults(drawn, rect)
            assert not wrong, (size, style.theme.name, style.scale, wrong)
            assert min(each.size for each in drawn) >= round(style.least), size
        assert not lost(panel), (size, style.scale)


@pytest.mark.sweep(keep=4)
def test_words_are_whole_apart_and_said_and_keys_reach_everything(shown, request):
    panel, session = shown
    turns, others = cycle(THEMES.values()), cycle(SIZES[1:])
    size, style = panel.size(), panel.picture.style_now
    usual: list[str] = []
    told: list[str] = []
    for chosen in in_turn(panel, session):
        said, plotted = panel.accessibleDescription(), panel.picture.isHidden()
        title = panel.plot.model.note if plotted else panel.study.words(panel.state).title
        assert said.startswith(title), chosen
        sentences = re.split(r"(?<=\.) |\n", said)
        if new := [each for each in sentences if each not in usual]:
            told += [f"# {chosen}", *new, ""]
        usual = usual or sentences
        picture = panel.plot if plotted else panel.picture
        assert picture.accessibleDescription() == said
        controls = [*panel.bar.shown(), picture]
        controls += [panel.slider] if panel.study.slider else []
        for each in controls:
            assert each.accessibleName(), each
            assert each.focusPolicy() & Qt.FocusPolicy.TabFocus, each
        for each in SIZES if chosen == USUAL else (SIZES[0], next(others)):
            check_words(panel, each, next(turns))
        assert not overlapping(panel), chosen
        panel.resize(size)
        panel.set_style(style)
    check("\n".join(told), APPROVED / f"{request.node.callspec.id}.txt")
    panel.show_controls(False)  # a film
    assert panel.bar.isHidden()
    assert panel.slider.isHidden()
    panel.show_controls(True)
    assert not panel.bar.isHidden()
