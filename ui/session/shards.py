"""Work in parts, in processes of this machine or on a Dask cluster; results come in order.

A part is a function and its arguments. Wherever a part is done, a process of Tilescope's own does
it, on a worker of a cluster as here: so results are the same. The parent speaks with this process
by pipes; nothing listens on a port. If the process dies, or a worker, the part is done again.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Protocol

from simulator.base.errors import refuse
from simulator.base.version import version
from ui.safety.program import started_again, with_extra

WORD = "--shards"  # the only word of the command line of a process that does parts
_TRIES = 3  # how often a part is begun if its process dies
_LOOK = 0.1  # seconds between two checks whether the work is still wanted
Look = Callable[[], None]
Call = tuple[Callable[..., Any], tuple[Any, ...]]


class Shards(Protocol):
    """The processes that do parts."""

    def results(self, calls: Sequence[Call], look: Look) -> Iterator[Any]:
        """Yield the result of each call, in their order.

        look: is called often, and may raise to end the work.
        """

    def close(self) -> None:
        """End the work of these processes."""


# --- a process that does parts -------------------------------------------------------------------


class _Child:
    """A process that does one part after another."""

    def __init__(self) -> None:
        words, folder = started_again()
        self._process = subprocess.Popen(
            [*words, WORD], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        )  # fmt: skip

    def answer(self, data: bytes) -> bytes:
        """Return the answer to a call. Raises EOFError: the process has died."""
        given, told = self._process.stdin, self._process.stdout
        assert given is not None
        assert told is not None
        try:
            given.write(len(data).to_bytes(8, "little") + data)
            given.flush()
            return _block(told)
        except OSError as error:
            raise EOFError from error

    def end(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                stream and stream.close()


def _block(stream: Any) -> bytes:
    """Return a block of known length. Raises EOFError: the stream ends before."""
    head = stream.read(8)
    data = stream.read(int.from_bytes(head, "little")) if len(head) == 8 else b""
    if len(head) < 8 or len(data) < int.from_bytes(head, "little"):
        raise EOFError
    return bytes(data)


def answer_all() -> int:
    """Do the parts that come on standard input until it ends; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    given, told = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a library is no answer
    while True:
        try:
            data = _block(given)
        except EOFError:
            return 0
        try:
            function, arguments = pickle.loads(data)
            answer = pickle.dumps((True, function(*arguments)), pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            answer = _failure(error)
        try:
            told.write(len(answer).to_bytes(8, "little") + answer)
            told.flush()
        except OSError:  # the parent is gone
            return 0


def _failure(error: Exception) -> bytes:
    try:
        answer = pickle.dumps((False, error))
        pickle.loads(answer)
    except Exception:
        answer = pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return answer


class _Children:
    """Processes of this machine, one for each part that is being done."""

    def __init__(self) -> None:
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._lock = threading.Lock()
        self._over = False

    def answer(self, data: bytes) -> bytes:
        """Return the answer to a call; if its process dies, another one begins again.

        Raises RuntimeError: processes die again and again, or are no longer wanted.
        """
        for _ in range(_TRIES):
            with self._lock:
                if self._over:
                    break
                child = self._idle.pop() if self._idle else _Child()
                self._busy.add(child)
            answer = None
            with suppress(EOFError):
                answer = child.answer(data)
            with self._lock:
                self._busy.discard(child)
                if answer is not None:
                    self._idle.append(child)
                    return answer
            child.end()
        raise RuntimeError(f"a part has ended its process {_TRIES} times")

    def end(self) -> None:
        """End all processes at once."""
        with self._lock:
            self._over = True
            children = [*self._idle, *self._busy]
            self._idle.clear()
        for child in children:
            child.end()


_CHILDREN = _Children()  # a worker of a cluster keeps these processes for the next part


def done_on_worker(data: bytes, said: str) -> bytes:
    """Return the answer to a call that came from a cluster.

    said: the version of Tilescope that asks.
    Raises RuntimeError: another version is installed here, or the part cannot be done.
    """
    if said != version():
        raise RuntimeError(f"Tilescope {said} asks, the worker has {version()}")
    return _CHILDREN.answer(data)


def _value(answer: bytes) -> Any:
    done, value = pickle.loads(answer)
    if not done:
        raise value
    return value


def _packed(call: Call) -> bytes:
    return pickle.dumps(call, pickle.HIGHEST_PROTOCOL)


# --- places where parts are done -----------------------------------------------------------------


class LocalShards:
    """Processes of this machine."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def results(self, calls: Sequence[Call], look: Look) -> Iterator[Any]:
        """Yield the result of each call, in their order; only a few are begun ahead."""
        pool, children = ThreadPoolExecutor(self._jobs), _Children()
        try:
            yield from _in_order(
                calls, lambda data: pool.submit(children.answer, data), 2 * self._jobs, look
            )
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            children.end()

    def close(self) -> None:
        """End the work; the processes have ended with their results."""


class ClusterShards:
    """The workers of a Dask cluster that runs already."""

    def __init__(self, address: str) -> None:
        try:
            import distributed
            from distributed.comm.addressing import get_address_host_port
        except ImportError:
            raise refuse(
                "", "--cluster", address, f"the extra `cluster`: {with_extra('cluster')}"
            ) from None
        try:
            # A client that finds nobody says so on stderr, and takes 20 seconds more to end.
            where: Any = get_address_host_port  # its types are incomplete
            socket.create_connection(where(address), timeout=10).close()
            client: Any = distributed.Client
            self._client = client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError, TimeoutError):
            wanted = "the address of a Dask scheduler that answers, such as tcp://host:8786"
            raise refuse("", "--cluster", address, wanted) from None

    def results(self, calls: Sequence[Call], look: Look) -> Iterator[Any]:
        """Yield the result of each call, in their order; only a few are begun ahead."""
        ahead = 2 * max(1, sum(self._client.nthreads().values()))
        begin = partial(self._client.submit, done_on_worker, said=version(), pure=False)
        yield from _in_order(calls, begin, ahead, look)

    def close(self) -> None:
        """Leave the cluster, which goes on."""
        self._client.close()


def _in_order(
    calls: Sequence[Call], begin: Callable[[bytes], Any], ahead: int, look: Look
) -> Iterator[Any]:
    """Yield results in the order of calls; at most `ahead` calls are under way at a time."""
    waiting: deque[Any] = deque()
    left = iter(calls)
    try:
        for call in left:
            waiting.append(begin(_packed(call)))
            if len(waiting) >= ahead:
                yield _value(_waited(waiting.popleft(), look))
        while waiting:
            yield _value(_waited(waiting.popleft(), look))
    finally:
        for future in waiting:
            future.cancel()


def _waited(future: Any, look: Look) -> bytes:
    """Return the result of a future of either kind."""
    while True:
        look()
        try:
            answer: bytes = future.result(timeout=_LOOK)
        except TimeoutError:
            continue
        except Exception as error:  # an error of the worker, not of a call
            raise refuse("", "", "", f"workers that can do the work ({error})") from None
        return answer


@contextmanager
def asked_for(options: Namespace) -> Iterator[Shards | None]:
    """Give the `Shards` that the options of a command line name, and close them at the end."""
    shards = shards_of(options.jobs, options.cluster)
    try:
        yield shards
    finally:
        if shards is not None:
            shards.close()


def mapped(shards: Shards, function: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
    """Yield a function's result for each part, as `map` does; Ctrl+C ends the work."""
    return shards.results([(function, (part,)) for part in parts], lambda: None)


def shards_of(jobs: int | None, cluster: str | None) -> Shards | None:
    """Return the `Shards` that do parts; None: this process does them."""
    if cluster is not None:
        if jobs is not None:
            raise refuse("", "--jobs", jobs, "either --jobs or --cluster, not both")
        return ClusterShards(cluster)
    if jobs is None:
        return None
    most = 64
    if not 1 <= jobs <= most:
        raise refuse("", "--jobs", jobs, f"1 to {most}")
    return LocalShards(jobs)


def add_options(parser: ArgumentParser) -> None:
    """Add the options that say where parts are done."""
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="do parts in N processes of this machine"
    )
    parser.add_argument(
        "--cluster", metavar="ADDRESS",
        help="do parts on a Dask cluster that runs, tcp://host:8786 (extra: cluster)",
    )  # fmt: skip
