"""A batch in parts of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def microbatches(batch: Sequence[T], rows: Callable[[T], int], max_rows: int) -> Iterator[list[T]]:
    """The members by length, in parts of at most `max_rows` rows (a longer member is a part by itself).

    Args:
        rows: tokens of a member, prompt included.
    """
    part: list[T] = []
    size = 0
    for member in sorted(batch, key=rows):
        if part and size + rows(member) > max_rows:
            yield part
            part, size = [], 0
        part.append(member)
        size += rows(member)
    if part:
        yield part
