"""Registers our algorithm with prime-rl, which has no hook for one. Runs in prime-rl's environment.

`register_config` before `prime_rl.configs.orchestrator` is imported, in the launcher and in the orchestrator: they are
the ones that parse `algo`. `register_runtime` in the orchestrator.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from stepcredit.training.prime_rl import ALGORITHM


def register_config() -> None:
    """Add our configuration class to the union that prime-rl parses `algo` with.

    Raises:
        RuntimeError: the classes that hold the union were built already.
    """
    from prime_rl.configs import algorithm

    holders = {"prime_rl.configs.orchestrator": "OrchestratorConfig", "prime_rl.configs.rl": "RLConfig"}
    late = [module for module, name in holders.items() if hasattr(sys.modules.get(module), name)]
    if late:
        raise RuntimeError(f"register_config must run before {', '.join(late)} is imported")

    class ContrastivePotentialAlgoConfig(algorithm.BaseAlgoConfig):  # type: ignore[misc]
        type: Literal["contrastive_potential"] = "contrastive_potential"
        action_loss_type: ClassVar[algorithm.ActionLossType] = "rl"
        scorer: dict[str, str]
        shaping: dict[str, Any]

    members = (
        algorithm.AlgoConfig.__args__[0] if hasattr(algorithm.AlgoConfig, "__metadata__") else algorithm.AlgoConfig
    )
    algorithm.AlgoConfig = Annotated[members | ContrastivePotentialAlgoConfig, Field(discriminator="type")]


def register_runtime() -> None:
    """Tell prime-rl which class runs our algorithm."""
    from prime_rl.orchestrator import algo

    from stepcredit.training.prime_rl.algorithm import ContrastivePotentialAlgorithm

    algo.ALGORITHM_CLASSES[ALGORITHM] = ContrastivePotentialAlgorithm
