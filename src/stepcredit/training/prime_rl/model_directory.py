"""What prime-rl wrote, as a model directory of our layout."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_directory

_WEIGHTS = "model.safetensors"
_MARKER = "STABLE"
"""prime-rl writes it when everything else is there."""


def export(source: Path, target: Path) -> None:
    """Make `target` the weights that prime-rl wrote to `source`.

    Raises:
        UserError: they are missing, in several files, or were not written to the end (no marker `STABLE`).
    """
    if not (source / _MARKER).is_file():
        raise UserError(f"{source}: prime-rl did not finish writing these weights")
    if not (source / _WEIGHTS).is_file():
        raise UserError(
            f"{source}: has no {_WEIGHTS}; prime-rl must write one file (trainer.ckpt.weights.save_sharded)"
        )
    with atomic_directory(target) as temporary:
        for file in _files(source):
            if file.name != _MARKER:
                _link(file, temporary / file.name)


def _files(directory: Path) -> list[Path]:
    return sorted(file for file in directory.iterdir() if file.is_file())


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copy2(source, target)
