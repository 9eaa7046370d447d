"""Garbage that holds Qt's objects ends in the thread of the window, never in the engine's."""

import gc
import threading

from PySide6.QtCore import QObject

from ui.safety.collector import collect_here


class Cycle(QObject):
    def __init__(self, ended):
        super().__init__()
        self.me = self
        self.ended = ended

    def __del__(self):
        self.ended.append(threading.current_thread().name)


def make_garbage():
    """Make more cycles than any of Python's counters allows for."""
    for _ in range(3000):
        a = []
        a.append([a])


def test_cycles_end_in_the_main_thread(qapp, qtbot):
    collect_here(qapp)
    assert not gc.isenabled()
    ended = []
    Cycle(ended)
    busy = threading.Thread(target=make_garbage, name="engine")
    busy.start()
    busy.join()
    assert ended == []
    for _ in range(40):
        make_garbage()
        qtbot.wait(10)
    qtbot.waitUntil(lambda: bool(ended) or gc.collect() < 0, timeout=5000)
    assert ended == ["MainThread"]


def test_there_is_one_collector(qapp):
    collect_here(qapp)
    collect_here(qapp)
    assert len(qapp.findChildren(QObject, "collector")) == 1


def test_what_was_there_before_the_window_is_not_walked_each_time(qapp):
    collect_here(qapp)
    assert gc.get_freeze_count() > 10_000
    gc.collect()
    walked = {id(each) for each in gc.get_objects()}
    assert id(gc.__dict__) not in walked
    assert id(QObject) not in walked
