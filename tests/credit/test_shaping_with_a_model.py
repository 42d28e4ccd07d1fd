"""The whole scheme with a real model and tokenizer, against its definition written out by sequence."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from stepcredit.countdown.prompt import completion_text, prompt_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import grade
from stepcredit.credit.contrastive_potential import ContrastivePotential
from stepcredit.modeling.model import build_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.rollouts import Completion, Group, Rollout
from stepcredit.scoring.tree import TreeScorer
from stepcredit.settings.arm import ShapingSettings
from stepcredit.settings.model import ModelSettings

torch.set_num_threads(1)

PUZZLE = Puzzle((3, 5, 2), 16)
COMPLETIONS = [
    completion_text("Try 3 + 5 = 8, 8 * 2 = 16.\n\nFound it.", "(3 + 5) * 2"),
    completion_text("Try 3 * 5 = 15, 15 + 2 = 17. Too high by 1.\n\nTry 3 + 5 = 8.", "3 * 5 + 2"),
    completion_text("Try 5 - 3 = 2.", "3 * 5 + 2"),
]


def sampled(codec: TextCodec) -> Group:
    rollouts = []
    for text in COMPLETIONS:
        ids = (*codec.encode(text), codec.eos_id)
        completion = Completion(ids, (-1.0,) * len(ids), finished=True)
        prompt = tuple(codec.encode_prompt(prompt_text(PUZZLE)))
        rollouts.append(Rollout(prompt, completion, codec.decode(ids), grade(codec.decode(ids), PUZZLE)))
    return Group(PUZZLE, rollouts)


def test_the_potential_is_what_plain_forward_passes_over_the_text_say() -> None:
    codec = TextCodec(build_tokenizer(100))
    model = build_model(ModelSettings(hidden_size=32, layers=2), codec, seed=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 8  # logits that tell answers apart
    group = sampled(codec)
    credit = ContrastivePotential(TreeScorer(model), codec, ShapingSettings(clip=100))
    credits, metrics = credit.assign([group])

    plain = build_model(ModelSettings(hidden_size=32, layers=2), codec, seed=0)
    plain.load_state_dict(model.state_dict())
    plain.set_attn_implementation("sdpa")

    def log_likelihood(reasoning: str, answer: str) -> float:
        start = codec.encode_prompt(prompt_text(PUZZLE)) + codec.encode(
            f"<reasoning>{reasoning}</reasoning>\n<solution>"
        )
        target = codec.encode(f"{answer}</solution>")
        with torch.no_grad():
            logits = plain(input_ids=torch.tensor([start + target])).logits[0, len(start) - 1 : -1]
        return float(logits.log_softmax(-1).gather(-1, torch.tensor(target)[:, None]).double().sum())

    def potential(reasoning: str) -> float:
        correct, incorrect = (log_likelihood(reasoning, answer) for answer in ("(3 + 5) * 2", "3 * 5 + 2"))
        return correct - incorrect

    reasoning = "Try 3 * 5 = 15, 15 + 2 = 17. Too high by 1.\n\nTry 3 + 5 = 8."
    wanted = [potential(""), potential(reasoning.split("\n\n")[0]), potential(reasoning)]
    assert credits[0].rollouts[1].potential == pytest.approx(wanted, abs=1e-4)
    assert max(map(abs, np.diff(wanted))) > 0.01

    rollout = credits[0].rollouts[1]
    first, second = (0.1 * (0.99 * after - before) - 1 / 3 for before, after in pairwise(wanted))
    lengths = [len(codec.encode("<reasoning>" + reasoning.split("\n\n")[0] + "\n\n")), 7]
    steps = [first] * lengths[0] + [second] * lengths[1]
    assert rollout.advantages[: sum(lengths)].tolist() == pytest.approx(steps, abs=1e-4)
    assert rollout.advantages[sum(lengths) :].tolist() == pytest.approx(
        [-1 / 3] * (len(rollout.advantages) - sum(lengths))
    )
    assert metrics["scorings"] == (3 + 3 + 2) * 2
    assert metrics["scorings_unique"] == (3 + 2 + 1) * 2  # the three rollouts share the empty prefix
    assert math.isfinite(metrics["potential_last"] or math.nan)
