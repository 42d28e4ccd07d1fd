"""prime-rl's orchestrator with our algorithm: `python -m stepcredit.training.prime_rl.orchestrator @ FILE`."""

from __future__ import annotations

import asyncio

from stepcredit.training.prime_rl.register import register_config, register_runtime


def main() -> None:
    register_config()
    from prime_rl.configs.orchestrator import OrchestratorConfig
    from prime_rl.utils.config import cli

    configuration = cli(OrchestratorConfig)
    register_runtime()
    from prime_rl.orchestrator.orchestrator import run_orchestrator

    asyncio.run(run_orchestrator(configuration))


if __name__ == "__main__":
    main()
