"""Supervised fine-tuning on demonstrations: packed batches, loss on completion tokens only.

Source: CPAS, "SFT stage" (there: 200 steps of 8, lr 1.5e-5, from a pretrained model; ours starts from random
weights and so takes more steps and a larger rate).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm
from transformers import PreTrainedModel

from stepcredit.modeling.checkpointing import gradient_checkpointing
from stepcredit.modeling.logprobs import packed_logits, token_logprobs
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.provenance.errors import UserError
from stepcredit.seeds import batch_indices
from stepcredit.settings.sft import SFTSettings
from stepcredit.training.checkpoint import Progress, StateDirectory
from stepcredit.training.microbatches import microbatches
from stepcredit.training.optimizer import build_optimizer, linear_schedule, set_learning_rate
from stepcredit.training.stopwatch import Stopwatch

Example = tuple[list[int], list[int]]
"""Token ids of a prompt and of its completion, which ends with the end-of-sequence token."""


@dataclass(frozen=True)
class SFTLog:
    """One row a step: what was computed, and (apart, because it varies from run to run) how long it took."""

    metrics: list[dict[str, Any]]
    timings: list[dict[str, Any]]


def encode_demonstrations(
    codec: TextCodec, demonstrations: Sequence[tuple[str, str]], max_tokens: int
) -> tuple[list[Example], int]:
    """Token ids of (prompt, completion) texts, and how many were longer than `max_tokens` and left out."""
    examples = [
        (codec.encode_prompt(prompt), [*codec.encode(completion), codec.eos_id])
        for prompt, completion in demonstrations
    ]
    fitting = [example for example in examples if rows(example) <= max_tokens]
    if not fitting:
        raise UserError(
            f"none of the {len(examples)} demonstrations fits into sft.max_tokens = {max_tokens}:"
            " raise it, or check data.source"
        )
    return fitting, len(examples) - len(fitting)


def sft_step(
    model: PreTrainedModel, optimizer: torch.optim.Optimizer, batch: Sequence[Example], settings: SFTSettings
) -> dict[str, float]:
    """One optimiser step on a batch; cross-entropy averaged over its completion tokens (nats)."""
    targets = sum(len(completion) for _, completion in batch)
    loss = 0.0
    limit = settings.tokens_per_microbatch
    with gradient_checkpointing(model, settings.gradient_checkpointing):
        for part in microbatches(batch, rows, limit) if limit else [batch]:
            logits, tokens = packed_logits(model, part)
            part_loss = -token_logprobs(logits, tokens).sum() / targets
            part_loss.backward()  # type: ignore[no-untyped-call]
            loss += part_loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), settings.optimizer.max_grad_norm)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return {"loss": loss, "grad_norm": norm.item(), "tokens": sum(map(rows, batch))}


def rows(example: Example) -> int:
    """Tokens of an example, prompt and completion."""
    return len(example[0]) + len(example[1])


def train_sft(
    model: PreTrainedModel, examples: Sequence[Example], settings: SFTSettings, state: StateDirectory
) -> SFTLog:
    """Train `model` in place, resuming from the newest state; saves states every `checkpoint_every` steps."""
    model.train()
    optimizer = build_optimizer(model, settings.optimizer, settings.learning_rate)
    resumed = state.resume(model, optimizer)
    metrics = list(resumed.rows["metrics"]) if resumed else []
    stopwatch = Stopwatch()
    stopwatch.rows.extend(resumed.rows["timings"] if resumed else [])
    steps = range(resumed.step + 1 if resumed else 1, settings.steps + 1)
    for step in tqdm(steps, desc="SFT", initial=settings.steps - len(steps), total=settings.steps, mininterval=5):
        rate = linear_schedule(
            step,
            peak=settings.learning_rate,
            floor=settings.min_learning_rate,
            warmup=settings.warmup_steps,
            decay=settings.decay_steps,
            total=settings.steps,
        )
        set_learning_rate(optimizer, rate)
        indices = batch_indices(len(examples), settings.batch_size, step - 1, settings.seed, "sft")
        with stopwatch.phase(step, "train"):
            row = sft_step(model, optimizer, [examples[i] for i in indices], settings)
        metrics.append({"step": step, "learning_rate": rate, **row})
        if step % settings.checkpoint_every == 0 and step < settings.steps:
            state.save(model, optimizer, Progress(step, {"metrics": metrics, "timings": stopwatch.rows}))
    return SFTLog(metrics=metrics, timings=stopwatch.rows)


def load_demonstrations(path: Path) -> list[tuple[str, str]]:
    """(prompt, completion) texts of a Parquet file of clean demonstrations."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=["prompt", "completion"])
    return list(zip(table["prompt"].to_pylist(), table["completion"].to_pylist(), strict=True))
