"""The expression grammar: exact values, one stated rule for every oddity, bounded time."""

from __future__ import annotations

import ast
import contextlib
import operator
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcredit.countdown.expression import MAX_CHARACTERS, ExpressionError, parse

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def python_value(text: str) -> Fraction:
    """An independent evaluator: Python's own parser, exact rationals."""

    def value(node: ast.expr) -> Fraction:
        if isinstance(node, ast.Constant):
            return Fraction(node.value)
        assert isinstance(node, ast.BinOp)
        return OPERATORS[type(node.op)](value(node.left), value(node.right))

    return value(ast.parse(text, mode="eval").body)


def fault(text: str) -> str:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    return caught.value.fault


expressions = st.recursive(
    st.integers(0, 30).map(str),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", " * ", "/", "\n-\t"]), inner, st.booleans()).map(
        lambda p: f"({p[0]}{p[1]}{p[2]})" if p[3] else f"{p[0]}{p[1]}{p[2]}"
    ),
    max_leaves=12,
)


@given(expressions)
def test_values_agree_with_pythons_parser_and_exact_rationals(text: str) -> None:
    try:
        expected = python_value(f"({text})")
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            parse(text).value()
    else:
        assert parse(text).value() == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8 - 3 - 2", 3),
        ("8 - (3 - 2)", 7),
        ("24 / 4 / 2", 3),
        ("2 + 3 * 4", 14),
        ("2 * 3 + 4", 10),
        ("2 - 6 / 3 * 2", -2),
        ("1 / 3 * 3", 1),
        ("7 / 2", Fraction(7, 2)),
        ("((5))", 5),
        ("0", 0),
        ("3\n+\t5", 8),
    ],
)
def test_precedence_and_left_association(text: str, value: Fraction) -> None:
    assert parse(text).value() == value


def test_numbers_are_whole_and_in_order_with_repeats() -> None:
    assert parse("16 + (1 - 16) * 35").numbers == (16, 1, 16, 35)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "()",
        "-3+5",
        "--3+5",
        "+3",
        "3+-5",
        "2**3",
        "7//2",
        "2(3+5)",
        "(3)(5)",
        "3 5",
        "3+",
        "*3",
        "(3+5",
        "3+5)",
        ")3(",
    ],
)
def test_arithmetic_characters_that_form_no_expression_are_a_syntax_fault(text: str) -> None:
    assert fault(text) == "syntax"


@pytest.mark.parametrize(
    "text",
    [
        "007",
        "00",
        "3 + 05",
        "3.5",
        ".5*2",
        "5.",
        "1e3",
        "3!",
        "sqrt(9)",
        "3+5 # 2",
        "3,5",
        "3 = 3",
        "1_0",
        "0x1",
        "３+5",
        "٣+5",
        "²",
        "3×5",
        "6÷2",
        "5−3",
        "3 ^ 2",
        "7 % 2",
        "3\r+5",
        "3\xa0+5",
        "$3$",
        "\\frac{3}{5}",
        "\0",
    ],
)
def test_other_characters_and_leading_zeros_are_an_invalid_token(text: str) -> None:
    assert fault(text) == "invalid token"


def test_three_hundred_parentheses_are_read_and_a_hundred_thousand_refused() -> None:
    assert parse("(" * 300 + "3+5" + ")" * 300).value() == 8
    assert fault("(" * 100_000 + "3" + ")" * 100_000) == "too long"


def test_length_is_limited_to_the_character() -> None:
    assert parse(" " * (MAX_CHARACTERS - 1) + "3").value() == 3
    assert fault(" " * MAX_CHARACTERS + "3") == "too long"


@pytest.mark.parametrize(
    "text",
    ["9" * MAX_CHARACTERS, "(" * MAX_CHARACTERS, "9*" * (MAX_CHARACTERS // 2 - 1) + "9", "1/" * 999 + "7"],
    ids=["one number", "open parentheses", "product", "quotient"],
)
def test_the_longest_expressions_take_milliseconds(text: str) -> None:
    started = time.process_time()
    with contextlib.suppress(ExpressionError):
        parse(text).value()
    assert time.process_time() - started < 0.1


@settings(max_examples=300)
@given(st.text(alphabet=st.sampled_from("0123456789+-*/() .\n\t=×３a"), max_size=60) | st.text(max_size=60))
def test_any_text_is_an_expression_or_an_expression_error(text: str) -> None:
    try:
        parsed = parse(text)
    except ExpressionError:
        return
    assert len(parsed.postfix) == 2 * len(parsed.numbers) - 1
