"""Ticks on a sound device: one of the library's own, which plays to nobody, in real time."""

import contextlib
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.waiting import wait_until
from ui.export.sound import Landing, Sound
from ui.session.speaker import Mixer, NoSoundError, Speaker
from ui.session.ticks import LENGTH, RATE, tick

pytest.importorskip("miniaudio")

ELSEWHERE = "ALSA" if sys.platform == "win32" else "WASAPI"
"""A kind of device that another system has."""


def threads() -> int:
    """Return how many threads the process has, those of libraries included."""
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.parametrize("period", [64, 960, 1000])
def test_what_is_mixed_is_what_a_film_has(period):
    asked = {0: ["Q", "K"], 3: ["V"], 5: ["K"]}
    mixer, parts = Mixer(), []
    for n in range(2 * RATE // period):
        for tensor in asked.get(n, []):
            mixer.play(tensor)
        parts.append(mixer.samples(period))
    film = Sound(Landing(n * period / RATE, name) for n, names in asked.items() for name in names)
    heard = np.concatenate(parts)
    assert np.allclose(heard, film.samples(0, len(heard)), atol=1e-6)
    assert heard.any()
    assert mixer.silent


def test_a_device_plays_all_that_it_is_asked_to():
    speaker = Speaker("NULL")
    assert speaker.silent
    speaker.play("K")
    speaker.play("V")
    assert not speaker.silent
    wait_until(lambda: speaker.silent)
    speaker.close()
    speaker.play("K")
    time.sleep(0.1)
    assert not speaker.silent, "a device that is closed plays no more"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
def test_its_thread_ends_with_it(capfd):
    Speaker("NULL").close()
    before = threads()
    for _ in range(20):
        speaker = Speaker("NULL")
        assert threads() > before
        speaker.play("Q")
        speaker.close()
        wait_until(lambda: threads() == before)
    assert capfd.readouterr() == ("", "")


def test_it_can_be_closed_twice_and_from_another_thread():
    speaker = Speaker("NULL")
    other = threading.Thread(target=speaker.close)
    other.start()
    other.join(10)
    assert not other.is_alive()
    speaker.close()


def test_where_there_is_no_device_it_says_so_in_one_line(capfd):
    with pytest.raises(NoSoundError) as told:
        Speaker(ELSEWHERE)
    assert str(told.value).startswith("No sound: ")
    assert "\n" not in str(told.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ALSA is Linux's")
def test_alsa_prints_nothing_whether_it_has_a_device_or_not(capfd):
    with contextlib.suppress(NoSoundError):
        Speaker("ALSA").close()
    assert capfd.readouterr() == ("", "")


def test_a_tick_is_as_long_as_it_says():
    wave = tick("Q")
    assert len(wave) == round(LENGTH * RATE)
    assert abs(wave[-1]) < 1e-3
    assert np.abs(wave).max() < 1
