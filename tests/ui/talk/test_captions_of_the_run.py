"""Captions of lessons ask the run that the session has, and no second one."""

from dataclasses import replace
from pathlib import Path

from pytestqt.qtbot import QtBot

from simulator.engines.numpy_engine import numpy_engine
from simulator.engines.protocol import Engine
from simulator.problem.workload import Inputs, Workload
from simulator.run.cell_values import cell_value
from simulator.run.snapshot import Cell
from ui.look.lesson_text import FORMATS
from ui.session.engines import Engines
from ui.session.session import Session
from ui.talk.lesson_player import LessonPlayer


def test_captions_ask_the_run_that_the_session_has(qtbot: QtBot, tmp_path: Path) -> None:
    asked: list[str] = []

    def choose(name: str, workload: Workload, inputs: Inputs) -> tuple[Engine, str]:
        asked.append(workload.algorithm)
        return numpy_engine(workload, replace(inputs, q=2 * inputs.q)), ""

    path = tmp_path / "asks.md"
    step = '\n## {}\n\n```toml step\n{}\n```\n\nm is {{{{ value("m", 0) }}}}.\n'
    steps = ('scenario = "flash2"\nat = "last"', "at = 3", 'scenario = "flash1"\nat = "last"')
    path.write_text('+++\ntitle = "x"\n+++\n' + "".join(map(step.format, "ABC", steps)))
    player = LessonPlayer(Session(Engines("auto", choose)))
    player.session.motion = False
    player.open(path)
    for number in range(3):
        qtbot.waitUntil(lambda n=number: player.step_number == n and player.settled)
        trace, step = player.session.trace, player.step
        snapshot = trace.snapshot(step.cursor.visit, step.cursor.op)
        m = cell_value(snapshot, Cell("m", 0, 0)).value
        assert m is not None
        assert step.caption == f"m is {FORMATS['number'](m, 3)}."
        player.next()
    assert asked == ["flash2", "flash1"]
    player.stop()
    player.session.close()
