"""The first page: its table, its keys, what it opens, and when it goes."""

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QRectF, QSize, QSizeF, Qt
from PySide6.QtTest import QTest

from simulator.base.assets import LESSONS, SCENARIOS
from simulator.lesson.course import course, parts
from tests.helpers.waiting import wait_until
from ui.app.start import make_window
from ui.kit.shapes import Text
from ui.look.theme import DARK, THEMES, Style, growth
from ui.safety.settings import Settings
from ui.window.cover import in_sight
from ui.window.cover_scene import CoverScene
from ui.window.main_window import MainWindow, first_size
from ui.window.welcome.entries import PageEntry, entries_of
from ui.window.welcome.page import WelcomePage
from ui.window.welcome.scene import picture_places, welcome_scene

pytestmark = pytest.mark.usefixtures("qapp")
Key = Qt.Key
ENTRIES = entries_of(parts())
SIZES = ((1280, 696), (1536, 840), (1920, 1056), (3840, 2136), (1024, 700), (3440, 1416))


@pytest.fixture
def started(qapp, settings: Settings) -> Iterator[MainWindow]:
    """A window as it starts when it is told nothing."""
    window = make_window(None, "numpy", settings)
    window.resize(1280, 720)
    window.show()
    window.session.settle()
    yield window
    window.close()
    window.deleteLater()


def wait(holds: Callable[[], object]) -> None:
    wait_until(holds, QTest.qWait)


def page_of(window: MainWindow) -> WelcomePage:
    assert isinstance(window.cover, WelcomePage)
    return window.cover


def places(size: tuple[int, int], text: float = 1.0, scrolled: float = 0.0) -> CoverScene:
    style = Style(DARK, text * growth(*size))
    return welcome_scene(ENTRIES, parts(), style, QSizeF(*size)).moved(scrolled)


def rects(found: CoverScene) -> dict[int, QRectF]:
    return found.still | found.rows


def number_of(name: str, entries: tuple[PageEntry, ...] = ENTRIES) -> int:
    """Return the number of the row of a lesson."""
    found = (n for n, each in enumerate(entries) if each.role == "lesson" and each.path)
    return next(n for n in found if entries[n].path.stem.endswith(name))


def press(window: MainWindow, *keys: Qt.Key) -> None:
    for key in keys:
        QTest.keyClick(window.focusWidget() or window, key)
    window.session.settle()


# --- the table ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", [1.0, 1.5])
def test_every_place_is_inside_and_none_overlap(size, text):
    found = places(size, text)
    assert sorted(rects(found)) == list(range(len(ENTRIES)))
    seen = [rect.intersected(found.area) for rect in found.rows.values()]
    boxes = [*found.still.values(), *(rect for rect in seen if not rect.isEmpty())]
    for rect in boxes:
        assert rect.left() >= 0
        assert rect.top() >= 0
        assert rect.right() <= size[0]
        assert rect.bottom() <= size[1]
    for one, other in combinations(boxes, 2):
        shared = one.intersected(other)
        assert shared.width() * shared.height() < 1, (one, other)
    cards = [found.still[n] for n in range(3)]
    for card, picture in zip(cards, picture_places(found), strict=True):
        assert card.contains(picture)
        assert picture.height() >= 0.25 * card.height() or text > 1


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
def test_every_row_comes_into_sight_whole(size):
    for number, whole in places(size).rows.items():
        found = places(size, 1.0, in_sight(places(size), number, 0.0))
        rect = found.rows[number].intersected(found.area)
        assert abs(rect.height() - whole.height()) < 1


def test_at_1920_by_1080_nothing_is_scrolled():
    assert places((1920, 1056)).most == 0
    assert places((1280, 696)).most > 0


def said_in(found: CoverScene) -> list[str]:
    return [box.words for box, _ in found.frame.placed if isinstance(box, Text)]


def test_small_windows_have_two_columns_and_cards_without_words():
    small, large = places((1280, 696)), places((1920, 1056))
    assert ENTRIES[1].words in said_in(large)
    assert ENTRIES[1].words not in said_in(small)
    assert len({round(rect.x()) for rect in small.rows.values()}) == 2
    assert len({round(rect.x()) for rect in large.rows.values()}) == 4
    assert 380 <= small.still[0].width() <= 390
    assert 570 <= large.still[0].width() <= 590


