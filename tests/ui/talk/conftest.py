"""What several files of tests about lessons begin with."""

import pytest
from pytestqt.qtbot import QtBot

from ui.talk.lesson_bar import LessonBar


@pytest.fixture
def bar(request: pytest.FixtureRequest, qtbot: QtBot) -> LessonBar:
    """The bar of a lesson with the caption SAID of a file."""
    bar = LessonBar()
    qtbot.addWidget(bar)
    bar.resize(1280, 160)
    bar.caption.show_caption(request.module.SAID)
    bar.show()
    return bar
