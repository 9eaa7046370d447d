"""Lines of paper and NumPy: what is shown as running is what runs, and every line is reached."""

import ast
import re
import sys
from functools import partial
from itertools import groupby
from types import CodeType
from typing import get_args

import pytest
from hypothesis import given

from kernels.build.sources import anchors, op_lines, source
from kernels.cuda.text import kernel_lines
from simulator.code import numpy_lines
from simulator.code.code_lines import CodeLine, CodeLines, Tab, exemplars, forms
from simulator.code.paper import PAPERS, Role, cited_lines
from simulator.problem.workload import Variant
from simulator.program import gate_ops, gradient_ops, ops, page_ops, state_ops
from simulator.program.algorithms import ALGORITHMS
from simulator.program.op import Op
from simulator.program.playback import Cursor, last_cursor
from simulator.program.state import State
from simulator.run.breakpoints import AtEnd, AtLine, AtTurn, Finder
from simulator.run.trace import Trace
from tests.helpers.runs import program_of, scenario, scenarios, trace_of

FILES = (
    ops.__file__,
    gate_ops.__file__,
    page_ops.__file__,
    state_ops.__file__,
    gradient_ops.__file__,
)
UNPACKS = ("chip = state.chip", "chip, number = state.chip, state.number")
"""Lines that give shorter names to what an op is given; they are not shown."""
PAGES = {
    # Number of lines on the page, and those that begin or end a loop.
    "naive": (4, {}),
    "flash1": (16, {5: Role.BLOCK, 7: Role.TILE, 14: Role.TILE, 15: Role.BLOCK}),
    "flash2": (17, {3: Role.BLOCK, 6: Role.TILE, 11: Role.TILE, 16: Role.BLOCK}),
}
_SPLIT_KV = {
    "clear O_partialLSE_partial": {"step 1"},
    "load Q": {4},
    "initialise": {5},
    "scores": {8},
    "mask": {"§3.1"},
    "rescale": {10},
    "row max": {9, "step 3"},
    "exponentials": {9, "step 3"},
    "row sum": {9, "step 3"},
    "accumulate": {10, "step 3"},
    "normalise": {12, 13, "step 3"},
    "store O_partialLSE_partial": {"step 2"},
    "load O_partialLSE_partial": {"step 3"},
    "store OLSE": {"step 3"},
}
CITED = {
    # What each op does, from the pages: "load" by the tensors that it moves.
    "naive": {"load Q": {1}, "load K": {1}, "scores": {1}, "mask": {1}, "store S": {1},
              "load S": {2}, "row max": {2}, "exponentials": {2}, "row sum": {2}, "normalise": {2},
              "store P": {2}, "initialise": {3}, "load PV": {3}, "accumulate": {3}, "store O": {3}},
    "flash1": {"clear Olm": {2}, "load KV": {6}, "load QOlm": {8}, "scores": {9}, "mask": {"A2"},
               "row max": {10}, "exponentials": {10}, "row sum": {10}, "combine": {11},
               "rescale": {12}, "accumulate": {12}, "store Olm": {12, 13}},
    "flash2": {"clear OLSE": {14, 15}, "load Q": {4}, "initialise": {5}, "load KV": {7},
               "scores": {8}, "mask": {"§3.1"}, "row max": {9}, "exponentials": {9}, "row sum": {9},
               "rescale": {10}, "accumulate": {10}, "normalise": {12, 13}, "store OLSE": {14, 15}},
    "split-kv": _SPLIT_KV | {"load KV": {7}},
    "paged": _SPLIT_KV | {"load KV": {7}, "look up table": {"§4.1"}},
    "mla": _SPLIT_KV | {"load C": {"§2.1.2"}},
    "linear": {"start state": {"eq. 16", "eq. 5"}, "load QKV": {"chunk"}, "load KV": {"eq. 5"},
               "load stateQ": {"eq. 5"}, "features": {"eq. 7", "lemma 1"}, "read state": {"eq. 12",
               "eq. 5"}, "similarities": {"chunk"}, "mask": {"chunk"}, "row sum": {"chunk"},
               "accumulate": {"chunk"}, "update state": {"eq. 10", "eq. 5"}, "normalise": {"eq. 12",
               "eq. 5"}, "store O": {"eq. 12", "eq. 5"}, "store state": {"eq. 5"}},
    "linear-recurrent": {"start state": {"eq. 16"}, "load QKV": {"eq. 18"}, "features": {"eq. 7",
                         "lemma 1"}, "update state": {"eq. 18"}, "read state": {"eq. 20"},
                         "normalise": {"eq. 20"}, "store O": {"eq. 20"}},
    "naive-backward": {"start gradients": {1, 4, 5}, "load PdO": {1}, "value gradient": {1},
                       "store dV": {1}, "load dO": {2}, "load V": {2}, "weight gradient": {2},
                       "store dP": {2}, "load PdP": {3}, "weighted means": {3},
                       "score gradient": {3}, "store dS": {3}, "load dSK": {4},
                       "query gradient": {4}, "convert": {4}, "store dQ": {4}, "load dSQ": {5},
                       "key gradient": {5}, "scale keys": {5}, "store dK": {5}},
    "flash2-backward": {"load OdO": {4}, "row dots": {4}, "store D": {4}, "clear dQ_acc": {3},
                        "clear dKdV": {18}, "load KV": {6}, "start gradients": {7},
                        "load QdOLSED": {9}, "scores": {10}, "mask": {"§3.1"}, "weights": {11},
                        "value gradient": {12}, "weight gradient": {13}, "score gradient": {14},
                        "load dQ_acc": {15, 20}, "query gradient": {15}, "store dQ_acc": {15},
                        "key gradient": {16}, "scale keys": {16}, "store dKdV": {18},
                        "convert": {20}, "store dQ": {20}},
    "gla": {"start state": {"start"}, "load QKVdecay": {"rows"}, "features": {"rows"},
            "decay state": {"forget"}, "update state": {"write"}, "read state": {"read"},
            "store O": {"read"}},
    "deltanet": {"start state": {"start"}, "load QKVstrength": {"rows"}, "features": {"rows"},
                 "recall": {"recall"}, "correct": {"delta"}, "update state": {"write"},
                 "read state": {"read"}, "store O": {"read"}},
}  # fmt: skip


