"""What `make bench` tells: every figure beside its floor. No test looks at the clock."""

import json
from pathlib import Path

import av
import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFont, QImage, QPainter, QPaintEvent, QStaticText
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

import tests.bench.drawing as drawn
import tests.bench.films as exports
import tests.bench.numbers as numbers
from tests.bench.floors import RecordingPainter, Strokes, recorded
from tests.bench.numbers import HEADER, Measurement, measured, p95, tell, turns
from ui.look.theme import TEXT_FAMILY
from ui.safety.painting import painting


def test_a_ratio_is_that_of_the_medians() -> None:
    row = measured("what", "ms", [0.003, 0.001, 0.1], [0.001, 0.0015, 0.0015], "bare", figure=max)
    assert (row.figure, row.median, row.floor) == pytest.approx((100, 3, 1.5))
    assert row.ratio == pytest.approx(2)
    assert row.told["ratio"] == row.ratio
    for word in ("what", "100 ms", "3", "1.5", "2x", "bare"):
        assert word in str(row)


@pytest.mark.parametrize(
    ("goals", "unit", "met", "holds"),
    [
        ({}, "ms", True, True),
        ({"target": 10.0}, "ms", True, True),
        ({"target": 9.0}, "ms", False, True),
        ({"target": 9.0}, "MB", False, False),
        ({"most": 2.0}, "ms", True, True),
        ({"most": 1.9}, "ms", False, False),
    ],
)
def test_times_are_told_ratios_and_memory_are_held(
    goals: dict[str, float], unit: str, met: bool, holds: bool
) -> None:
    row = Measurement("what", 10.0, unit, 6.0, 3.0, "bare", **goals)
    assert (row.met, row.holds(busy=False)) == (met, holds)
    assert ("MISSED" in str(row)) is not met
    assert row.holds(busy=True) is (met or unit == "ms")  # a ratio means little


def test_turns_end_with_their_budget_but_not_before_the_least() -> None:
    assert list(turns(10, 0.0)) == [0, 1, 2]
    assert list(turns(5, 1e9)) == list(range(5))
    assert list(turns(1, 1e9)) == [0]


@pytest.mark.long
def test_every_figure_of_the_numbers_has_a_floor() -> None:
    rows = [
        *numbers.stepping_measurements(steps=3),
        *numbers.whole_output_measurements(256, rounds=1),
        *numbers.arithmetic_measurements(calls=5),
        *numbers.schedule_measurements(rounds=3),
        *numbers.decoding_measurements(1024, steps=3),
        *numbers.column_block_measurements(1024, seeks=2),
    ]
    assert len(rows) == 3 + 2 + 5 + 4 + 9 + 1
    for row in rows:
        assert row.figure > 0
        assert row.floor > 0
        assert row.over


class Sign(QWidget):
    """Paints two words and an image."""

    def paintEvent(self, event: QPaintEvent) -> None:
        with painting(self) as painter:
            painter.fillRect(self.rect(), 0xFFFFFFFF)
            draw(painter)


def draw(painter: QPainter) -> None:
    painter.setFont(QFont(TEXT_FAMILY, 20))
    painter.setPen(0xFF204060)
    painter.drawText(QPointF(5, 30), "one")
    painter.translate(10, 40)
    painter.drawStaticText(QPointF(5, 10), QStaticText("two"))
    image = QImage(4, 4, QImage.Format.Format_RGB32)
    image.fill(0xFF00FF00)
    painter.drawImage(QRectF(60, 0, 20, 20), image)


def test_the_floor_draws_the_very_images_and_words(qtbot: QtBot) -> None:
    pictures = []
    strokes = Strokes()
    for n in range(2):
        image = QImage(120, 90, QImage.Format.Format_RGB32)
        image.fill(0xFFFFFFFF)
        with RecordingPainter(image, strokes) if n == 0 else QPainter(image) as painter:
            if n == 0:
                draw(painter)
            else:
                strokes.paint(painter)
        pictures.append(image)
    assert len(strokes) == 3
    assert pictures[0] == pictures[1]


def test_what_widgets_draw_is_recorded_at_its_place_in_the_window(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(200, 150)
    sign = Sign(window)
    sign.setGeometry(30, 20, 120, 90)
    with recorded() as strokes:
        shown = window.grab(sign.geometry()).toImage()
        window.grab()  # a widget that is painted twice counts once
    assert len(strokes) == 3
    image = QImage(200, 150, QImage.Format.Format_RGB32)
    image.fill(0xFFFFFFFF)
    with QPainter(image) as painter:
        strokes.paint(painter)
    assert image.copy(sign.geometry()) == shown.convertToFormat(image.format())
    with recorded() as nothing:
        pass
    window.grab()
    assert not len(nothing)


@pytest.mark.long
def test_a_step_stands_beside_a_window_that_paints_the_same(qtbot: QtBot) -> None:
    row = drawn.stepping(steps=3, docks=("memory",))
    assert row.floor > 0
    assert "1 docks" in row.name


@pytest.mark.long
def test_a_bare_window_starts() -> None:
    assert drawn.start(starts=2).floor > 0


@pytest.mark.parametrize("ending", exports.READY)
def test_a_bare_encoder_writes_what_can_be_read(ending: str, tmp_path: Path, qtbot: QtBot) -> None:
    export = exports.prepared_film(tmp_path / f"a{ending}", 3, exports.SMALL)
    ready = exports.ready_frames(export.source, ending, 3)
    target = tmp_path / f"bare{ending}"
    assert exports.bare_seconds(target, ending, ready) > 0
    if ending == ".webp":  # FFmpeg writes what it cannot read
        assert target.read_bytes().count(b"ANMF") == 3
        return
    with av.open(target) as box:
        assert sum(1 for _ in box.decode(video=0)) == 3


def test_the_table_and_the_object(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        measured("seek", "ms", [0.004], [0.002], "NumPy", figure=p95, target=1),
        Measurement("memory", 10.0, "MB", 10.0, 0.0, "nothing", 9.0),
    ]
    for some, hold in ((rows[:1], True), (rows, False), (rows[::-1], False)):
        assert tell(iter(some), as_json=False) is hold
        assert capsys.readouterr().out.splitlines() == [HEADER, *map(str, some)]
    assert tell(rows, as_json=True) is False
    seek, memory = json.loads(capsys.readouterr().out)
    assert {"name": "seek", "figure": 4.0, "unit": "ms", "ratio": 2.0}.items() <= seek.items()
    assert (memory["ratio"], memory["met"]) == (None, False)