def test_the_table_says_what_each_is_and_does():
    said = [entry.said for entry in ENTRIES]
    assert len(set(said)) == len(said)
    assert [entry.key for entry in ENTRIES if entry.key] == ["1", "2", "3", "4", "Ctrl+K"]
    for entry in ENTRIES:
        assert len(entry.tip) > len("Opens the lesson: ")
        assert entry.role == "search" or "→" in entry.tip
    assert ENTRIES[0].said == (
        "Attention in three tokens, 4 minutes, linear algebra, "
        "Every number in sight: X, Q, K, V, weights, O, key 1"
    )
    assert "for lecturers" in ENTRIES[2].said


def test_the_cards_are_the_three_ways_in_and_the_rows_the_course():
    files = [entry.path.stem for entry in ENTRIES[:3] if entry.path]
    assert files == ["13-whole-layer", "12-one-minute", "31-give-a-talk"]
    rows = [entry.path for entry in ENTRIES if entry.role == "lesson"]
    assert rows == [lesson.path for lesson in course()]
    assert ENTRIES[-1].role == "search"


def test_arrows_go_to_the_nearest():
    found = places((1920, 1056))
    first = next(n for n, entry in enumerate(ENTRIES) if entry.role == "lesson")
    assert found.neighbour(0, 0, 1) == first
    assert found.neighbour(first, 0, 1) == first + 1
    assert found.neighbour(first, 0, -1) == 0
    second = number_of("one-minute")
    assert found.neighbour(second, -1, 0) == first
    assert found.neighbour(first, -1, 0) == first


# --- later starts ---------------------------------------------------------------------------


def test_the_lesson_that_was_left_goes_on_where_it_was():
    card, *rest = entries_of(parts(), ("05-online-softmax", 4), ["01-soft-lookup"])
    assert card.title == "Continue: Online softmax, step 5"
    assert (card.path, card.step) == (LESSONS / "05-online-softmax.md", 4)
    assert 0 < card.minutes < 8
    assert [entry.path.stem for entry in rest if entry.done] == ["01-soft-lookup"]


def test_after_a_whole_lesson_comes_the_next():
    card = entries_of(parts(), ("05-online-softmax", 7), ["05-online-softmax"])[0]
    assert card.title == "Next: FlashAttention-1"
    last = course()[-1].path.stem
    assert entries_of(parts(), (last, 8), [last])[0].title == "Attention in three tokens"


@pytest.mark.parametrize("place", [("gone", 1), ("05-online-softmax", 99)])
def test_a_place_that_is_no_more_does_no_harm(place):
    card = entries_of(parts(), place)[0]
    assert card.title in ("Attention in three tokens", "Next: FlashAttention-1")


@pytest.mark.long
def test_a_lesson_notes_how_far_it_was_seen(open_window, settings):
    window = open_window()
    player = window.lessons.player
    window.lessons.open(LESSONS / "05-online-softmax.md", 3)
    wait(lambda: player.whole and player.step_number == 3)
    assert settings.lesson_place == ("05-online-softmax", 3)
    assert settings.lessons_done == []
    player.go(99)
    wait(lambda: player.whole and player.step_number == 7)
    assert settings.lessons_done == ["05-online-softmax"]


# --- keys -----------------------------------------------------------------------------------


def test_the_first_key_opens_the_first_step(started):
    press(started, Key.Key_Right)
    player = started.lessons.player
    assert player.path == LESSONS / "13-whole-layer.md"
    wait(lambda: player.step_number == 0)
    assert started.cover is None


def test_numbers_choose_and_enter_opens(started):
    page = page_of(started)
    press(started, Key.Key_3)
    assert page.focused == 2
    assert "Give a talk" in page.accessibleDescription()
    press(started, Key.Key_Backtab, Key.Key_Return)
    assert started.lessons.player.path == LESSONS / "12-one-minute.md"


@pytest.mark.long
def test_tab_goes_round(started):
    page = page_of(started)
    seen = []
    for _ in page.entries:
        seen.append(page.focused)
        press(started, Key.Key_Tab)
    assert seen == list(range(len(page.entries)))
    assert page.focused == 0


@pytest.mark.long
def test_continue_opens_the_step(qapp, settings):
    settings.lesson_place = "05-online-softmax", 4
    window = make_window(None, "numpy", settings)
    window.show()
    window.session.settle()
    press(window, Key.Key_Return)
    player = window.lessons.player
    wait(lambda: player.step_number == 4)
    assert player.path == LESSONS / "05-online-softmax.md"
    window.close()


@pytest.mark.long
def test_keys_of_what_is_covered_do_nothing(started):
    before = started.session.cursor, {name: d.isVisible() for (name, d) in docks(started)}
    press(started, Key.Key_2, Key.Key_P, Key.Key_W, Key.Key_7, Key.Key_Space, Key.Key_Tab)
    # Space has opened the card: it is the only one that goes anywhere.
    assert started.lessons.player.path == LESSONS / "12-one-minute.md"
    started.lessons.player.leave()
    started.session.settle()
    assert (started.session.cursor, {n: d.isVisible() for (n, d) in docks(started)}) == before


