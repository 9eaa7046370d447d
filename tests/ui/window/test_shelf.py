"""Panels that nobody sees leave the window, and come back as if they had never been away."""

from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QLineEdit, QWidget

from simulator.base.assets import SCENARIOS
from ui.app.start import make_window

SEEN_LATE = ("scenario", "formula", "exactness", "heads", "sweep", "cache")


def are_away(window, *panels):
    """Return whether panels are neither in their docks nor anywhere else in the window."""
    return not any(window.isAncestorOf(panel) for panel in panels)


def test_panels_that_were_away_are_as_those_made_anew(open_window, settings, qapp, qtbot):
    """Even after a change of theme, text scale and scenario meanwhile."""
    QCursor.setPos(-50, -50)  # a test before may have left it where a field now comes
    early = open_window()
    for name in SEEN_LATE:
        early.docks.open(name)
        qapp.processEvents()
        early.docks[name].close()
    panels = [early.docks.panel(name) for name in SEEN_LATE]
    before = len(early.findChildren(QWidget))
    qtbot.waitUntil(lambda: are_away(early, *panels))
    assert len(early.findChildren(QWidget)) < before / 2
    late = open_window()
    settings.theme, settings.text_scale = "light", 1.25
    pictures, forms = [], []
    for window in (early, late):
        window.apply_style()
        window.files.choose_algorithm("flash1")
        window.session.settle()
        for name in SEEN_LATE:
            window.docks[name].show()
            window.docks[name].setFloating(True)
            window.docks[name].resize(700, 500)
        window.session.settle()
        for _ in range(4):  # scroll bars take their place some rounds after the last work
            qapp.processEvents()
        pictures.append([window.docks.panel(name).grab().toImage() for name in SEEN_LATE[1:]])
        editors = window.docks.panel(SEEN_LATE[0]).findChildren(QLineEdit)
        forms.append([(e.text(), e.font(), e.palette(), e.size()) for e in editors])
    for name, one, other in zip(SEEN_LATE[1:], *pictures, strict=True):
        assert one == other, name
    assert forms[0] == forms[1]


def test_a_panel_behind_a_tab_goes_and_leaves_its_room(open_window, qapp, qtbot):
    window = open_window("causal", (1280, 720))
    window.desk.take("algorithm")
    window.session.settle()
    formula, values = window.docks.panel("formula"), window.docks.panel("values")
    qapp.processEvents()

    def room():
        return window.minimumSizeHint(), window.docks["code"].geometry(), window.board.geometry()

    was, place = room(), formula.geometry()
    qtbot.waitUntil(lambda: are_away(window, values))
    qapp.processEvents()
    assert room() == was
    assert window.isAncestorOf(formula)
    window.docks["values"].raise_()
    qapp.processEvents()
    assert values.isVisible()
    assert values.geometry() == place
    qtbot.waitUntil(lambda: are_away(window, formula))
    assert room() == was


def test_a_panel_that_is_away_ends_with_its_window(qapp, settings, qtbot):
    window = make_window(SCENARIOS / "flash2.toml", settings=settings)
    window.show()
    window.docks.open("sweep")
    window.docks["sweep"].close()
    panel = window.docks.panel("sweep")
    qtbot.waitUntil(lambda: are_away(window, panel))
    with qtbot.waitSignal(panel.destroyed):
        window.close()
        window.deleteLater()
