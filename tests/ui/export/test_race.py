"""The race as stills and films: times scaled to the film, frames by their number alone."""

from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtGui import QImage

from simulator.base.assets import SCENARIOS
from simulator.base.errors import InputError
from simulator.problem.scenario import load_scenario, save_scenario, with_values
from simulator.run.trace import simulate
from simulator.study.race import FILM_SECONDS, FINISH_SECONDS, START_SECONDS, race_of
from tests.ui.export.helpers import (
    DEMO,
    decoded,
    demo,
    frames_of,
    make,
    options,
    picture,
    prepared,
    still,
)
from ui.export.dialog import ExportDialog
from ui.export.frames import new_image, paint_frame
from ui.export.race_frames import race_times
from ui.export.writers.metadata import read_note, read_scenario

PROGRAM = demo().program
RACES = "batch", "flash2-backward", "gla", "linear", "mla", "real-scale", "split-kv"
"""Demos whose races differ: in who runs, in what is modelled, in their length."""


@pytest.mark.parametrize(("length", "fps"), [(None, 30), (4.0, 60), (60.0, 5), (2.0, 7)])
def test_simulated_time_is_scaled_to_the_film(length: float | None, fps: int) -> None:
    times = race_times(PROGRAM, film=True, fps=fps, length=length)
    long = length or FILM_SECONDS
    assert times.frames == round(long * fps)
    told = [times.seconds(k) for k in range(times.frames)]
    assert told[0] == 0
    assert told[-1] == race_of(PROGRAM).seconds
    assert all(one <= two for one, two in pairwise(told))
    still_there = sum(seconds == told[-1] for seconds in told) / fps
    assert still_there == pytest.approx(long * FINISH_SECONDS / FILM_SECONDS, abs=2 / fps)
    at_the_start = sum(seconds == 0 for seconds in told) / fps
    assert at_the_start == pytest.approx(long * START_SECONDS / FILM_SECONDS, abs=2 / fps)
    steps = {round(two - one, 12) for one, two in pairwise(told) if one > 0 and two < told[-1]}
    assert max(steps) == pytest.approx(min(steps)), "the clock goes evenly"


def test_a_film_is_as_long_as_it_says(tmp_path) -> None:
    export = make(options(tmp_path / "a.mp4", scene="race", length=None, fps=2))
    assert export.words == "16 frames, 8.0 s at 2 fps, on H100-SXM"
    assert len(decoded(tmp_path / "a.mp4")) == 16


def test_a_frame_depends_on_its_number_alone(tmp_path) -> None:
    make(options(tmp_path / "a.apng", scene="race"))
    film = frames_of(tmp_path / "a.apng")
    source = prepared(options(tmp_path / "b.apng", scene="race")).source
    for k in (11, 3, 7, 0, 7):
        image = paint_frame(source, k, new_image(source))
        image.save(str(tmp_path / "k.png"))
        np.testing.assert_array_equal(picture(tmp_path / "k.png"), film[k][..., :3])
    assert len({source.key(k) for k in range(len(source))}) > 6


def test_a_still_is_the_finish_and_reads_back(tmp_path) -> None:
    export = make(still(tmp_path / "a.png", scene="race"))
    assert export.words.startswith("the finish of the race on H100-SXM")
    make(options(tmp_path / "a.apng", scene="race"))
    np.testing.assert_array_equal(
        picture(tmp_path / "a.png"), frames_of(tmp_path / "a.apng")[-1][..., :3]
    )
    assert read_scenario(tmp_path / "a.png") == load_scenario(DEMO)
    assert "--scene race" in read_note(tmp_path / "a.png").command


def test_it_can_be_without_a_ground(tmp_path) -> None:
    make(still(tmp_path / "a.png", scene="race", transparent=True))
    assert QImage(str(tmp_path / "a.png")).pixelColor(0, 0).alpha() == 0


@pytest.mark.long
def test_a_fault_is_named_above_it(tmp_path) -> None:
    faulty = with_values(load_scenario(DEMO), {"faults": {"forget_alpha": True}})
    path = tmp_path / "faulty.toml"
    save_scenario(faulty, path)
    make(still(tmp_path / "a.png", scene="race"), simulate(path))
    make(still(tmp_path / "b.png", scene="race"))
    assert (picture(tmp_path / "a.png") != picture(tmp_path / "b.png")).any()


def test_a_still_has_no_op(tmp_path) -> None:
    with pytest.raises(InputError, match=r"--op.*a race shows the whole runs"):
        still(tmp_path / "a.png", scene="race", op=2).check()


@pytest.mark.long
@pytest.mark.parametrize("name", RACES)
def test_every_kind_of_run_can_race(name, tmp_path) -> None:
    source = prepared(
        still(tmp_path / "a.png", scene="race"), simulate(SCENARIOS / f"{name}.toml")
    ).source
    image = paint_frame(source, 0, new_image(source))
    assert len({image.pixel(x, 160) for x in range(480)}) > 3


@pytest.mark.long
def test_the_dialog_makes_the_film_of_the_command(open_window, qtbot, tmp_path) -> None:
    window = open_window("causal")
    window.actions_by_name["export"].trigger()
    dialog = window.findChild(ExportDialog)
    dialog.scene_box.setCurrentText("Race of the whole runs")
    dialog.target_edit.setText(f"{tmp_path}/a.png")
    dialog.format_box.setCurrentText("PNG picture")
    assert not dialog.range_box.isEnabled()
    assert dialog.words.text().startswith("The finish of the race on H100-SXM")
    dialog.format_box.setCurrentText("Animated PNG")
    dialog.size_box.setCurrentText("480x320")
    dialog.fps_box.setValue(2)
    assert not dialog.step_box.isEnabled()
    assert dialog.pace_box.currentText() == "8 seconds in all"
    assert dialog.words.text().startswith("16 frames, 8.0 s at 2 fps")
    dialog.export_button.click()
    qtbot.waitUntil(lambda: dialog.running is None, timeout=60_000)
    assert dialog.words.text().startswith("Written")
    make(options(tmp_path / "b.apng", scene="race", fps=2, length=None))
    for one, two in zip(
        frames_of(tmp_path / "a.apng"), frames_of(tmp_path / "b.apng"), strict=True
    ):
        np.testing.assert_array_equal(one, two)
    dialog.close()