EVERY = frozenset(get_args(Variant))


def code_of(algorithm: str, variant: frozenset[Variant] = frozenset()) -> CodeLines:
    return CodeLines(algorithm, kernel_lines(algorithm), partial(op_lines, algorithm), variant)


def cuda_of(text: str) -> tuple[CodeLine, ...]:
    """Return the lines of a made-up kernel."""
    lines = enumerate(text.splitlines(), start=1)
    return tuple(CodeLine(n, line, n, "flash2.cu") for n, line in lines)


def traces(algorithm: str) -> list[Trace]:
    """Return runs in which all that an algorithm does occurs."""
    return [trace_of(program.workload) for program in exemplars(algorithm)]


def words(op) -> str:
    return f"{op.name} {''.join(dict.fromkeys(move.tensor for move in op.moves))}".strip()


@pytest.mark.parametrize("algorithm", PAGES)
def test_lines_are_numbered_as_on_the_page(algorithm):
    count, loops = PAGES[algorithm]
    numbered = [line for line in PAPERS[algorithm].lines if line.label.isdigit()]
    assert [line.label for line in numbered] == [str(n) for n in range(1, count + 1)]
    roles = {int(line.label): line.role for line in numbered}
    assert {n: r for n, r in roles.items() if r in (Role.TILE, Role.BLOCK)} == loops
    assert roles[count] is Role.END
    depth = {line.level for line in PAPERS[algorithm].lines}
    assert depth == ({0, 1, 2} if loops else {0})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_lines_are_set_in_by_the_loops_around_them(algorithm):
    depth = 0
    for line in PAPERS[algorithm].lines:
        ends, begins = line.text.startswith("End for"), line.text.startswith("For each")
        depth -= ends
        assert line.level == depth, line
        depth += begins
    assert depth == 0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_op_stands_on_the_lines_that_the_page_gives_it(algorithm):
    code, found = code_of(algorithm), {}
    for op in forms(algorithm):
        labels = [code.paper.lines[n].label for n in code.lines(Tab.PAPER, op)]
        said = {int(label) if label.isdigit() else label for label in labels}
        found.setdefault(words(op), set()).update(said)
    assert found == CITED[algorithm]


