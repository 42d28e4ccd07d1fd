"""How a process that runs vLLM is set up: the environment that vLLM reads, and Python's garbage collector.

Starting an engine costs seconds of CPU, nearly all of them imports, and a run starts dozens of them.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

_ENVIRONMENT = {
    # An offline engine runs in the process that makes it: deterministic, and weights need no copy. A server's engine
    # has a process of its own in any case, but on a CPU would start yet another one for its only worker.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # two engines must not pin themselves to the same core
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
}


def vllm_environment() -> dict[str, str]:
    """The environment variables under which every vLLM of ours runs, in this process or in a server."""
    import torch

    # On a CPU vLLM compiles one function, the ranks of log-probs, which nobody reads: two seconds of each process.
    eager = {} if torch.version.cuda else {"TORCHDYNAMO_DISABLE": "1"}
    return _ENVIRONMENT | eager


def import_vllm() -> None:
    """Import vLLM for an engine in this process; to be called before anything else imports it.

    What is loaded then is left alone by the garbage collector, which an engine that shuts down calls eight times.
    """
    for name, value in (vllm_environment() | {"VLLM_LOGGING_LEVEL": "WARNING"}).items():
        os.environ.setdefault(name, value)
    if "vllm.entrypoints.llm" not in sys.modules:
        import_module("vllm.entrypoints.llm")
        gc.freeze()


def collect_rarely() -> None:
    """Collect garbage less often: imports make a million objects and no garbage; a fifth of their time went there."""
    gc.set_threshold(100_000, 50, 100)
