"""Arithmetic expressions over + - * / and parentheses, exact and in bounded time.

The grammar, for the verifier and for cleaning alike:

    expression = term (("+" | "-") term)*          left-associative
    term       = factor (("*" | "/") factor)*      left-associative
    factor     = integer | "(" expression ")"
    integer    = "0" | [1-9][0-9]*                 ASCII digits, no leading zeros

with spaces, tabs and newlines between tokens. There is no unary sign, decimal point, power, floor
division, implicit product, comment or comma. Parsing keeps its own stack instead of recursing, so that no
depth of parentheses overflows Python's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

MAX_CHARACTERS = 2000
"""Longest expression that is read. Bounds the time and the size of every integer, and so of every value."""

BLANKS = " \t\n"

ParseFault: TypeAlias = Literal["too long", "invalid token", "syntax"]

_TOKEN = re.compile(r"(?P<integer>(?:0|[1-9][0-9]*)(?![0-9]))|(?P<symbol>[-+*/()])|(?P<blank>[ \t\n]+)")
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2}


class ExpressionError(ValueError):
    """The text is no expression. `fault` says of which kind the mistake is."""

    def __init__(self, fault: ParseFault, detail: str) -> None:
        super().__init__(f"{fault}: {detail}")
        self.fault: ParseFault = fault


@dataclass(frozen=True)
class Expression:
    """A parsed expression in postfix order: integers, and operators that take the two values before them."""

    postfix: tuple[int | str, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The integers of the expression, from left to right, repeats included."""
        return tuple(item for item in self.postfix if isinstance(item, int))

    def value(self) -> Fraction:
        """The exact value.

        Raises:
            ZeroDivisionError: something is divided by zero.
        """
        stack: list[Fraction] = []
        for item in self.postfix:
            if isinstance(item, int):
                stack.append(Fraction(item))
            else:
                right, left = stack.pop(), stack.pop()
                stack.append(_apply(item, left, right))
        return stack.pop()


def parse(text: str) -> Expression:
    """Parse by the shunting-yard method, in time linear in the length of the text.

    Raises:
        ExpressionError: the text is not an expression of the grammar, or longer than `MAX_CHARACTERS`.
    """
    postfix: list[int | str] = []
    waiting: list[str] = []
    operand_expected = True
    for token in tokenize(text):
        if operand_expected != (token == "(" or token[0].isdigit()):
            raise ExpressionError("syntax", f"{token!r} is not expected here")
        if token == "(":
            waiting.append(token)
        elif token == ")":
            _close_parenthesis(waiting, postfix)
        elif token in _PRECEDENCE:
            while waiting and _PRECEDENCE.get(waiting[-1], 0) >= _PRECEDENCE[token]:
                postfix.append(waiting.pop())
            waiting.append(token)
            operand_expected = True
        else:
            postfix.append(int(token))
            operand_expected = False
    if operand_expected:
        raise ExpressionError("syntax", "ends where a number is expected")
    if "(" in waiting:
        raise ExpressionError("syntax", "a parenthesis is not closed")
    return Expression((*postfix, *reversed(waiting)))


def tokenize(text: str) -> list[str]:
    """The integers, operators and parentheses of a text, without the blanks between them.

    Raises:
        ExpressionError: a character belongs to no token, or the text is longer than `MAX_CHARACTERS`.
    """
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError("too long", f"{len(text)} characters, at most {MAX_CHARACTERS} are read")
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError("invalid token", f"{text[position]!r} at position {position}")
        if match.lastgroup != "blank":
            tokens.append(match.group())
        position = match.end()
    return tokens


def _close_parenthesis(waiting: list[str], postfix: list[int | str]) -> None:
    while waiting and waiting[-1] != "(":
        postfix.append(waiting.pop())
    if not waiting:
        raise ExpressionError("syntax", "')' closes nothing")
    waiting.pop()


def _apply(operator: str, left: Fraction, right: Fraction) -> Fraction:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            return left / right