@given(scenarios(longest=12))
def test_every_op_that_occurs_has_a_form_and_lines_in_each_text(chosen):
    program = program_of(chosen)
    algorithm = program.workload.algorithm
    variant = program.workload.variant
    known = {(op.name, op.cites, words(op)) for op in forms(algorithm, variant)}
    code = code_of(algorithm, variant)
    texts = {tab: {line.number for line in code.texts(tab)} for tab in (Tab.NUMPY, Tab.CUDA)}
    for index in range(len(program)):
        for op in program.ops(index):
            assert (op.name, op.cites, words(op)) in known
            assert code.lines(Tab.PAPER, op) == cited_lines(algorithm, op.cites) != ()
            assert set(code.lines(Tab.NUMPY, op)) <= texts[Tab.NUMPY]
            assert set(code.lines(Tab.CUDA, op)) <= set(anchors(algorithm)[op.name])
            assert all(code.lines(tab, op) for tab in Tab)


@pytest.mark.parametrize(
    ("algorithm", "op", "calls"),
    [
        ("naive", "load Q", ["load_tile(Q_shared"]),
        ("naive", "load K", ["load_tile(K_shared"]),
        ("naive", "load PV", ["P_shared[n] =", "load_tile(V_shared"]),
        ("naive", "store S", ["put(S_hbm"]),
        ("flash1", "load KV", ["load_tile(K_shared", "load_tile(V_shared"]),
        ("flash1", "load QOlm", ["load_tile(Q_shared", "load_running(m, l, O"]),
        ("flash2", "load Q", ["load_tile(Q_shared"]),
        ("flash2", "load KV", ["load_tile(K_shared", "load_tile(V_shared"]),
        ("flash2", "store OLSE", ["LSE_hbm[", "store_output(O_hbm"]),
    ],
)
def test_a_move_stands_on_the_lines_of_cuda_that_move_its_tensors(algorithm, op, calls):
    (form,) = (each for each in forms(algorithm) if words(each) == op)
    text = source(algorithm).splitlines()
    found = [text[n - 1].strip() for n in op_lines(algorithm, form)]
    assert [line.startswith(call) for line, call in zip(found, calls, strict=True)] == [
        True for _ in calls
    ]


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_lines_of_numpy_are_those_that_run(algorithm):
    """Run every op under a tracer, and see which lines of its file it goes through."""
    for trace in traces(algorithm):
        machine = State(
            trace.inputs.q, trace.inputs.k, trace.inputs.v,
            tensors=trace.program.algorithm.tensors, splits=trace.workload.splits,
            features=trace.workload.sizes["feature"], projection=trace.inputs.projection,
            given=trace.inputs.given(trace.workload), inputs=trace.program.algorithm.inputs,
            pages=trace.workload.pages,
        )  # fmt: skip
        code = code_of(algorithm)
        for index in range(len(trace.program)):
            for op in trace.program.ops(index):
                ran, called = lines_gone_through(op, machine)
                ran = {n for n in ran if numpy_lines.source()[n - 1].strip() not in UNPACKS}
                shown = set(code.lines(Tab.NUMPY, op))
                assert ran <= shown, op.name
                starts = {n for n in shown if n in ran or numpy_lines.source()[n - 1].strip()}
                assert shown == starts
                assert called == numpy_lines.helpers_called(op), op.name
                # What is shown and is no beginning of a statement goes on with the line above.
                assert all(n in ran or n - 1 in shown for n in shown), (op.name, ran, shown)


def lines_gone_through(op, machine) -> tuple[set[int], set[str]]:
    """Return the lines of ``apply`` that run, and the functions of the file that it calls."""
    body: CodeType = type(op).apply.__code__
    lines, called = set(), set()

    def trace(frame, event, arg):
        name = frame.f_code.co_filename
        if name not in FILES:
            return None
        if frame.f_code is body:
            if event == "line":
                lines.add(FILES.index(name) * numpy_lines.APART + frame.f_lineno)
        elif frame.f_code.co_name in numpy_lines.HELPERS:
            called.add(frame.f_code.co_name)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        op.apply(machine)
    finally:
        sys.settrace(before)
    return lines, called


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_line_that_can_run_is_reached_by_a_step(algorithm):
    code = code_of(algorithm, EVERY)
    reached = {tab: {n for op in code.forms for n in code.lines(tab, op)} for tab in Tab}
    lines = code.paper.lines
    assert reached[Tab.PAPER] == {n for n, line in enumerate(lines) if line.role is Role.OP}
    assert reached[Tab.CUDA] == {n for each in anchors(algorithm).values() for n in each}
    # Of the ops' bodies all lines run but those of branches that this algorithm never takes.
    bodies = {n for s in code.sections for n in of_ops(s)}
    left = bodies - reached[Tab.NUMPY]
    for n in left:
        above = next(m for m in range(n - 1, 0, -1) if m not in left)
        assert numpy_lines.source()[above - 1].strip() in (
            "if self.running:",
            "if self.whole:",
            "if self.statistics:",
            "if self.normalised:",
            "if self.queries:",
            "if self.softmax:",
            "if self.keys:",
            "if self.sink:",
        )