def docks(window: MainWindow):
    return [(spec.name, dock) for spec, dock in window.docks]


# --- hand -----------------------------------------------------------------------------------


@pytest.mark.long
def test_a_click_opens_and_the_pointer_shows_a_picture(started):
    page = page_of(started)
    wait(lambda: page.ready)
    card = picture_places(page.places)[0].toRect()
    before = page.grab(card).toImage()
    number = number_of("causal-mask", page.entries)
    page.choose(number)
    at = page.places.rows[number].center().toPoint()
    page.choose(0)
    assert page.grab(card).toImage() == before
    QTest.mouseMove(page, at)
    wait(lambda: page.hovered == number and page.ready)
    assert page.grab(card).toImage() != before
    QTest.mouseMove(page, QPoint(2, 2))
    wait(lambda: page.hovered is None)
    assert page.grab(card).toImage() == before
    QTest.mouseClick(page, Qt.MouseButton.LeftButton, pos=at)
    started.session.settle()
    assert started.lessons.player.path == LESSONS / "03-causal-mask.md"


# --- when it is there -----------------------------------------------------------------------


def test_every_start_that_names_nothing_begins_with_it(qapp, settings):
    for _ in range(2):
        window = make_window(None, "numpy", settings)
        window.show()
        window.session.settle()
        assert page_of(window).isVisible()
        assert window.session.path == SCENARIOS / "flash2.toml"
        window.close()


def test_a_file_or_a_lesson_that_is_named_is_shown_instead(qapp, settings):
    for path in (SCENARIOS / "naive.toml", LESSONS / "05-online-softmax.md"):
        window = make_window(path, "numpy", settings)
        window.session.settle()
        assert window.cover is None
        window.close()


def show_demo(window: MainWindow) -> None:
    window.files.open_path(SCENARIOS / "causal.toml")


def take_layout(window: MainWindow) -> None:
    window.desk.actions["memory"].trigger()


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize(
    "act",
    [
        show_demo, take_layout, lambda w: w.actions_by_name["present"].setChecked(True),
        lambda w: press(w, Key.Key_Escape), lambda w: w.docks.actions["code"].trigger(),
    ],
)  # fmt: skip
def test_it_goes_when_something_else_is_wanted_and_help_brings_it_back(started, act):
    corner = started.menuBar().cornerWidget()
    assert corner is None or not corner.isVisible()
    act(started)
    started.session.settle()
    assert started.cover is None
    assert corner is None or not corner.isHidden()
    started.actions_by_name["welcome"].trigger()
    assert page_of(started).isVisible()
    assert not started.presenter.on


@pytest.mark.long
def test_it_stays_for_search_theme_and_letters(started):
    for name in ("next_theme", "larger_text", "search"):
        started.actions_by_name[name].trigger()
        assert started.cover is not None


def test_docks_that_come_to_the_front_stay_below(started):
    page = page_of(started)
    for _, dock in docks(started):
        dock.show()
        dock.raise_()
    at = QPoint(started.width() - 40, started.height() // 2)
    assert started.childAt(at) is page


def test_the_row_that_is_explained_at_first_is_that_of_it(started):
    press(started, Key.Key_Escape)
    trace = started.session.trace
    assert trace.workload.query_token(started.session.row) == "it"
    started.files.open_path(SCENARIOS / "causal.toml")
    started.session.settle()
    assert started.session.row == 0
    started.files.open_path(SCENARIOS / "naive.toml")
    started.session.settle()
    assert started.session.row == 8


# --- pictures -------------------------------------------------------------------------------


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", [(1280, 720), (1920, 1080), (3840, 2160)])
def test_it_is_painted_in_every_size_and_theme(qapp, tmp_path: Path, size, theme):
    settings = Settings(tmp_path / "s.ini")
    settings.theme = theme
    window = make_window(None, "numpy", settings)
    window.resize(*size)
    window.show()
    page = page_of(window)
    wait(lambda: page.ready)
    image = page.grab().toImage()
    for rect in picture_places(page.places):
        part = image.copy(rect.toRect())
        colours = np.unique(np.frombuffer(part.constBits(), dtype=np.uint32))
        assert len(colours) > 30
    window.close()


def test_the_first_window_takes_four_fifths_of_the_screen():
    assert first_size(QSize(1920, 1080)) == QSize(1536, 864)
    assert first_size(QSize(3840, 2160)) == QSize(3072, 1728)
    assert first_size(QSize(1280, 720)) == QSize(1264, 672)
