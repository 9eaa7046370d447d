"""Docks keep their shares of the window, those that the user chose too, and not their pixels."""

import pytest
from PySide6.QtCore import QPoint, Qt

from simulator.base.assets import LESSONS, SCENARIOS
from ui.app.start import make_window
from ui.look.layouts import AT_MOST, BESIDE, LAYOUTS
from ui.safety.settings import Settings

DEMO = "causal"

SMALL, LARGE = (1280, 720), (3840, 2160)
WIDE_ENOUGH = (1760, 990)
"""A window of 16 : 9 in which docks at the right stand above each other, wider than their least."""


def in_sight(window) -> set[str]:
    """Return the docks that are open and not behind a tab."""
    return {spec.name for spec, dock in window.docks if not dock.visibleRegion().isEmpty()}


def shares(window) -> dict[str, tuple[float, float]]:
    """Return the docks in sight: shares of the window's width, and of the height between bars."""
    sizes = {name: window.docks[name].size() for name in in_sight(window)}
    top = window.header.mapTo(window, QPoint(0, window.header.height())).y()
    wide, high = (
        window.width() - window.rail.width(),
        window.transport.mapTo(window, QPoint()).y() - top,
    )
    return {name: (size.width() / wide, size.height() / high) for name, size in sizes.items()}


def resize(window, qapp, size) -> None:
    """Resize a window; text as large as it was keeps it from being small at once."""
    for _ in range(2):
        window.resize(*size)
        qapp.processEvents()
    assert (window.width(), window.height()) == size


