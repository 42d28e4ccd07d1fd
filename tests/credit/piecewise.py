"""A tokenizer whose tokens are whatever pieces a test wants, and groups made of such pieces."""

from __future__ import annotations

from collections.abc import Sequence

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import TRUNCATED, grade
from stepcredit.rollouts import Completion, Group, Rollout

END = "<eos>"
PUZZLE = Puzzle((3, 5, 2), 8)
PROMPT = "Numbers: 3 5 2\nTarget: 8\n"


class Piecewise:
    """Encodes a text character by character; `ids` gives any pieces tokens of their own."""

    def __init__(self) -> None:
        self.vocabulary: dict[str, int] = {}

    def ids(self, pieces: Sequence[str]) -> tuple[int, ...]:
        return tuple(self.vocabulary.setdefault(piece, len(self.vocabulary)) for piece in pieces)

    def encode(self, text: str) -> list[int]:
        return list(self.ids(text))

    def pieces(self, ids: list[int] | tuple[int, ...]) -> list[str]:
        known = list(self.vocabulary)
        return ["" if known[token] == END else known[token] for token in ids]

    def decode(self, ids: list[int] | tuple[int, ...]) -> str:
        return "".join(self.pieces(ids))


def rollout(tokens: Piecewise, pieces: Sequence[str], finished: bool = True) -> Rollout:
    """A graded rollout of PUZZLE; the end-of-sequence token is added to a finished one."""
    ids = tokens.ids([*pieces, END] if finished else pieces)
    text = "".join(pieces)
    return Rollout(
        prompt_ids=tuple(tokens.encode(PROMPT)),
        completion=Completion(ids, (-1.0,) * len(ids), finished),
        text=text,
        verdict=grade(text, PUZZLE) if finished else TRUNCATED,
    )


def group(tokens: Piecewise, *completions: Sequence[str]) -> Group:
    """A group of finished rollouts."""
    return Group(PUZZLE, [rollout(tokens, pieces) for pieces in completions])