def of_ops(section):
    """Return the lines of an op's body that compute; none of a function's."""
    return {
        n
        for n in section.body
        if section.name not in numpy_lines.HELPERS
        and numpy_lines.source()[n - 1].strip() not in UNPACKS
    }


def kinds_of(kind):
    for each in kind.__subclasses__():
        yield each
        yield from kinds_of(each)


def test_every_line_of_every_op_runs_in_some_algorithm():
    used = [op for a in ALGORITHMS for variant in (frozenset(), EVERY) for op in forms(a, variant)]
    ran = {n for op in used for n in numpy_lines.lines_run(op)}
    called = {name for op in used for name in numpy_lines.helpers_called(op)}
    names = {type(op).__name__ for op in used} | called
    sections = {name: numpy_lines.sections()[name] for name in names}
    assert ran == {n for s in sections.values() for n in of_ops(s)}
    defined = {each.__name__ for each in kinds_of(Op) if not each.before_tiles}
    assert defined == set(sections) - set(numpy_lines.HELPERS)


@pytest.mark.sweep(keep=4)
@pytest.mark.parametrize("tab", Tab)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_click_on_a_line_runs_to_a_step_of_it_or_says_why_not(algorithm, tab):
    runs, code = traces(algorithm), code_of(algorithm)
    finders = [Finder(trace) for trace in runs]
    numbers = (
        range(len(code.paper.lines))
        if tab is Tab.PAPER
        else [line.number for line in code.texts(tab) if line.number]
    )
    for line in numbers:
        condition = code.condition(tab, line)
        if condition is None:
            assert code.why_never(tab, line)
            assert not any(line in code.lines(tab, op) for op in forms(algorithm))
            continue
        hits = [finder.find(Cursor(0, -1), [condition]) for finder in finders]
        found = [(run, hit) for run, hit in zip(runs, hits, strict=True) if hit is not None]
        assert found, (tab, line)
        run, hit = found[0]
        op = run.program.ops(hit.cursor.visit)[hit.cursor.op]
        if any(line in code.lines(tab, each) for each in forms(algorithm)):
            assert line in code.lines(tab, op)
        if isinstance(condition, AtLine) and tab is Tab.CUDA:
            assert condition.line in code.lines(tab, op)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_lines_of_loops_go_from_turn_to_turn(algorithm):
    trace, code = traces(algorithm)[0], code_of(algorithm)
    program, finder = trace.program, Finder(trace)
    for n, line in enumerate(code.paper.lines):
        condition = code.condition(Tab.PAPER, n)
        if line.role is Role.END:
            assert condition == AtEnd()
            assert finder.find(Cursor(0, 0), [condition]).cursor == last_cursor(program)
        if line.role in (Role.TILE, Role.BLOCK):
            assert condition == AtTurn(outer=line.role is Role.BLOCK)
            cursor, turns = Cursor(0, -1), []
            while (hit := finder.find(cursor, [condition])) is not None:
                cursor = hit.cursor
                turns.append(program.visit(cursor.visit))
            if line.role is Role.TILE:
                assert [visit.index for visit in turns] == list(range(len(program)))
            else:
                by_rows = [launch.by_rows for launch in program.launches]
                outer = [(v.launch, v.i if by_rows[v.launch] else v.j, v.split) for v in turns]
                assert outer == sorted(set(outer))
        assert (condition is None) == (line.role is Role.SETUP)


def test_ops_of_one_line_of_the_paper_are_one_turn_of_it():
    """Line 9 of FlashAttention-2 is row max, exponentials and row sum: once for each tile."""
    trace = trace_of(scenario("flash2", nq=8, nk=8, rows=4, cols=4))
    code = code_of("flash2")
    nine = next(n for n, line in enumerate(code.paper.lines) if line.label == "9")
    finder, cursor, found = Finder(trace), Cursor(0, 0), []
    condition = code.condition(Tab.PAPER, nine)
    while (hit := finder.find(cursor, [condition])) is not None:
        cursor = hit.cursor
        found.append(trace.program.ops(cursor.visit)[cursor.op].name)
    assert found == ["row max"] * 4


