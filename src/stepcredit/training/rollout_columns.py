"""Columns of a rollout and its credit, the same whichever backend trains; in values that JSON and Parquet both hold."""

from __future__ import annotations

from typing import Any

from stepcredit.credit.scheme import GroupCredit, RolloutCredit
from stepcredit.rollouts import Rollout


def rollout_columns(rollout: Rollout) -> dict[str, Any]:
    """What was sampled, and what the verifier says of it."""
    return {
        "completion": rollout.text,
        "answer": rollout.verdict.answer,
        "reward": rollout.reward,
        "well_formed": rollout.verdict.well_formed,
        "finished": rollout.completion.finished,
        "tokens": len(rollout),
    }


def credit_columns(rollout: RolloutCredit, group: GroupCredit) -> dict[str, Any]:
    """A rollout's credit, with the answer bank of its group."""
    answers = group.bank.answers if group.bank else ()
    return {
        "advantage": rollout.group_advantage,
        "paragraphs": [
            {
                "text": paragraph.text,
                "tokens": paragraph.tokens,
                "potential_before": paragraph.potential_before,
                "potential_after": paragraph.potential_after,
                "shaping": paragraph.shaping,
            }
            for paragraph in rollout.paragraphs
        ],
        "likelihoods": None if rollout.likelihoods is None else rollout.likelihoods.tolist(),
        "bank": [{"answer": answer.text, "correct": answer.correct, "count": answer.count} for answer in answers],
    }
