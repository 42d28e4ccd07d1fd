"""A second opinion on an answer: same rules, read off the grammar character by character, no code in common.

Recursive descent over characters, values as (numerator, denominator), the form by a regular expression.
"""

from __future__ import annotations

import re
import sys

Value = tuple[int, int]

_FORM = re.compile(
    r"[ \t\n\r\f\v]*<reasoning>(?:(?!</?(?:reasoning|solution)>).)*</reasoning>[ \t\n\r\f\v]*"
    r"<solution>((?:(?!</?(?:reasoning|solution)>).)*)</solution>[ \t\n\r\f\v]*",
    re.DOTALL,
)
_LONGEST = 2000
sys.setrecursionlimit(max(sys.getrecursionlimit(), 20_000))


class _WrongError(Exception):
    """The text is no expression, or has no value."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.numbers: list[int] = []

    def peek(self) -> str:
        while self.place < len(self.text) and self.text[self.place] in " \t\n":
            self.place += 1
        return self.text[self.place] if self.place < len(self.text) else ""

    def sum(self) -> Value:
        top, bottom = self.product()
        while (sign := self.peek()) and sign in "+-":
            self.place += 1
            other_top, other_bottom = self.product()
            signed = other_top if sign == "+" else -other_top
            top, bottom = top * other_bottom + signed * bottom, bottom * other_bottom
        return top, bottom

    def product(self) -> Value:
        top, bottom = self.factor()
        while (sign := self.peek()) and sign in "*/":
            self.place += 1
            other_top, other_bottom = self.factor()
            if sign == "*":
                top, bottom = top * other_top, bottom * other_bottom
            elif other_top == 0:
                raise _WrongError
            else:
                top, bottom = top * other_bottom, bottom * other_top
        return top, bottom

    def factor(self) -> Value:
        first = self.peek()
        if first == "(":
            self.place += 1
            value = self.sum()
            if self.peek() != ")":
                raise _WrongError
            self.place += 1
            return value
        start = self.place
        while self.place < len(self.text) and self.text[self.place] in "0123456789":
            self.place += 1
        digits = self.text[start : self.place]
        if not digits or (len(digits) > 1 and digits[0] == "0"):
            raise _WrongError
        number = int(digits)
        self.numbers.append(number)
        return number, 1


def value(text: str) -> tuple[Value, list[int]] | None:
    """The value of an expression as (numerator, denominator), and its numbers; None where it has none."""
    reader = _Reader(text)
    try:
        found = reader.sum()
    except _WrongError:
        return None
    return (found, reader.numbers) if reader.peek() == "" else None


def is_right(completion: str, nums: tuple[int, ...], target: int) -> bool:
    """Whether a completion submits an expression over the numbers that is worth the target."""
    form = _FORM.fullmatch(completion)
    if form is None:
        return False
    answer = form[1].strip(" \t\n")
    if len(answer) > _LONGEST:
        return False
    found = value(answer)
    if found is None:
        return False
    (top, bottom), numbers = found
    left = list(nums)
    for number in numbers:
        if number not in left:
            return False
        left.remove(number)
    return top == target * bottom
