"""The baseline's credit."""

from __future__ import annotations

import numpy as np
import pytest
from piecewise import Piecewise, group

from stepcredit.credit.group_advantage import GroupAdvantage, group_advantage

RIGHT = ["<reasoning>", "a", "\n\n", "b", "</reasoning>", "<solution>", "3+5", "</solution>"]
WRONG = ["<reasoning>", "a", "</reasoning>", "<solution>", "2", "</solution>"]


def test_the_mean_is_subtracted_and_nothing_is_divided() -> None:
    assert group_advantage([1, 0, 0, 0]).tolist() == [0.75, -0.25, -0.25, -0.25]
    assert group_advantage([1, 1, 1]).tolist() == [0, 0, 0]


def test_every_completion_token_has_its_rollouts_advantage() -> None:
    tokens = Piecewise()
    credits, metrics = GroupAdvantage(tokens).assign([group(tokens, RIGHT, WRONG, WRONG, WRONG)])
    right, wrong, *_ = credits[0].rollouts
    assert right.advantages.dtype == np.float32
    assert right.advantages.tolist() == pytest.approx([0.75] * 9)  # eight pieces and the end token
    assert wrong.advantages.tolist() == pytest.approx([-0.25] * 7)
    assert (right.group_advantage, wrong.group_advantage) == (0.75, -0.25)
    assert metrics == {}


def test_paragraphs_are_reported_without_a_score() -> None:
    tokens = Piecewise()
    credits, _ = GroupAdvantage(tokens).assign([group(tokens, RIGHT, WRONG)])
    paragraphs = credits[0].rollouts[0].paragraphs
    assert [(paragraph.text, paragraph.tokens) for paragraph in paragraphs] == [
        ("<reasoning>a\n\n", 3),
        ("b", 1),
    ]
    assert all(p.potential_before is None and p.potential_after is None for p in paragraphs)
    assert [p.shaping for p in paragraphs] == [0.0, 0.0]
    assert credits[0].rollouts[0].potential == []
    assert credits[0].bank is None
