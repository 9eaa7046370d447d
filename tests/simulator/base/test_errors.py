"""Texts of others in one line that a terminal and a title bar can take."""

import pickle
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from simulator.base.errors import InputError, Mistake, reason, refuse, safe_text, shortened, shown
from tests.helpers.scarce import peak_memory


def test_codes_are_written_out_and_words_stay() -> None:
    ordinary = "Größe 注意 עברית हिन्दी 👩\u200d🔬 n\u2009=\u00a03 so\u00adft"
    assert safe_text(ordinary) == ordinary
    bad = "a\x1b[2Jb\x07\x9b31m\u202egnp.exe\u2066\u200f\ud800\n\r\t\u2028\x7f\x00"
    told = r"a\x1b[2Jb\x07\x9b31m\u202egnp.exe\u2066\u200f\ud800\n\r\t\u2028\x7f\x00"
    assert safe_text(bad) == told


@given(st.text(st.characters(), max_size=30))
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    told = safe_text(text)
    told.encode("utf-8")
    assert not {unicodedata.category(c) for c in told} & {"Cc", "Cs", "Zl", "Zp"}
    assert not {unicodedata.bidirectional(c) for c in told} & {
        "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
    }  # fmt: skip
    assert safe_text(told) == told


def test_an_error_is_one_line_and_counts_what_it_does_not_tell() -> None:
    error = InputError("a\x1b]0;x\x07.toml", [Mistake("k", "1", "2"), Mistake("l", "", "3")], 7)
    assert str(error) == r"a\x1b]0;x\x07.toml: k = 1: expected 2 (and 8 more)"


def test_a_mistake_names_what_it_can() -> None:
    told = {
        ("k", "1"): "k = 1: expected 2", ("k", ""): "k: expected 2",
        ("", "1"): "1: expected 2", ("", ""): "expected 2",
    }  # fmt: skip
    for (key, value), text in told.items():
        assert str(Mistake(key, value, "2")) == text
        assert str(InputError("a", [Mistake(key, value, "2")])) == f"a: {text}"
        assert str(refuse("a", key, int(value) if value else "", "2")) == f"a: {text}"


def test_an_error_comes_back_from_another_process() -> None:
    error = InputError("a", [Mistake("k", "1", "2")])
    assert error.args == ("a", (Mistake("k", "1", "2"),), 0)
    again = pickle.loads(pickle.dumps(InputError("a", [Mistake("k", "1", "2")], 3)))
    assert str(again) == "a: k = 1: expected 2 (and 3 more)"


def test_values_are_shown_as_toml_writes_them() -> None:
    for value, text in (
        (True, "true"), (False, "false"), (None, ""), (3, "3"), (0.5, "0.5"), ("a", '"a"'),
        ("", '""'), ([1, 2], "[1, 2]"), (10**5000, "a number of thousands of digits"),
    ):  # fmt: skip
        assert shown(value) == text


def test_texts_are_cut_to_a_line() -> None:
    assert shortened("x" * 80) == "x" * 80
    assert shortened("x" * 81) == "x" * 77 + "..."
    assert shortened(" a\n\tb  c ") == "a b c"
    assert shortened(" " * 1279 + "ab") == "a"  # as much as is looked at


def test_the_reason_is_what_the_system_says() -> None:
    assert reason(OSError(2, "No such file")) == "No such file"
    assert reason(ValueError("odd")) == "odd"
    assert reason(ValueError()) == "ValueError"


def test_a_value_of_megabytes_is_cut_before_its_words_are_parted() -> None:
    assert shown("x " * 200) == '"' + "x " * 38 + "..."
    text = "a b " * 10**6
    with peak_memory() as peak:
        assert len(shown(text)) == 80
        assert peak() < 3 * len(text)
