"""Named layouts: clean screens, remembered as they were left; panels fed only while seen."""

import pytest
from PySide6.QtCore import Qt

from simulator.base.assets import LESSONS, SCENARIOS
from ui.app.start import make_window
from ui.look.layouts import AT_LEFT, LAYOUTS, layout_named
from ui.look.theme import TEXT_SCALES, THEMES
from ui.safety.settings import Settings
from ui.session.view import Need, nothing
from ui.window.main_window import FRAME
from ui.window.panel_specs import PANELS

DEMO = "causal"

SIZES = [(1280, 720), (1920, 1080), (3840, 2160)]


def seen(window) -> set[str]:
    return {spec.name for spec, dock in window.docks if dock.isVisible()}


def test_layouts_name_docks_that_exist_and_leave_none_out():
    known = {spec.name for spec in PANELS}
    used = {name for layout in LAYOUTS for name in layout.docks}
    assert used == known - set(AT_LEFT)
    assert all(len(layout.heights) == len(layout.right) for layout in LAYOUTS)


@pytest.fixture(scope="module", params=SIZES, ids=str)
def sized(request, open_for_all):
    return open_for_all("causal", request.param), request.param


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_a_layout_shows_its_docks_inside_the_window(sized, qapp, layout):
    window, size = sized
    window.desk.take(layout.name)
    qapp.processEvents()
    expected = {name for place in layout.right for name in place}
    assert expected <= seen(window) <= set(layout.docks)
    assert (window.width(), window.height()) == size
    assert window.board.isVisible() is layout.board
    assert window.board.plain is (layout.name in ("plain", "inspector"))
    fronts = [d for _, d in window.docks if not d.visibleRegion().isEmpty()]
    assert bool(fronts) is bool(layout.docks)  # Plain is the board alone
    for box in (dock.geometry() for dock in fronts):
        assert window.rect().contains(box)
        assert box.width() >= 320


@pytest.mark.long
@pytest.mark.parametrize("scale", [TEXT_SCALES[0], TEXT_SCALES[-1]])
def test_no_layout_makes_a_small_window_larger(open_window, qapp, scale):
    window = open_window("causal", (1280, 720))
    window.settings.text_scale = scale
    window.change_text(0)
    for layout in LAYOUTS:
        window.desk.take(layout.name)
        window.desk.reset()
        qapp.processEvents()
        assert window.minimumSizeHint().width() <= 1280, layout.name
        assert window.minimumSizeHint().height() <= 720, layout.name


@pytest.mark.long
def test_every_layout_fits_a_screen_of_960_by_540(open_window, qapp):
    """That is what a scale of 1.35 leaves of a small projector; a frame takes a part of it."""
    width, height = 960 - FRAME.width(), 540 - FRAME.height()
    window = open_window("flash2", (width, height))
    for layout in LAYOUTS:
        window.desk.take(layout.name)
        qapp.processEvents()
        assert (window.width(), window.height()) == (width, height), layout.name
    for lesson in ("05-online-softmax", "10-sharing-heads"):
        window.files.open_path(LESSONS / f"{lesson}.md")
        window.session.settle()
        for _ in window.lessons.player.lesson.steps:
            qapp.processEvents()
            assert (window.width(), window.height()) == (width, height), lesson
            window.lessons.player.next()
            window.session.settle()


def tabs_of(window) -> set[str]:
    """Return the docks that share the place of the online softmax."""
    return {dock.objectName() for dock in window.tabifiedDockWidgets(window.docks["softmax"])}


def test_docks_share_a_place_where_larger_text_leaves_no_room_for_all(open_window, qapp):
    window = open_window("causal", (1440, 900))
    assert tabs_of(window) == set()
    window.change_text(2)
    qapp.processEvents()
    assert tabs_of(window) == {"memory", "traffic"}
    assert window.docks["softmax"].isVisible()
    window.change_text(-2)
    qapp.processEvents()
    assert tabs_of(window) == set()
    # What the user has moved stays where it is.
    window.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, window.docks["memory"])
    window.change_text(2)
    assert window.dockWidgetArea(window.docks["memory"]) is Qt.DockWidgetArea.LeftDockWidgetArea


@pytest.mark.long
@pytest.mark.parametrize("scale", [TEXT_SCALES[0], TEXT_SCALES[-1]])
def test_a_lesson_with_large_text_fits_a_low_window(open_window, settings, qapp, scale):
    settings.text_scale = scale
    window = open_window("flash2", (1280, 720))
    window.lessons.open(LESSONS / "05-online-softmax.md")
    window.session.settle()
    for step in range(len(window.lessons.player.lesson.steps)):
        window.lessons.player.go(step)
        window.session.settle()
        qapp.processEvents()
        assert (window.width(), window.height()) == (1280, 720)


@pytest.mark.long
def test_keys_take_layouts(window, qtbot, qapp):
    for number, layout in enumerate(LAYOUTS, start=1):
        window.activateWindow()
        qtbot.keyClick(
            window, getattr(Qt.Key, f"Key_{number}"), Qt.KeyboardModifier.ControlModifier
        )
        qapp.processEvents()
        assert window.settings.layout == layout.name
        assert window.desk.actions[layout.name].isChecked()


@pytest.mark.long
def test_a_layout_is_found_as_it_was_left_and_can_be_reset(open_window, qapp):
    window = open_window("causal", (1920, 1080))
    window.docks["memory"].hide()
    window.desk.take("memory")
    window.desk.take("steps")
    qapp.processEvents()
    assert "memory" not in seen(window)
    window.desk.reset()
    qapp.processEvents()
    assert "memory" in seen(window)


def test_the_next_start_opens_the_layout_that_was_on_show(qapp, tmp_path):
    settings = Settings(tmp_path / "settings.ini")
    window = make_window(SCENARIOS / "causal.toml", settings=settings)
    window.show()
    window.desk.take("compare")
    window.close()
    again = make_window(SCENARIOS / "causal.toml", settings=Settings(tmp_path / "settings.ini"))
    again.show()
    again.session.settle()
    assert {"compare"} <= seen(again)
    assert not again.board.isVisible()
    again.close()


def test_an_unknown_layout_in_the_settings_is_the_first(tmp_path):
    settings = Settings(tmp_path / "settings.ini")
    settings.layout = "no such layout"
    assert settings.layout == LAYOUTS[0].name
    assert layout_named("no such layout") is LAYOUTS[0]


def test_a_panel_is_fed_and_styled_when_it_is_seen(window, qapp, monkeypatch):
    spec = next(spec for spec in PANELS if spec.name == "memory")
    panel = window.docks.panel("memory")
    window.docks["memory"].hide()
    before = panel.snapshot
    window.session.step()
    window.session.settle()
    assert panel.snapshot is before
    window.next_theme()
    window.docks.open("memory")
    qapp.processEvents()
    assert panel.snapshot is window.session.view.snapshot
    assert panel.style_now.theme is THEMES[window.settings.theme]
    assert spec.need.make is nothing


def test_what_a_panel_needs_is_made_only_while_it_is_wanted(session):
    made = []

    def model(trace, snapshot, report):
        made.append(snapshot.cursor)
        return snapshot.cursor

    probe = Need("probe", model)
    session.want(probe)
    session.settle()
    assert session.view.model(probe) == session.view.snapshot.cursor
    session.want(probe, False)
    session.step()
    session.settle()
    assert not session.view.has(probe)
    assert session.view.snapshot.cursor not in made