def test_a_breakpoint_on_a_line_of_another_algorithm_never_stops():
    code, trace = code_of("flash1"), trace_of(scenario("flash2", nq=8, rows=4, cols=4))
    condition = code.condition(Tab.PAPER, 5)
    assert isinstance(condition, AtLine)
    assert Finder(trace).find(Cursor(0, -1), [condition]) is None
    assert condition == code_of("flash1").condition(Tab.PAPER, 5)
    assert condition != code.condition(Tab.PAPER, 7)


def test_the_exemplar_has_all_kinds_of_tiles():
    (exemplar,) = exemplars("flash2")
    kinds = {int(k) for k in exemplar.workload.grid.kinds().flat}
    assert kinds == {0, 1, 2}


def test_a_statement_of_cuda_is_one_place():
    """A click on the second line of a call goes where the call is, not to the next one."""
    code, text = code_of("flash2"), source("flash2").splitlines()
    first = next(n for n, line in enumerate(text, 1) if "load_tile(Q_shared" in line)
    above, here = code.condition(Tab.CUDA, first), code.condition(Tab.CUDA, first + 1)
    assert above == here
    guard = next(n for n, line in enumerate(text, 1) if "if (tile.kind() == PARTIAL)" in line)
    assert code.condition(Tab.CUDA, guard).line == guard + 1
    assert code.condition(Tab.CUDA, 1) is not None  # slides down to the first op
    assert code.condition(Tab.CUDA, len(text)) is None


@pytest.mark.parametrize("cites", ["Dao 2023, Algorithm 7, line 1", "Dao 2023", ""])
def test_a_citation_of_something_else_names_no_line(cites):
    assert cited_lines("flash2", cites) == ()


def test_why_a_line_never_runs_is_told_of_each_text():
    code = code_of("flash2")
    first = next(n for n, line in enumerate(code.paper.lines) if line.label == "1")
    assert code.why_never(Tab.PAPER, first) == "Line 1 of the paper is done before the first step."
    assert code.why_never(Tab.CUDA, 3) == "flash2.cu:3: no op stands at it or below it."
    numpy = "ops.py:3"
    assert code.why_never(Tab.NUMPY, 3) == f"{numpy}: no step of this algorithm runs it."
    mask = next(n for n, line in enumerate(code.paper.lines) if not line.label.isdigit())
    assert code.place(Tab.PAPER, mask) == "The paper's line on masking"


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_line_of_numpy_is_run_by_its_own_class_and_by_those_that_call_it(algorithm):
    """The head of a class stands for all its ops, a helper's lines for those that call it."""
    code, waited = code_of(algorithm), set()
    for section in code.sections:
        for line in section.lines:
            runs = []
            for op in forms(algorithm):
                head = type(op).__name__ == section.name and line not in section.body
                called = section.name in numpy_lines.helpers_called(op)
                if head or called or line in numpy_lines.lines_run(op):
                    runs.append(op)
            condition = code.condition(Tab.NUMPY, line)
            if not runs:
                assert condition is None
                continue
            assert isinstance(condition, AtLine)
            assert [condition.runs(op) for op in forms(algorithm)] == [
                op in runs for op in forms(algorithm)
            ]
            assert (condition.tab, condition.line, condition.once) == ("numpy", line, False)
            assert condition.words == numpy_lines.place(line)
            waited.add(section.name)
    assert waited == {section.name for section in code.sections}


@pytest.fixture
def other_ops(tmp_path, monkeypatch):
    """Let another text stand in the place of ops.py."""
    cached = (numpy_lines.source, numpy_lines.sections, numpy_lines._tree)

    def write(text):
        for each in cached:
            each.cache_clear()
        (tmp_path / "ops.py").write_text(text, encoding="utf-8")
        monkeypatch.setattr(numpy_lines, "SOURCES", (tmp_path / "ops.py",))

    yield write
    for each in cached:
        each.cache_clear()


