"""Files of layers of a model in the window: each shows what it says, and nothing of another."""

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel
from safetensors.numpy import save_file

from simulator.base.assets import SCENARIOS
from tests.helpers.by_hand import retype
from ui.panels.layer.state import NO_LAYER
from ui.window.main_window import MainWindow

SENTENCE = (
    "After attention the recorded layer gates O. "
    "Do not take O of this run for what its output projection W_O is given."
)
CHIP = "the layer gates O before W_O"


def save(path: Path, gated: bool = False, **texts: str) -> Path:
    rng = np.random.default_rng(3)
    shapes = {"q": (4, 13, 8), "k": (2, 13, 8), "v": (2, 13, 8)}
    tensors = {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}
    if gated:
        texts["after"] = "gates O"  # without the gate: with it, runs apply it
    save_file(tensors, path, {"model": "local and global", "causal": "true", **texts})
    return path


def take(window: MainWindow, path: Path) -> None:
    """Open a file as a drop on the window does."""
    window.files.open_by_hand(path)
    window.session.settle()


def chips(window: MainWindow) -> str:
    return window.header.chips.accessibleDescription()


def told(window: MainWindow) -> bool:
    """Whether the form of the scenario says it."""
    window.docks.open("scenario")
    labels = window.docks.panel("scenario").findChildren(QLabel)
    return any(label.isVisible() and label.text() == SENTENCE for label in labels)


def window_field(window: MainWindow) -> str:
    """Return what the form says of the window."""
    window.docks.open("scenario")
    edit = window.docks.panel("scenario").fields["mask.window"].editor
    return edit.text() or edit.placeholderText()


@pytest.mark.parametrize("demo", ["flash2", "window-sinks"])
def test_each_of_two_layers_shows_its_own_window(open_window, tmp_path, demo):
    window = open_window(demo, (1280, 720))
    local = save(tmp_path / "layer-0.safetensors", layer="0", window="4", softcap="30")
    whole = save(tmp_path / "layer-1.safetensors", layer="1")
    for path, size in ((local, 4), (whole, 0), (local, 4)):
        take(window, path)
        w = window.session.trace.workload
        assert w.file.path == path
        assert (w.mask.window, w.mask.sinks, w.mask.causal) == (size, 0, True)
        assert w.scoring.softcap == (30.0 if size else 0.0)
        assert ("window 4" in chips(window)) == bool(size)
        assert window_field(window) == ("4 from input" if size else "0: no window")
    window.actions_by_name["undo"].trigger()
    window.session.settle()
    assert window.session.trace.workload.mask.window == 0
    assert "window" not in chips(window)


def test_what_was_switched_off_for_one_layer_is_on_for_the_next(open_window, tmp_path):
    window = open_window("flash2", (1280, 720))
    first = save(tmp_path / "layer-0.safetensors", layer="0", window="4")
    second = save(tmp_path / "layer-2.safetensors", layer="2", window="6")
    take(window, first)
    window.docks.open("scenario")
    editor = window.docks.panel("scenario").fields["mask.window"].editor
    retype(editor, "0\r")
    window.session.settle()
    assert window.session.trace.workload.mask.window == 0
    take(window, second)
    assert window.session.trace.workload.mask.window == 6


def test_numbers_of_no_model_take_the_mask_that_is_there(open_window, tmp_path):
    window = open_window("window-sinks", (1280, 720))
    before = window.session.trace.workload.mask.window
    rng = np.random.default_rng(0)
    path = tmp_path / "mine.npz"
    np.savez(path, **{n: rng.standard_normal((2, 9, 4)).astype(np.float32) for n in "qkv"})
    take(window, path)
    assert window.session.trace.workload.mask.window == before > 0


@pytest.mark.long
def test_what_the_layer_does_to_o_is_said_while_its_file_is_shown(open_window, tmp_path):
    window = open_window("flash2", (1280, 720))
    gated = save(tmp_path / "gated.safetensors", gated=True)
    plain = save(tmp_path / "plain.safetensors")
    layer = window.docks.panel("layer")
    for path, says in ((gated, True), (plain, False), (gated, True)):
        take(window, path)
        assert (CHIP in chips(window)) == says
        assert told(window) == says
        window.docks.open("layer")
        window.session.settle()
        assert layer.accessibleDescription().startswith(NO_LAYER)
        assert (SENTENCE in layer.accessibleDescription()) == says
    window.files.open_path(SCENARIOS / "causal.toml")
    window.session.settle()
    assert CHIP not in chips(window)
    assert not told(window)


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("size", [(1024, 720), (1280, 720)])
@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_the_chip_has_room_before_others(open_window, settings, tmp_path, size, scale):
    settings.text_scale = scale
    window = open_window("flash2", size)
    take(window, save(tmp_path / "gated.safetensors", gated=True))
    assert CHIP not in [chip.words[0] for chip in window.header.chips.left_out]
