"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

Settings = Annotated[str, typer.Option(help="The settings this stage reads, as JSON (`snakemake -p` prints them).")]
Manifest = Annotated[Path, typer.Option(help="Where the manifest is written.")]
OutDir = Annotated[Path, typer.Option(help="Directory of the outputs.")]
Model = Annotated[Path, typer.Option(help="A Hugging Face directory, or a file in it.")]
State = Annotated[Path, typer.Option(help="Directory of the state from which an interrupted run resumes.")]


def model_directory(path: Path) -> Path:
    """The directory of a model given by one of its files."""
    return path if path.is_dir() else path.parent


def model_files(directory: Path) -> list[Path]:
    """What a model directory holds, as files to record."""
    return sorted(file for file in directory.iterdir() if file.is_file())


def use_threads(threads: int | None = None) -> None:
    """Keep torch to `threads`, or to those that the rule allows (OMP_NUM_THREADS; one by default: same bits on any
    machine)."""
    if threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(threads)
    threads = int(os.environ.setdefault("OMP_NUM_THREADS", "1"))
    import torch

    torch.set_num_threads(threads)
