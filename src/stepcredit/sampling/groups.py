"""Graded rollouts: prompts out to a sampler, completions back, each with its verdict."""

from __future__ import annotations

from collections.abc import Sequence

from stepcredit.countdown.prompt import prompt_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import TRUNCATED, grade
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.rollouts import Completion, Group, Rollout
from stepcredit.sampling.sampler import SAMPLED, Recording, Sampler


def sample_groups(
    sampler: Sampler,
    codec: TextCodec,
    puzzles: Sequence[Puzzle],
    seeds: Sequence[Sequence[int]],
    *,
    temperature: float,
    max_new_tokens: int,
    recording: Recording = SAMPLED,
) -> list[Group]:
    """A group of graded rollouts for each puzzle.

    Args:
        seeds: for each puzzle, one random seed a rollout.
        recording: what the sampler notes at each position.
    """
    prompts = [tuple(codec.encode_prompt(prompt_text(puzzle))) for puzzle in puzzles]
    completions = iter(
        sampler.generate(
            [prompt for prompt, group_seeds in zip(prompts, seeds, strict=True) for _ in group_seeds],
            seeds=[seed for group_seeds in seeds for seed in group_seeds],
            temperature=temperature,
            max_new_tokens=max_new_tokens,
            recording=recording,
        )
    )
    return [
        Group(puzzle, [_graded(codec, puzzle, prompt, next(completions)) for _ in group_seeds])
        for puzzle, prompt, group_seeds in zip(puzzles, prompts, seeds, strict=True)
    ]


def _graded(codec: TextCodec, puzzle: Puzzle, prompt: tuple[int, ...], completion: Completion) -> Rollout:
    text = codec.decode(completion.token_ids)
    verdict = grade(text, puzzle) if completion.finished else TRUNCATED
    return Rollout(prompt_ids=prompt, completion=completion, text=text, verdict=verdict)
