"""A million answers through the verifier, against a second evaluator that shares no code with it.

    nice -n 19 python benchmarks/fuzz_verifier.py [--answers 1000000] [--seed 0]

Answers are drawn of six kinds: expressions over the puzzle's numbers, the same with repeats, right solutions,
near misses (a character changed, doubled or dropped), what language models write (equations, LaTeX, Unicode)
and noise. Prints how many answers of each reason, the slowest, and each disagreement; the
status is 1 if there is one, an exception, or an answer slower than 20 ms of CPU time.

The second evaluator (`tests/countdown/second_evaluator.py`) reads by recursive descent over characters and
calculates with numerators and denominators.
"""

from __future__ import annotations

import argparse
import gc
import random
import string
import sys
import time
from collections import Counter
from pathlib import Path

from stepcredit.countdown.prompt import TAGS, completion_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import grade

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/countdown"))
from second_evaluator import is_right, value

LIMIT = 0.020
MODEL_TEXT = (
    "=",
    " = 16",
    "×",
    "÷",
    "−",
    "\\times",
    "\\frac{1}{2}",
    "$",
    ",",
    ".",
    "^",
    "**",
    "//",
    "\n",
    "\u00a0",
    "()",
)


def expression(rng: random.Random, numbers: list[int]) -> str:
    """The numbers, in this order, joined by random operators and parentheses."""
    if len(numbers) == 1:
        return str(numbers[0])
    cut = rng.randrange(1, len(numbers))
    blank = rng.choice(("", "", " ", "\n", "\t"))
    inner = f"{expression(rng, numbers[:cut])}{blank}{rng.choice('+-*/')}{blank}{expression(rng, numbers[cut:])}"
    return f"({inner})" if rng.random() < 0.6 else inner


def draw_answer(rng: random.Random, puzzle: Puzzle, solution: str) -> str:
    """An answer of a random kind."""
    kind = rng.choice(("expression", "repeats", "solution", "near miss", "model", "noise"))
    if kind == "noise":
        alphabet = rng.choice((string.printable, "0123456789+-*/() \n\t", "()", "0123456789", "".join(TAGS), "1/"))
        return "".join(rng.choices(alphabet, k=rng.choice((1, 5, 20, 100, 1000, 3000))))
    if kind == "repeats":
        return expression(rng, rng.choices(puzzle.nums, k=rng.randrange(1, len(puzzle.nums) + 1)))
    text = expression(rng, rng.sample(puzzle.nums, rng.randrange(1, len(puzzle.nums) + 1)))
    if kind != "expression" and rng.random() < 0.8:
        text = rng.choice((solution, f"({solution})", f" {solution}\n", solution.replace("+", " +\t")))
    place = rng.randrange(len(text) + 1)
    if kind == "near miss":
        mistake = rng.choice(("", text[place : place + 1] * 2, *"0123456789+-*/() "))
        text = text[:place] + mistake + text[place + 1 :]
    if kind == "model":
        text = text[:place] + rng.choice(MODEL_TEXT) + text[place:]
    return text


def draw_puzzle(rng: random.Random) -> tuple[Puzzle, str]:
    """Two to six small numbers, mostly with what some expression over them is worth, and that expression."""
    numbers = [rng.randrange(0, 100) for _ in range(rng.randrange(2, 7))]
    text = ""
    for _ in range(20):
        text = expression(rng, rng.sample(numbers, len(numbers)))
        found = value(text)
        if found is not None and found[0][0] % found[0][1] == 0:
            return Puzzle(tuple(numbers), found[0][0] // found[0][1]), text
    return Puzzle(tuple(numbers), rng.randrange(0, 1000)), text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    reasons: Counter[str] = Counter()
    disagreements, slow, slowest = 0, 0, 0.0
    puzzle, solution = draw_puzzle(rng)
    for index in range(arguments.answers):
        if index % 20 == 0:
            puzzle, solution = draw_puzzle(rng)
        answer = draw_answer(rng, puzzle, solution)
        completion = completion_text("a", answer) if rng.random() < 0.98 else answer
        gc.disable()
        started = time.thread_time()
        verdict = grade(completion, puzzle)
        seconds = time.thread_time() - started
        gc.enable()
        slowest, slow = max(slowest, seconds), slow + (seconds > LIMIT)
        reasons[verdict.reason] += 1
        expected = is_right(completion, puzzle.nums, puzzle.target)
        if expected != bool(verdict.reward):
            disagreements += 1
            print(f"disagreement: {completion!r} on {puzzle}: {verdict}, the second evaluator says {expected}")
    for reason, count in reasons.most_common():
        print(f"{count:>9}  {reason}")
    print(f"{arguments.answers} answers, 0 exceptions, {disagreements} disagreements")
    print(f"slowest {slowest * 1000:.2f} ms of CPU time, {slow} slower than {LIMIT * 1000:.0f} ms")
    return int(disagreements > 0 or slow > 0)


if __name__ == "__main__":
    sys.exit(main())
