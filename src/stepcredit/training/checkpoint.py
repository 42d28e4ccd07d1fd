"""The state a training run resumes from.

It lives outside the declared outputs of the job, because Snakemake deletes those when a job fails. Randomness needs no
state: every draw is seeded by what it is for (`stepcredit.seeds`). Kept: the newest state, and the models of the steps
that were asked for. A state belongs to an identity (settings, inputs, code); a run of another identity starts anew.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from stepcredit.provenance.files import atomic_directory, atomic_path

_IDENTITY, _FINISHED, _LATEST = "identity.json", "finished.json", "latest"


@dataclass(frozen=True)
class Progress:
    """What a resumed run needs beside its weights: how far it was, and what it has logged."""

    step: int
    rows: Mapping[str, list[dict[str, Any]]]


class StateDirectory:
    """States of one run, under `directory`."""

    def __init__(self, directory: Path, identity: Mapping[str, Any], goal: Sequence[int]) -> None:
        """Open the directory, emptying it if it belongs to another identity or its goal was already reached.

        Args:
            identity: everything that the trained bytes depend on, as JSON values.
            goal: the steps asked for. Whoever starts a finished run again wants it computed again; a longer goal
                continues it.
        """
        self.directory = directory
        self._goal = list(goal)
        if self._read(_IDENTITY) != dict(identity) or self._read(_FINISHED) == self._goal:
            shutil.rmtree(directory, ignore_errors=True)
            with atomic_path(directory / _IDENTITY) as temporary:
                temporary.write_text(json.dumps(identity, sort_keys=True, indent=1), encoding="utf-8")

    def model_directory(self, step: int) -> Path:
        """Where the model of `step` stands."""
        return self.directory / f"step{step}"

    def save(
        self,
        model: PreTrainedModel,
        optimizer: torch.optim.Optimizer,
        progress: Progress,
        others: Mapping[str, PreTrainedModel] | None = None,
    ) -> None:
        """Replace the newest state, all or nothing; `others`: further models that change in training, by name."""
        with atomic_directory(self.directory / _LATEST) as temporary:
            for stem, each in {"model": model, **(others or {})}.items():
                tensors = {name: p.detach().contiguous() for name, p in each.named_parameters()}
                save_file(tensors, temporary / f"{stem}.safetensors")
            save_file(_optimizer_tensors(optimizer), temporary / "optimizer.safetensors")
            (temporary / "progress.json").write_text(
                json.dumps({"step": progress.step, "rows": progress.rows}), encoding="utf-8"
            )

    def resume(
        self,
        model: PreTrainedModel,
        optimizer: torch.optim.Optimizer,
        others: Mapping[str, PreTrainedModel] | None = None,
    ) -> Progress | None:
        """Load the newest state into the models and the optimizer; None where there is none."""
        latest = self.directory / _LATEST
        if not latest.is_dir():
            return None
        for stem, each in {"model": model, **(others or {})}.items():
            weights = load_file(latest / f"{stem}.safetensors")
            with torch.no_grad():
                for name, parameter in each.named_parameters():
                    parameter.copy_(weights[name])
        _restore_optimizer(optimizer, load_file(latest / "optimizer.safetensors"))
        stored = json.loads((latest / "progress.json").read_text(encoding="utf-8"))
        return Progress(step=stored["step"], rows=stored["rows"])

    def finish(self) -> None:
        """Note that the goal was reached and its outputs are in place."""
        with atomic_path(self.directory / _FINISHED) as temporary:
            temporary.write_text(json.dumps(self._goal), encoding="utf-8")

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self.directory / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None


def link_tree(source: Path, target: Path) -> None:
    """Make `target` a copy of the directory `source` by hard links, or by bytes where the file system has none."""
    with atomic_directory(target) as temporary:
        for file in sorted(source.iterdir()):
            try:
                os.link(file, temporary / file.name)
            except OSError:
                shutil.copy2(file, temporary / file.name)


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{key}": torch.as_tensor(value).contiguous()
        for index, entry in state.items()
        for key, value in entry.items()
    }


def _restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor]) -> None:
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
