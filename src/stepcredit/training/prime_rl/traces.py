"""verifiers' traces as our rollouts: what the algorithm is given, and what prime-rl leaves in its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from stepcredit.countdown.puzzle import Puzzle
from stepcredit.countdown.verifier import TRUNCATED, grade
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.rollouts import Completion, Rollout

INFO_KEY = "stepcredit"
"""Under which the algorithm leaves its credit in `trace.info`, which prime-rl records."""


class Node(Protocol):
    """One message of a trace, with the tokens it adds."""

    token_ids: list[int]
    mask: list[bool]
    logprobs: list[float]


class Data(Protocol):
    """The task of a trace: a puzzle."""

    numbers: list[int]
    target: int


class Task(Protocol):
    data: Data


class Trace(Protocol):
    """What we read of `verifiers.v1.Trace`, and `info`, which we write to."""

    task: Task
    nodes: list[Node]
    info: dict[str, Any]

    @property
    def is_truncated(self) -> bool: ...


def rollout_of(trace: Trace, codec: TextCodec) -> tuple[Puzzle, Rollout]:
    """The puzzle and the graded rollout of a single-turn trace; the verdict is computed anew.

    Raises:
        ValueError: sampled tokens do not come last and in one run (the trace has several turns).
    """
    tokens = [token for node in trace.nodes for token in node.token_ids]
    mask = [sampled for node in trace.nodes for sampled in node.mask]
    logprobs = [value for node in trace.nodes for value in node.logprobs]
    return _rollout(trace.task.data.numbers, trace.task.data.target, tokens, mask, logprobs, trace.is_truncated, codec)


def recorded_rollout(record: dict[str, Any], codec: TextCodec) -> tuple[Puzzle, Rollout]:
    """The same of a trace as prime-rl records it (a JSON object of `traces.jsonl`)."""
    data, nodes = record["task"]["data"], record["nodes"]
    tokens = [token for node in nodes for token in node.get("token_ids", [])]
    mask = [sampled for node in nodes for sampled in node.get("mask", [])]
    logprobs = [value for node in nodes for value in node.get("logprobs", [])]
    calls = [call for call in record.get("calls", []) if not call.get("error")]
    cut = record.get("stop_condition") in _CUT or bool(calls and calls[-1].get("finish_reason") == "length")
    return _rollout(data["numbers"], data["target"], tokens, mask, logprobs, cut, codec)


_CUT = ("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "context_length")
"""Values of `stop_condition` for which verifiers calls a trace truncated."""


def _rollout(
    numbers: Sequence[int],
    target: int,
    tokens: list[int],
    mask: list[bool],
    logprobs: list[float],
    truncated: bool,
    codec: TextCodec,
) -> tuple[Puzzle, Rollout]:
    start = mask.index(True)
    if not all(mask[start:]) or len(mask) != len(tokens):
        raise ValueError("a Countdown rollout is one turn: its sampled tokens come last")
    puzzle = Puzzle(tuple(numbers), target)
    completion = Completion(tuple(tokens[start:]), tuple(logprobs), finished=not truncated)
    text = codec.decode(completion.token_ids)
    verdict = TRUNCATED if truncated else grade(text, puzzle)
    return puzzle, Rollout(tuple(tokens[:start]), completion, text, verdict)
