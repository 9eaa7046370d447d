"""Inside pytest: which lines each test runs, and the tests again with a mutant in their way.

Everything is imported and collected once. A mutant is tried in a fork: inside a function, by giving
the function its changed code; anywhere else, by importing everything again.
"""

from __future__ import annotations

import gc
import importlib
import importlib.abc
import importlib.util
import json
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from types import CodeType, FunctionType

import coverage
import pytest
from _pytest.main import pytest_runtestloop

from tests.mutants.changes import Mutant

OURS = ("simulator", "kernels", "ui", "tests")
QUIET = (
    "-q", "--all", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip
"""Every case of every sweep may notice, as in `make test-all`."""
OVERHEAD = 0.004
"""Seconds that pytest needs around a test."""
ENDED = (signal.SIGKILL, signal.SIGXCPU)
CONTROL = "nothing"
"""The kind of a mutant in which nothing is changed: it is to survive."""
KILLED, SURVIVED, TIMEOUT, NOT_RUN = "killed", "survived", "timeout", "not run"


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in OURS and not name.startswith("tests.mutants")


def clear_caches() -> None:
    """Forget what functions have kept, so that every test runs the lines that it needs."""
    for name, module in list(sys.modules.items()):
        if _is_ours(name):
            for thing in list(vars(module).values()):
                if isinstance(clear := getattr(thing, "cache_clear", None), Callable):
                    clear()


class Recorder:
    """Notes the lines of some files that each test runs, and how long it takes.

    files: the files.
    out: where the record is written: seconds by test, tests by file and line.
    """

    def __init__(self, files: Sequence[Path], out: Path) -> None:
        self._files, self._out = files, out
        self._seconds: dict[str, float] = defaultdict(float)
        self._coverage = coverage.Coverage(
            data_file=None, include=[str(file.resolve()) for file in files], config_file=False
        )
        self._coverage.start()  # before anything is imported: lines of the import have no test

    def pytest_collection_finish(self):
        # What a test imports first would else have the lines of the import, alone.
        for file in self._files:
            importlib.import_module(".".join(file.with_suffix("").parts).removesuffix(".__init__"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        clear_caches()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item):
        # A fixture that a whole file shares is made for its first test.
        self._coverage.switch_context(item.nodeid.partition("::")[0])
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self._coverage.switch_context(item.nodeid)
        started = time.process_time()
        out = yield
        self._seconds[item.nodeid] += time.process_time() - started
        self._coverage.switch_context("")
        return out

    def pytest_sessionfinish(self):
        self._coverage.stop()
        data = self._coverage.get_data()
        root, lines = Path.cwd(), {}
        for file in data.measured_files():
            ran = data.contexts_by_lineno(file)
            lines[str(Path(file).relative_to(root))] = {
                line: sorted(test for test in tests if test) for line, tests in ran.items()
            }
        self._out.parent.mkdir(parents=True, exist_ok=True)
        self._out.write_text(json.dumps({"seconds": self._seconds, "lines": lines}))


class Record:
    """What a `Recorder` has written."""

    def __init__(self, file: Path) -> None:
        read = json.loads(file.read_text())
        self.seconds: dict[str, float] = read["seconds"]
        self._lines: dict[str, dict[str, list[str]]] = read["lines"]

    def tests(self, mutant: Mutant, most: float) -> list[str]:
        """Return the tests that run a mutant's line.

        Where the line runs with the import, they are those of all test files that run any line
        of the module's folder: what is made then may be asked for without a line of the module.
        First come those of files that do run a line of it; of these one case of each test
        function; of these the module's own, those of its room, and the quickest. No more than
        `most` seconds of them.
        """
        lines = self._lines.get(str(mutant.path), {})
        found = set(lines.get(str(mutant.line), ()))
        if self.is_imported(mutant):
            found = self._files(mutant.path.parent)
            # A module without a function runs in no test: any may notice.
            found = found or {test.partition("::")[0] for test in self.seconds}
        tests = self._of(found)
        running = {test.partition("::")[0] for each in lines.values() for test in each}
        own = f"/test_{mutant.path.stem}.py::"
        rooms = {f"tests/{room}" for room in mutant.path.parents if len(room.parts) > 1}
        ranks: dict[str, int] = defaultdict(int)
        order = []
        for test in sorted(tests, key=lambda t: (self.seconds[t], t)):
            function = test.partition("[")[0]
            near = own not in test, function.rpartition("/")[0] not in rooms
            far = test.partition("::")[0] not in running
            order.append((far, ranks[function], near, self.seconds[test], test))
            ranks[function] += 1
        chosen, total = [], 0.0
        for *_, seconds, test in sorted(order):
            total += seconds + OVERHEAD
            if total > most and chosen:
                break
            chosen.append(test)
        return chosen

    def is_imported(self, mutant: Mutant) -> bool:
        """Return whether a mutant's line runs with the import alone, also in a function."""
        return self._lines.get(str(mutant.path), {}).get(str(mutant.line)) == []

    def _of(self, found: set[str]) -> set[str]:
        """Return the tests among what was found: tests, and files that share what they make."""
        files = {each for each in found if "::" not in each}
        return {t for t in self.seconds if t in found or t.partition("::")[0] in files}

    def _files(self, folder: Path) -> set[str]:
        """Return the test files that run a line of some module of a folder."""
        return {
            test.partition("::")[0]
            for path, lines in self._lines.items()
            if Path(path).parent == folder
            for tests in lines.values()
            for test in tests
        }


def _codes(code: CodeType) -> list[CodeType]:
    out = [code]
    for const in code.co_consts:
        if isinstance(const, CodeType):
            out += _codes(const)
    return out


def _is_import_time(code: CodeType) -> bool:
    """Whether a code object is that of a module or of a class."""
    return not code.co_flags & 0x2  # CO_NEWLOCALS: a function, a lambda or a comprehension


def _shallow(code: CodeType) -> tuple[object, ...]:
    consts = tuple((type(c), c) for c in code.co_consts if not isinstance(c, CodeType))
    return (code.co_code, code.co_names, code.co_varnames, consts)


def functions_of_ours() -> dict[str, list[FunctionType]]:
    """Return all functions that have been made so far, by the file that they come from."""
    out = defaultdict(list)
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType):
            out[thing.__code__.co_filename].append(thing)
    return out


def put_in(mutant: Mutant, functions: dict[str, list[FunctionType]]) -> bool:
    """Give the functions of a mutant's module their changed code; False: that is not enough."""
    file = str(mutant.path.resolve())
    old, new = (
        _codes(compile(source, file, "exec", dont_inherit=True))
        for source in (mutant.path.read_text(encoding="utf-8"), mutant.source)
    )
    if [code.co_qualname for code in old] != [code.co_qualname for code in new]:
        return False
    changed = {}
    for before, after in zip(old, new, strict=True):
        if _is_import_time(before):
            if _shallow(before) != _shallow(after):
                return False
        elif before != after or mutant.kind == CONTROL:
            changed[before.co_qualname, before.co_firstlineno] = after
    put = 0
    for function in functions.get(file, ()):
        code = changed.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if code is not None:
            if len(code.co_freevars) != len(function.__code__.co_freevars):
                return False
            function.__code__ = code
            put += 1
    return put > 0


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from the source of a mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._name = ".".join(mutant.path.with_suffix("").parts).removesuffix(".__init__")

    def find_spec(self, name, path, target=None):
        if name != self._name:
            return None
        file = self._mutant.path.resolve()
        places = [str(file.parent)] if file.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, file, loader=self, submodule_search_locations=places
        )

    def exec_module(self, module):
        file = str(self._mutant.path.resolve())
        exec(compile(self._mutant.source, file, "exec", dont_inherit=True), vars(module))


