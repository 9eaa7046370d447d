"""The thread that works for a window holds nothing once its work is done."""

import gc
import weakref

from ui.session.worker import Worker


class Large:
    """Stands for what a job takes along and what comes of it."""


def test_a_worker_at_rest_holds_neither_its_last_job_nor_the_result(qapp, qtbot):
    worker, told = Worker(), []
    worker.finished.connect(lambda kind, result: told.append(weakref.ref(result)))
    taken = Large()
    of_job = weakref.ref(taken)

    def job(taken=taken):
        return Large()

    worker.submit("kind", job)
    del job, taken
    qtbot.waitUntil(lambda: worker.settled)
    gc.collect()
    assert told[0]() is None
    assert of_job() is None
    worker.stop()
