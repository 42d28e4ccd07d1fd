"""Random seeds as a function of what they are for.

Nothing in a run draws from a shared random stream: each draw has a seed derived from the run's seed and a name, so that
a resumed run, a reordered one and a rerun of one part see the same numbers, and two arms with the same seed see the
same puzzles and the same sampling noise.
"""

from __future__ import annotations

import functools
import hashlib
import random


def derive_seed(*parts: int | str) -> int:
    """A seed in [0, 2**48) that depends on every part and on their order."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


@functools.lru_cache(maxsize=4)
def epoch_order(size: int, epoch: int, *parts: int | str) -> tuple[int, ...]:
    """A permutation of range(size) for one pass over the data."""
    order = list(range(size))
    random.Random(derive_seed(*parts, "epoch", epoch)).shuffle(order)
    return tuple(order)


def batch_indices(size: int, batch: int, step: int, *parts: int | str) -> list[int]:
    """Indices of the `step`-th batch (from 0) when passing over `size` items again and again, reshuffled each time."""
    positions = (divmod(position, size) for position in range(step * batch, (step + 1) * batch))
    return [epoch_order(size, epoch, *parts)[offset] for epoch, offset in positions]