class _Chosen:
    """Leaves the tests that are chosen, in the order given."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._place = {test: n for n, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid in self._place]
        items.sort(key=lambda item: self._place[item.nodeid])


def _import_again(mutant: Mutant, tests: Sequence[str]) -> bool:
    """Run tests with everything imported anew; return whether they all pass."""
    for name in list(sys.modules):
        if _is_ours(name):
            del sys.modules[name]
    sys.meta_path.insert(0, _Finder(mutant))
    files = sorted({test.partition("::")[0] for test in tests})
    return pytest.main([*files, *QUIET, "-x"], plugins=[_Chosen(tests)]) == 0


class Trial:
    """Tries mutants instead of running the tests that were collected.

    mutants: what to try, by which tests, and whether everything is to be imported again for it:
        what a function has made with the import stays as it was.
    limit: how many seconds of a processor the tests of a mutant may take; of the clock 20 times
        that.
    processes: how many at a time.
    tell: told each mutant and what came of it.
    known: the tests of the record. Those written since then run for every mutant, and first.
    """

    def __init__(
        self,
        mutants: Iterable[tuple[Mutant, list[str], bool]],
        limit: Callable[[list[str]], float],
        processes: int,
        tell: Callable[[Mutant, str], None],
        known: Collection[str],
    ) -> None:
        self._known = known
        self._mutants = iter(mutants)
        self._limit = limit
        self._processes = processes
        self._tell = tell
        self._running: dict[int, tuple[Mutant, float]] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise pytest.UsageError("some tests cannot be collected: run them first")
        items = {item.nodeid: item for item in session.items}
        self._functions = functions_of_ours()
        gc.collect()
        gc.freeze()  # else every collection in a fork copies all that was imported
        new = [test for test in items if test not in self._known]
        for mutant, recorded, again in self._mutants:
            tests = [*new, *recorded]
            if not tests:
                self._tell(mutant, NOT_RUN)
                continue
            while len(self._running) >= self._processes:
                self._wait()
            self._start(session, items, mutant, tests, again)
        while self._running:
            self._wait()
        return True

    def _start(self, session, items, mutant: Mutant, tests: list[str], again: bool) -> None:
        limit = self._limit(tests)
        sys.stdout.flush()
        child = os.fork()
        if child:
            self._running[child] = (mutant, time.monotonic() + 20 * limit)
            return
        status = 1
        try:
            os.setpgid(0, 0)
            used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
            resource.setrlimit(resource.RLIMIT_CPU, (int(used + limit) + 1,) * 2)
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            if not again and put_in(mutant, self._functions):
                clear_caches()
                session.items = [items[test] for test in tests if test in items]
                session.config.option.maxfail = 1
                session.config.pluginmanager.unregister(self)
                try:
                    pytest_runtestloop(session)
                    status = int(session.testsfailed > 0)
                except (session.Failed, session.Interrupted):
                    status = 1
            else:
                status = int(not _import_again(mutant, tests))
        finally:
            os._exit(status)

    def _wait(self) -> None:
        """Wait for one of the running mutants to end."""
        while True:
            for child, (mutant, until) in list(self._running.items()):
                ended, status = os.waitpid(child, os.WNOHANG)
                if not ended and time.monotonic() < until:
                    continue
                if not ended:
                    os.killpg(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                del self._running[child]
                late = not ended or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in ENDED)
                self._tell(mutant, TIMEOUT if late else KILLED if status else SURVIVED)
                return
            time.sleep(0.01)
