"""Byte pairs: merges in their order, within words; every text comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.language.tokenizer import BYTES, Tokenizer


def numbers(text: str) -> list[int]:
    return [1 + BYTES.index(byte) for byte in text.encode()]


T, H, E, SPACE = numbers("the ")
TH, THE, SPACE_THE, EE = 257, 258, 259, 260
MERGES = ((T, H), (TH, E), (SPACE, THE), (E, E))


def test_merges_are_made_in_their_order_and_not_across_words() -> None:
    tokenizer = Tokenizer(MERGES)
    assert tokenizer.encode("the") == [0, SPACE_THE]
    assert tokenizer.encode("the thee tee") == [0, SPACE_THE, SPACE_THE, E, SPACE, T, EE]
    assert tokenizer.encode("eee") == [0, SPACE, EE, E]
    assert tokenizer.encode("") == [0]


def test_a_merge_of_what_is_a_token_already_makes_no_other_one() -> None:
    tokenizer = Tokenizer(((T, H), (H, E), (TH, E), (T, 258)))
    assert tokenizer.pieces.count(b"the") == 1
    assert len(tokenizer.pieces) == 260


def test_digits_signs_and_lines_stand_alone() -> None:
    said = Tokenizer(()).encode("a 12,\nb")
    assert [Tokenizer(()).label(n) for n in said] == [
        "<s>", " ", "a", " ", "1", "2", ",", "\n", "b",
    ]  # fmt: skip


@pytest.mark.long
@given(st.text(max_size=40))
def test_every_text_comes_back(text: str) -> None:
    tokenizer = Tokenizer(MERGES)
    assert (
        tokenizer.decode(tokenizer.encode(text))
        == text.removeprefix(" ").encode("utf-8", "replace").decode()
    )
