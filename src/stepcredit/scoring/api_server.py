"""vLLM's API server, started a little faster.

    python -m stepcredit.scoring.api_server --model DIR ...

The engine core, which vLLM spawns, begins by importing this file, too. (`vllm serve` would ask for the version of a
package called vllm, which the CPU wheel is not.)
"""

from stepcredit.vllm_process import collect_rarely

collect_rarely()

if __name__ == "__main__":
    from vllm.entrypoints.launchers.api_server.entry import main

    main()
