"""How much memory training takes at least, and whether there is that much: asked before any work is done."""

from __future__ import annotations

import json
import math
from pathlib import Path

from stepcredit.provenance.errors import UserError
from stepcredit.settings.model import ModelSettings

COPY_BYTES = 4
"""Of a parameter in float32."""
TRAINING_COPIES = 4
"""Weights, gradients, and the two moments of AdamW."""
_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def pretrained_mb(model: ModelSettings, copies: int) -> int:
    """MB that `copies` of a pretrained model take in float32; 0 where its size is not told: it counts as small."""
    return math.ceil((model.parameters or 0) * COPY_BYTES * copies / 1e6)


def parameters_in(directory: Path) -> int:
    """How many parameters the safetensors files of a model directory hold, by their headers alone."""
    return sum(_parameters(file) for file in directory.glob("*.safetensors"))


def machine_bytes(meminfo: Path = Path("/proc/meminfo"), limits: tuple[str, ...] = _CGROUP_LIMITS) -> int:
    """The memory of this machine, or what a container or a scheduler leaves of it."""
    lines = (line.split() for line in meminfo.read_text(encoding="utf-8").splitlines())
    found = [int(line[1]) * 1024 for line in lines if line[0] == "MemTotal:"]
    told = [Path(file).read_text(encoding="utf-8").strip() for file in limits if Path(file).is_file()]
    return min([*found, *(int(limit) for limit in told if limit.isdigit())])


def require_training_memory(parameters: int, available: int, where: str) -> None:
    """Refuse to train a model that cannot fit.

    Args:
        parameters: of the model.
        available: bytes.
        where: what has them, for the message.

    Raises:
        UserError: weights, gradients and the optimiser's moments alone take more than there is.
    """
    needed = parameters * COPY_BYTES * TRAINING_COPIES
    if needed > available:
        raise UserError(
            f"training {parameters / 1e6:,.0f} million parameters takes at least {needed / 2**30:.1f} GiB (weights,"
            f" gradients, two moments, float32), and {where} has {available / 2**30:.1f} GiB:"
            " take a smaller model, or run it where there is more"
        )


def _parameters(file: Path) -> int:
    with file.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(size))
    return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
