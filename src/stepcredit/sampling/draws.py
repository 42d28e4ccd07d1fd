"""Further draws at each position, made by vLLM while it samples: what sampled score centering subtracts.

A logits processor sees the logits after temperature, draws K tokens from them and changes nothing. The draws of a
request depend on its seed and its position alone, so that neither its companions nor its row in the batch change them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from vllm.v1.sample.logits_processor import LogitsProcessor

from stepcredit.rollouts import Candidates
from stepcredit.seeds import derive_seed


class DrawLog:
    """The draws of one call of `generate`: the engine, in this process, writes to the log that a request names."""

    _open: ClassVar[dict[int, DrawLog]] = {}
    _numbers: ClassVar[Any] = itertools.count()

    def __init__(self) -> None:
        self._number = next(self._numbers)
        self._positions: dict[int, dict[int, tuple[Tensor, Tensor]]] = {}
        self._open[self._number] = self

    def request(self, index: int, seed: int, draws: int, max_new_tokens: int) -> dict[str, int]:
        """What the request `index` of the call carries as `extra_args`."""
        return {"log": self._number, "request": index, "seed": seed, "draws": draws, "positions": max_new_tokens}

    @classmethod
    def note(cls, number: int, request: int, position: int, tokens: Tensor, logprobs: Tensor) -> None:
        cls._open[number]._positions.setdefault(request, {})[position] = (tokens, logprobs)

    def take(self, requests: int) -> list[Candidates]:
        """The draws of each request, in order of position, and the end of the log."""
        del self._open[self._number]
        return [_stacked([row for _, row in sorted(self._positions[index].items())]) for index in range(requests)]


def _stacked(rows: Sequence[tuple[Tensor, Tensor]]) -> Candidates:
    tokens, logprobs = zip(*rows, strict=True)
    return Candidates(torch.stack(tokens).cpu().numpy(), torch.stack(logprobs).float().cpu().numpy())


class _Row:
    """A request that wants draws, at one row of the batch."""

    def __init__(self, arguments: dict[str, int], output: list[int]) -> None:
        self.log, self.request = arguments["log"], arguments["request"]
        self.position = len(output)  # not 0 where the engine had put the request aside and takes it up again
        generator = np.random.Generator(np.random.PCG64(derive_seed(arguments["seed"], "draws")))
        self.uniforms = torch.from_numpy(generator.random((arguments["positions"], arguments["draws"])))


class DrawTokens(LogitsProcessor):  # type: ignore[misc]
    """vLLM's logits processor: draws for the requests that ask for them, and leaves the logits as they are."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self._rows: dict[int, _Row] = {}

    def is_argmax_invariant(self) -> bool:
        """True: it runs after temperature, and not at all for greedy requests."""
        return True

    def update_state(self, batch_update: Any) -> None:
        """Follow the requests through the rows of the batch: removals, additions, moves, in this order."""
        if batch_update is None:
            return
        for index in batch_update.removed:
            self._rows.pop(index, None)
        for index, parameters, _, output in batch_update.added:
            arguments = parameters.extra_args or {}
            self._rows.pop(index, None)
            if "draws" in arguments:
                self._rows[index] = _Row(arguments, output)
        for first, second, direction in batch_update.moved:
            moved, displaced = self._rows.pop(first, None), self._rows.pop(second, None)
            if moved is not None:
                self._rows[second] = moved
            if displaced is not None and direction.name == "SWAP":
                self._rows[first] = displaced

    def apply(self, logits: Tensor) -> Tensor:
        """Draw by inverting the cumulative distribution of each row at its uniform numbers."""
        if not self._rows:
            return logits
        rows = list(self._rows.items())
        logprobs = logits[[index for index, _ in rows]].log_softmax(-1)
        cumulative = logprobs.double().exp().cumsum(-1)
        uniforms = torch.stack([row.uniforms[row.position] for _, row in rows]).to(logits.device)
        tokens = torch.searchsorted(cumulative, uniforms * cumulative[:, -1:], right=True)
        tokens = tokens.clamp(max=logits.shape[-1] - 1)
        drawn = logprobs.gather(-1, tokens)
        for (_, row), ids, values in zip(rows, tokens, drawn, strict=True):
            DrawLog.note(row.log, row.request, row.position, ids, values)
            row.position += 1
        return logits