def test_a_part_of_the_file_runs_from_after_its_docstring_to_its_end(other_ops):
    other_ops("""\
class Told:
    \"\"\"Says what it is.\"\"\"


class Scores:
    name = "scores"

    def other(self):
        return 1

    def apply(self, machine):

        a = 1
        return (a,
                2)

def told(x):
    \"\"\"Say it.

    At length.
    \"\"\"

    return x

def bare(x):
    y = x
    return y
""")
    found = {name: (s.lines, s.body) for name, s in numpy_lines.sections().items()}
    assert found == {
        "Told": (range(1, 3), range(3, 3)),
        "Scores": (range(5, 16), range(13, 16)),
        "told": (range(17, 24), range(22, 24)),
        "bare": (range(25, 28), range(26, 28)),
    }


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_numpy_text_has_statements_and_none_of_the_classes_around_them(algorithm):
    code = code_of(algorithm, EVERY)
    texts = code.texts(Tab.NUMPY)
    for line in texts:
        assert not re.search(r"\bself\b|\bstate\.\w|ClassVar|def apply|\"\"\"|->", line.text), line
        assert line.text.strip() not in UNPACKS
    ast.parse("\n".join(line.text for line in texts))  # it is Python
    shown = {line.number: line.text for line in texts}
    for op in code.forms:
        assert set(code.lines(Tab.NUMPY, op)) <= set(shown)


def test_a_gap_stands_between_two_parts_of_the_numpy_text():
    code = code_of("flash2")
    texts, text = code.texts(Tab.NUMPY), numpy_lines.source()
    parts = [list(part) for gap, part in groupby(texts, lambda line: not line.number) if not gap]
    assert len(parts) == len(code.sections)
    for section, (title, *body) in zip(code.sections, parts, strict=True):
        assert title.number == section.lines.start
        assert title.text.startswith(("# ", f"def {section.name}("))
        kept = [n for n in section.body if text[n - 1].strip() not in UNPACKS]
        assert [line.number for line in body] == kept
        assert all(line.shown == numpy_lines.own_number(line.number) for line in body)
    scores = next(part for part in parts if part[0].text == "# S = (scale · Q) Kᵀ of one tile.")
    assert [x.text for x in scores[1:]] == [
        'chip["S"] = matmul(chip["Q"] * number(scale), chip["K"].T)'
    ]
    assert code.condition(Tab.NUMPY, 1) is None  # of no part
    whole = code.texts(Tab.CUDA)
    assert [line.number for line in whole] == list(range(1, len(whole) + 1))
    assert [line.text for line in whole] == source("flash2").splitlines()


def test_a_statement_of_cuda_begins_after_the_one_before_and_ends_with_its_own():
    """A made-up kernel: each line by itself, and where a click on it goes."""
    text = """\
#include <a>
first(x,
      y);  // a remark; more
second(
  y)
;

// nothing
third();
if (y) {
  fourth(x +
    y);
}"""
    anchored = {"scores": (3,), "row max": (5,), "accumulate": (11,), "row sum": (9,)}
    code = CodeLines("flash2", cuda_of(text), lambda op: anchored.get(op.name, ()))
    found = {}
    for line in range(1, 14):
        condition = code.condition(Tab.CUDA, line)
        found[line] = condition.line if condition else None
    assert found == {
        1: 3, 2: 3, 3: 3, 4: 5, 5: 5, 6: 5, 7: 9, 8: 9, 9: 9, 10: 11, 11: 11, 12: 11, 13: None,
    }  # fmt: skip
    waits = code.condition(Tab.CUDA, 3)
    assert waits.words == "flash2.cu:3"
    assert [waits.runs(op) for op in forms("flash2")] == [
        op.name == "scores" for op in forms("flash2")
    ]
    cut = CodeLines("flash2", cuda_of("scores(x,\n       y"), lambda op: (1,))
    assert cut.condition(Tab.CUDA, 2) == cut.condition(Tab.CUDA, 1)


def test_forms_of_runs_with_sinks_are_those_that_occur_in_them():
    """Splits but the first have none, so that of these also the other forms occur."""
    for name, algorithm in ALGORITHMS.items():
        with_sinks, without = (
            {(op.name, op.cites) for program in exemplars(name, frozenset(variant))
             for n in range(len(program)) for op in program.ops(n)}
            for variant in (["sinks"], [])
        )  # fmt: skip
        expected = with_sinks | without if algorithm.splits else with_sinks
        assert {(op.name, op.cites) for op in forms(name, frozenset(["sinks"]))} == expected, name