def drag(window, qtbot, start: QPoint, by: QPoint) -> None:
    """Drag the line between docks as a hand does."""
    qtbot.mouseMove(window, start)
    qtbot.mousePress(window, Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(window, start + by)
    qtbot.wait(20)
    qtbot.mouseRelease(window, Qt.MouseButton.LeftButton, pos=start + by)
    qtbot.wait(20)


def about(share: tuple[float, float]) -> object:
    """Lines and tabs between docks have a larger share of a small window."""
    return pytest.approx(share, abs=0.03)


@pytest.mark.long
def test_docks_keep_their_shares_when_the_window_grows_and_shrinks(open_window, qapp):
    window = open_window("causal", WIDE_ENOUGH)
    for layout in LAYOUTS:
        window.desk.take(layout.name)
        qapp.processEvents()
        small = shares(window)
        resize(window, qapp, LARGE)
        large = shares(window)
        assert large == {name: about(share) for name, share in small.items()}, layout.name
        for name in layout.stack:
            if name in large and layout.board:
                assert large[name][0] == pytest.approx(layout.width, abs=0.01)
        resize(window, qapp, WIDE_ENOUGH)
        again = shares(window)
        assert again == {name: pytest.approx(share, abs=0.01) for name, share in small.items()}


def test_what_was_dragged_keeps_its_share_in_any_window(window, qapp, qtbot, settings):
    window.desk.take("algorithm")
    qapp.processEvents()
    code = window.docks["code"].geometry()
    drag(window, qtbot, QPoint(code.left() - 3, code.center().y()), QPoint(-120, 0))
    code = window.docks["code"].geometry()
    line = window.docks["formula"].geometry().top() - 30  # tabs stand in between
    drag(window, qtbot, QPoint(code.center().x(), (code.bottom() + line) // 2), QPoint(0, 60))
    dragged = shares(window)
    assert dragged["code"][0] == pytest.approx(AT_MOST + 120 / 1384, abs=0.01)
    assert dragged["code"][1] > code.height() / 900 + 0.05
    wanted = {name: about(share) for name, share in dragged.items()}
    resize(window, qapp, LARGE)
    assert shares(window) == wanted
    window.desk.take("steps")
    window.desk.take("algorithm")
    qapp.processEvents()
    assert shares(window) == wanted
    window.close()
    again = make_window(
        SCENARIOS / "causal.toml", settings=Settings(settings.folder / "settings.ini")
    )
    again.resize(1600, 900)
    again.show()
    again.resize(1600, 900)
    again.session.settle()
    assert shares(again) == wanted
    again.desk.reset()
    qapp.processEvents()
    assert shares(again)["code"][0] == pytest.approx(AT_MOST, abs=0.01)
    again.close()


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    "text", ["", "[", "[1, 2, 3]", '[{"code": "x"}, {}, false]', "[[], [], 0]"]
)
def test_shares_that_make_no_sense_say_nothing(open_window, qapp, settings, text):
    settings.save_shares("steps", text)
    window = open_window("causal", (1440, 900))
    qapp.processEvents()
    assert shares(window)["softmax"][0] == pytest.approx(BESIDE, abs=0.01)


@pytest.mark.long
@pytest.mark.parametrize("layout", ["steps", "algorithm", "cache"])
def test_a_panel_opens_large_and_gives_its_room_back(open_window, qapp, layout):
    window = open_window("causal", SMALL)
    window.desk.take(layout)
    qapp.processEvents()
    before = shares(window)
    for name in ("inspector", "compare", "exactness", "sqrt_d"):
        window.docks.actions[name].trigger()
        window.session.settle()
        qapp.processEvents()
        width, height = shares(window)[name]
        assert width >= (BESIDE if name in ("sqrt_d", "exactness") else AT_MOST) - 0.01, name
        assert height >= 0.5, name
        window.docks.actions[name].trigger()
        qapp.processEvents()
        after = shares(window)
        assert after == {name: pytest.approx(share, abs=0.01) for name, share in before.items()}


@pytest.mark.long
def test_the_scenario_opens_at_the_left_in_every_layout(window, qapp):
    for layout in LAYOUTS:
        window.desk.take(layout.name)
        window.docks["scenario"].show()
        qapp.processEvents()
        form = window.docks["scenario"].geometry()
        assert form.left() == window.rail.width(), layout.name
        assert 230 <= form.width() <= 330, layout.name


def test_a_pinned_cell_is_shown_in_front(open_window, qapp):
    window = open_window("causal", SMALL)
    window.session.step()
    window.session.settle()
    window.session.move_selection(1, 0)
    window.session.settle()
    window.actions_by_name["pin_cell"].trigger()
    qapp.processEvents()
    assert "values" in in_sight(window)
    assert shares(window)["values"][1] >= 0.35


def test_a_lesson_shows_in_a_large_window_what_its_step_needs(open_window, qapp):
    window = open_window("flash2", (1920, 1080))
    window.docks.open("scenario")
    window.docks.open("traffic")
    qapp.processEvents()
    assert in_sight(window) == {"scenario", "traffic", "softmax"}
    window.lessons.open(LESSONS / "05-online-softmax.md")
    window.session.settle()
    qapp.processEvents()
    assert window.desk.lent[0] == "steps"
    assert in_sight(window) == {"memory", "softmax"}
    window.desk.lend("steps", "traffic")
    qapp.processEvents()
    assert in_sight(window) == {"softmax", "traffic"}
    window.desk.lend("steps", "scenario")
    qapp.processEvents()
    assert in_sight(window) == {"memory", "softmax", "scenario"}
    window.lessons.player.leave()
    window.session.settle()
    qapp.processEvents()
    assert in_sight(window) == {"scenario", "traffic", "softmax"}


@pytest.mark.long
def test_text_twice_as_large_and_back_leaves_no_tabs_behind(window, qapp):
    """In layouts too that were first seen, or left, while the text was large."""
    window.change_text(4)
    for layout in LAYOUTS:
        window.desk.take(layout.name)
        qapp.processEvents()
    window.change_text(-4)
    for layout in LAYOUTS:
        window.desk.take(layout.name)
        qapp.processEvents()
        fronts = {place[0] for place in layout.right}
        assert fronts <= in_sight(window), layout.name
        if layout.right:
            docks = [window.docks[name].geometry() for name in fronts]
            filled = sum(dock.height() for dock in docks) + 40 * len(docks)
            assert filled >= window.height() - 200, layout.name


def test_tabs_of_a_low_window_part_when_it_grows(open_window, qapp):
    window = open_window("causal", (1280, 640))
    qapp.processEvents()
    assert in_sight(window) == {"softmax"}
    resize(window, qapp, (1280, 900))
    assert in_sight(window) == {"memory", "softmax"}
    window.docks.open("inspector")
    resize(window, qapp, (1280, 640))
    assert in_sight(window) == {"inspector"}
