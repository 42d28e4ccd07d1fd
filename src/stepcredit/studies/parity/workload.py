"""What the audit samples: prompts, how many tokens, and the checkpoint that a weight update brings."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from stepcredit.countdown.prompt import prompt_text
from stepcredit.countdown.puzzle import Puzzle
from stepcredit.modeling.model import load_model, save_model
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.seeds import derive_seed
from stepcredit.settings.parity import ParityAuditSettings

BLOCK = 32
"""Tokens in a block of the prefix cache; a CPU takes multiples of 32."""
LONG_PROMPT = 200
"""Tokens of the shared prompt whose cached state is reused."""
LONGEST = 448
"""Tokens of a prompt and its completion, unless the model takes fewer."""
SLOW_SHARE = 3
"""Settings that run slowly, or whose effect is plain, take one in so many tokens."""


@dataclass(frozen=True)
class Workload:
    """Prompts and sizes of every setting.

    Attributes:
        prompts: of puzzles, token ids.
        long_prompt: `LONG_PROMPT` tokens, of many puzzles.
        eos_id: ends a completion.
        settings: of the audit.
    """

    prompts: Sequence[tuple[int, ...]]
    long_prompt: tuple[int, ...]
    eos_id: int
    settings: ParityAuditSettings

    @property
    def requests(self) -> int:
        """Completions of a setting: they are about three quarters of the cap long."""
        return max(4, self.settings.tokens * 4 // (3 * self.settings.max_new_tokens))

    def batch(self, slow: bool = False) -> list[tuple[int, ...]]:
        """The prompts of one setting."""
        count = max(4, self.requests // SLOW_SHARE) if slow else self.requests
        return [self.prompts[index % len(self.prompts)] for index in range(count)]

    def seeds(self, count: int) -> list[int]:
        """One random seed a request, the same in every setting."""
        return [derive_seed(self.settings.seed, "parity", index) for index in range(count)]


def build_workload(codec: TextCodec, puzzles: Sequence[Puzzle] | None, settings: ParityAuditSettings) -> Workload:
    """Prompts of the puzzles, or of random ones where None."""
    chosen = puzzles or random_puzzles(64, settings.seed)
    prompts = [tuple(codec.encode_prompt(prompt_text(puzzle))) for puzzle in chosen]
    texts = [codec.encode(prompt_text(puzzle)) for puzzle in chosen]
    long: list[int] = list(prompts[0])
    while len(long) < LONG_PROMPT:
        for text in texts:
            long += text
    return Workload(prompts, tuple(long[:LONG_PROMPT]), codec.eos_id, settings)


def random_puzzles(count: int, seed: int) -> list[Puzzle]:
    """Puzzles of three numbers up to 10; whether they can be solved does not matter here."""
    draw = random.Random(derive_seed(seed, "parity puzzles"))
    return [Puzzle(tuple(draw.randint(1, 10) for _ in range(3)), draw.randint(10, 99)) for _ in range(count)]


def write_updated_model(directory: Path, out: Path, change: float, seed: int) -> None:
    """A checkpoint whose matrices differ from `directory`'s by noise of `change` times their spread."""
    model = load_model(directory)
    generator = torch.Generator().manual_seed(derive_seed(seed, "parity update") % 2**31)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2:
                parameter += torch.randn(parameter.shape, generator=generator) * parameter.std() * change
    save_model(model, TextCodec.load(directory), out)
