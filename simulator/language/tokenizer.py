"""Byte pairs: text as numbers of tokens and back, by the merges that training found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

START = 0
"""The token <s> that every text begins with."""
_LETTERS = "A-Za-z\u00c0-\u024f"
WORDS = (
    f"'(?:s|t|d|m|ll|ve|re)(?![{_LETTERS}])| ?[{_LETTERS}]+| ?[0-9]"
    f"| ?[^ \\t\\n\\r{_LETTERS}0-9]+|[ \\t\\n\\r]"
)
"""Parts that no merge joins: a word with the space before it, a digit, signs, a line's end."""
GPT2_WORDS = r"\d|'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?(?:[^\s\w]|_)+|\s+(?![^\s\d])|\s+"
"""The parts of GPT-2's tokenizer that no merge joins, with digits that stand alone."""
_PRINTED = (*range(33, 127), *range(161, 173), *range(174, 256))
BYTES = (*_PRINTED, *(byte for byte in range(256) if byte not in _PRINTED))
"""The bytes in the order of their tokens, from 1: as byte-level tokenizers number them."""
BYTE_OF = {
    chr(byte if n < len(_PRINTED) else 256 + n - len(_PRINTED)): byte
    for n, byte in enumerate(BYTES)
}
"""The byte that each sign stands for where vocabularies are written as text."""


class Tokenizer:
    """A tokenizer of byte pairs: `merges` are pairs of token numbers, the first joined first.

    pieces: the bytes of each token if its number does not follow from the merges.
    words: a regular expression of the parts that no merge joins.
    spaced: whether a space is put before a text.
    """

    def __init__(
        self,
        merges: Iterable[tuple[int, int]],
        pieces: Sequence[bytes] = (),
        words: str = WORDS,
        *,
        spaced: bool = True,
    ) -> None:
        self.merges, self._spaced = tuple(merges), spaced
        self.pieces = list(pieces) or [b"", *(bytes([byte]) for byte in BYTES)]
        number = {piece: n for n, piece in enumerate(self.pieces)}
        self._merged: dict[tuple[int, int], tuple[int, int]] = {}
        for rank, (left, right) in enumerate(self.merges):
            piece = self.pieces[left] + self.pieces[right]
            if piece not in number:
                number[piece] = len(self.pieces)
                self.pieces.append(piece)
            self._merged[left, right] = rank, number[piece]
        self._of_byte = {piece[0]: n for n, piece in enumerate(self.pieces) if len(piece) == 1}
        self._words = re.compile(words)
        self._known: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Return the start and the tokens of `text`."""
        if self._spaced and text and text[0] not in " \t\n\r":
            text = " " + text
        return [START, *(token for word in self._words.findall(text) for token in self._word(word))]

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of `tokens`; bytes of no whole character become U+FFFD."""
        return b"".join(self.pieces[n] for n in tokens).decode("utf-8", "replace").removeprefix(" ")

    def label(self, token: int) -> str:
        """Return the text of one token, with the space before it."""
        return self.pieces[token].decode("utf-8", "replace") or "<s>"

    def _word(self, word: str) -> list[int]:
        if (known := self._known.get(word)) is not None:
            return known
        tokens = [self._of_byte.get(byte, START) for byte in word.encode("utf-8", "replace")]
        while True:
            pairs = [pair for pair in pairwise(tokens) if pair in self._merged]
            if not pairs:
                break
            pair = min(pairs, key=lambda pair: self._merged[pair])
            tokens = _join(tokens, pair, self._merged[pair][1])
        if len(self._known) < 20_000:
            self._known[word] = tokens
        return tokens


def _join(tokens: list[int], pair: tuple[int, int], merged: int) -> list[int]:
    """Return `tokens` with every `pair` in them, from the left, replaced by `merged`."""
    out: list[int] = []
    for token in tokens:
        if out and (out[-1], token) == pair:
            out[-1] = merged
        else:
            out.append(token)
    return out
