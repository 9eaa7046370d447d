"""A scenario panel on a desk: what the tests of the form do with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from simulator.base.errors import InputError
from simulator.problem.filling import capture_text
from simulator.problem.scenario import Scenario, parse_scenario
from simulator.problem.workload import resolve
from ui.panels.scenario.editors import ChoiceEditor, LineEditor
from ui.panels.scenario.field import Field
from ui.panels.scenario.panel import ScenarioPanel
from ui.panels.scenario.pictures import SentenceEditor, TwoPictures

RANDOM = {
    "attention": {"heads": 6, "kv_heads": 2, "seqlen_q": 70, "head_dim": 32},
    "tiling": {"rows": 16, "cols": 24},
}
CAPTURE = {"input": {"source": "capture", "name": "cat-because-layer2"}}


class Desk:
    """A panel, and what its window would do: answer every proposal at once."""

    def __init__(self, qtbot: QtBot, data: dict[str, object]) -> None:
        self.panel = ScenarioPanel()
        qtbot.addWidget(self.panel)
        self.panel.resize(300, 900)
        self.proposals: list[Scenario] = []
        self.words: list[str] = []
        self.answers = True
        self.panel.proposed.connect(self._take)
        self.shown = resolve(parse_scenario(data))
        self.panel.show_workload(self.shown)
        self.panel.show()

    def _take(self, scenario: Scenario, words: str) -> None:
        self.proposals.append(scenario)
        self.words.append(words)
        if self.answers:
            self.answer(scenario)

    def answer(self, scenario: Scenario) -> None:
        try:
            self.shown = resolve(scenario)
        except InputError as error:
            self.panel.show_refusal(error)
        else:
            self.panel.show_workload(self.shown)

    def field(self, name: str) -> Field:
        """Return a field, brought in sight as somebody would who searches for it."""
        if not self.panel.fields[name].isVisibleTo(self.panel):
            self.panel.show_field(name)
        return self.panel.fields[name]

    def line(self, name: str) -> LineEditor:
        editor = self.field(name).editor
        assert isinstance(editor, LineEditor)
        return editor

    def choice(self, name: str) -> ChoiceEditor:
        editor = self.field(name).editor
        assert isinstance(editor, ChoiceEditor)
        return editor

    def type(self, name: str, text: str, enter: bool = True) -> None:
        editor = self.line(name)
        editor.selectAll()
        if text:
            QTest.keyClicks(editor, text)
        else:
            QTest.keyClick(editor, Qt.Key.Key_Delete)
        if enter:
            QTest.keyClick(editor, Qt.Key.Key_Return)

    def choose(self, name: str, text: str) -> None:
        """Choose with the mouse, in a list that opens also with the keys."""
        field = self.field(name).editor
        if isinstance(field, TwoPictures):
            QTest.mouseClick(field.buttons[text or "false"], Qt.MouseButton.LeftButton)
            return
        if isinstance(field, SentenceEditor):
            self.choose_sentence(field, text)
            return
        editor = self.choice(name)
        place = editor.findData(text)
        assert place >= 0
        QTest.mouseClick(editor, Qt.MouseButton.LeftButton)
        view = editor.view()
        assert view.isVisible()
        QTest.keyClick(view, Qt.Key.Key_Home)
        for _ in range(place):
            QTest.keyClick(view, Qt.Key.Key_Down)
        QTest.keyClick(view, Qt.Key.Key_Return)
        assert editor.currentData() == text

    def choose_sentence(self, editor: SentenceEditor, name: str) -> None:
        """Click on a sentence that ships, found by its text and layer."""
        words = capture_text(name).words, f"layer {capture_text(name).layer} ·"
        rows, view = editor.list.rows, editor.list
        said = [rows.item(n).accessibleText() for n in range(rows.rowCount())]
        (place,) = (n for n, text in enumerate(said) if all(each in text for each in words))
        spot = view.visualRect(rows.index(place, 0)).center()
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=spot)

    def put(self, name: str, text: str) -> None:
        if isinstance(self.panel.fields[name].editor, LineEditor):
            self.type(name, text)
        else:
            self.choose(name, text)

    def wrong(self) -> dict[str, str]:
        """What stands beside the fields; the frame and the words always go together."""
        return {
            name: field.message.text
            for name, field in self.panel.fields.items()
            if field.message.isVisibleTo(self.panel)
        }


def save_npz(folder: Path, heads: int = 2, tokens: int = 9, block: int = 3) -> Path:
    path = folder / "mine.npz"
    rng = np.random.default_rng(0)
    tensors = {name: rng.random((heads, tokens, 4), np.float32) for name in "qkv"}
    blocks = rng.random((-(-tokens // block), -(-tokens // block))) < 0.5
    np.savez(path, **tensors, block_mask=blocks)
    return path
