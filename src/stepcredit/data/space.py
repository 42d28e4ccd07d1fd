"""The puzzles that the synthetic source draws from, all of them."""

from __future__ import annotations

import math

from stepcredit.countdown.attempts import PuzzleSpace
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.provenance.errors import UserError
from stepcredit.settings.data import SyntheticSource

MOST_NUMBER_SETS = {3: 200_000, 4: 20_000}
"""How many sets of 3 or of 4 numbers are enumerated at most: some 20 seconds, and a gigabyte, for either."""


def enumerate_puzzles(settings: SyntheticSource) -> list[Puzzle]:
    """Every puzzle of the settings once, in a fixed order.

    Raises:
        UserError: there are too many to enumerate; the message names the key to lower.
    """
    sets = math.comb(settings.largest_number, settings.numbers)
    most = MOST_NUMBER_SETS[settings.numbers]
    if sets > most:
        raise UserError(
            f"data.synthetic.largest_number is {settings.largest_number}: that makes {sets} sets of"
            f" {settings.numbers} numbers, at most {most} are enumerated; lower data.synthetic.largest_number"
        )
    space = PuzzleSpace(
        numbers=settings.numbers,
        largest_number=settings.largest_number,
        smallest_target=settings.smallest_target,
        largest_target=settings.largest_target,
        largest_intermediate=settings.largest_intermediate,
    )
    return space.puzzles()
