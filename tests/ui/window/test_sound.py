"""View, Sound: off, remembered, and its device is open as long as the window wants it."""

import sys
from pathlib import Path

import pytest

from simulator.base.assets import SCENARIOS
from ui.safety.settings import Settings
from ui.session.session import Session
from ui.widgets.message_bar import MessageKind
from ui.window.main_window import MainWindow

pytest.importorskip("miniaudio")

ELSEWHERE = "ALSA" if sys.platform == "win32" else "WASAPI"
"""A kind of device that another system has."""


def test_it_is_off_and_nothing_is_opened(open_window):
    window = open_window("causal")
    assert not window.settings.sound
    assert not window.actions_by_name["set_sound"].isChecked()
    assert window.sound.speaker is None


def test_the_menu_turns_it_on_and_off_and_it_is_remembered(open_window):
    window = open_window("causal")
    window.sound.backend = "NULL"
    action = window.actions_by_name["set_sound"]
    assert action in window.menus["View"].actions()
    action.trigger()
    window.session.settle()
    assert window.sound.speaker is not None
    assert Settings(Path(window.settings.folder / "settings.ini")).sound
    action.trigger()
    window.session.settle()
    assert window.sound.speaker is None
    assert not window.settings.sound


def test_it_comes_with_the_first_view_and_goes_with_the_window(qapp, settings):
    settings.sound = True
    window = MainWindow(Session("numpy"), settings)
    window.sound.backend = "NULL"
    assert window.actions_by_name["set_sound"].isChecked()
    window.session.settle()
    assert window.sound.speaker is None, "the start of the window does not wait for it"
    window.session.open(SCENARIOS / "causal.toml")
    window.session.settle()
    assert window.sound.speaker is not None
    window.close()
    assert window.sound.speaker is None
    assert settings.sound
    window.deleteLater()


def test_where_there_is_no_device_the_window_says_so_and_it_goes_off(open_window):
    window = open_window("causal")
    window.sound.backend = ELSEWHERE
    window.actions_by_name["set_sound"].trigger()
    window.session.settle()
    assert window.messages.kind is MessageKind.REFUSAL
    assert window.messages.text().startswith("No sound: ")
    assert not window.actions_by_name["set_sound"].isChecked()
    assert not window.settings.sound
    assert not window.sound.on
