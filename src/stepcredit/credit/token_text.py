"""What credit needs of a tokenizer: the text of each token, and tokens of a text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol


class TokenText(Protocol):
    """A tokenizer as credit sees it (`stepcredit.modeling.tokenizer.TextCodec` is one)."""

    def pieces(self, ids: list[int] | tuple[int, ...]) -> list[str]:
        """The text of each token by itself; special tokens are empty."""
        ...

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, nothing added."""
        ...

    def decode(self, ids: list[int] | tuple[int, ...]) -> str:
        """Text of tokens, without special tokens."""
        ...


class Pieces:
    """Tokens as pieces of one text, so that a place in the text can be found among the tokens.

    Attributes:
        pieces: the text of each token; may be empty.
        text: all of them joined. It may lack the spaces that a tokenizer's decoding puts between its tokens.
        starts: [tokens + 1]: where each piece begins in `text`, and where the last ends.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        self.pieces = list(pieces)
        self.text = "".join(pieces)
        self.starts = list(accumulate(map(len, pieces), initial=0))

    def __len__(self) -> int:
        return len(self.pieces)

    def token_at(self, character: int) -> int:
        """The token that holds a character of the text; the number of tokens for the end of the text."""
        return bisect_right(self.starts, character) - 1
