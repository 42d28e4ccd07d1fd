"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from stepcredit.devices import Device, claim_devices, visible_devices
from stepcredit.memory import machine_bytes, parameters_in, require_training_memory
from stepcredit.provenance.errors import UserError

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


def use_device(device: str = "cpu", training: Path | None = None) -> None:
    """Claim what this process computes on before it does anything; after `use_threads`, before CUDA is initialised.

    A vLLM that was built for CUDA takes a GPU even where the trainer stays on the CPU: then one is claimed, too.

    Args:
        device: what the configuration asks the trainer to compute on.
        training: the directory of the model that is trained, if one is.

    Raises:
        UserError: there is no GPU for `device` "cuda", or too little memory for training.
    """
    import torch

    built = torch.version.cuda is not None
    if device == "cuda" and not built:
        raise UserError(
            "the configuration asks for cuda, and this torch is built for the CPU: install the package's extra"
            ' "cuda" in an environment of its own (docs/howto/scale-out.md), or set sft.device and rl.device to cpu'
        )
    claimed = claim_devices()[0] if device == "cuda" or (built and visible_devices()) else None
    if training is not None:
        require_training_memory(parameters_in(training), *_memory(claimed if device == "cuda" else None))


def _memory(device: Device | None) -> tuple[int, str]:
    """Bytes, and what has them; the machine's own where the driver does not tell."""
    if device is None or device.memory_mib is None:
        return machine_bytes(), "this machine"
    return device.memory_mib * 2**20, f"GPU {device.name}"
