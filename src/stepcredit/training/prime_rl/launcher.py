"""prime-rl's RL launcher with our algorithm: `python -m stepcredit.training.prime_rl.launcher @ FILE`.

It starts prime-rl's processes as ever, but for the orchestrator, which is ours.
"""

from __future__ import annotations

import sys
from typing import Any

from stepcredit.training.prime_rl.register import register_config

ORCHESTRATOR = "stepcredit.training.prime_rl.orchestrator"


def main() -> None:
    register_config()
    import prime_rl.entrypoints.rl as launcher

    start = launcher.Popen
    launcher.Popen = lambda command, *rest, **options: start(our_command(command), *rest, **options)
    launcher.main()


def our_command(command: Any) -> Any:
    """The command of a process, the orchestrator's replaced by ours."""
    if isinstance(command, list) and command[:2] == ["orchestrator", "@"]:
        return [sys.executable, "-m", ORCHESTRATOR, *command[1:]]
    return command


if __name__ == "__main__":
    main()
