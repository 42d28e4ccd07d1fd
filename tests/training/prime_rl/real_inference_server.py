"""prime-rl's inference server on a CPU with our endpoint in it: `real_inference_server.py rl.toml requests.json`.

In its environment. The server is started on the file that prime-rl's launcher writes of `rl.toml`, with the environment
that the launcher gives it, and scores the requests; its weights change by prime-rl's own client. The scores before and
after each change go to standard output, with what they took.
"""

import asyncio
import json
import os
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from stepcredit.scoring.http import http_scorer
from stepcredit.scoring.scorer import ScoringRequest
from stepcredit.scoring.transport import HttpClient
from stepcredit.training.prime_rl.register import register_config

ON_A_CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
SECONDS_TO_START = 300
SECONDS_TO_STOP = 60


@asynccontextmanager
async def inference_server(config, directory):
    """The server; the block ends with it."""
    from prime_rl.entrypoints.rl import INFERENCE_CONFIG, write_subconfigs
    from prime_rl.utils.process import DEFAULT_COMMON_ENV_VARS, DEFAULT_INFERENCE_ENV_VARS

    write_subconfigs(config, directory)
    defaults = {**DEFAULT_COMMON_ENV_VARS, **DEFAULT_INFERENCE_ENV_VARS}
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).parent / "inference",
        "@",
        directory / INFERENCE_CONFIG,
        env={**os.environ, **defaults, **config.env_vars, **config.inference.env_vars, **ON_A_CPU},
        stdout=sys.stderr,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), SECONDS_TO_STOP)


def scoring_request(trunk, boundaries, template, answers):
    return ScoringRequest(tuple(trunk), tuple(boundaries), tuple(template), tuple(map(tuple, answers)))


async def wait_for(pool, process):
    """Until the server is ready; it may end instead."""
    ready = asyncio.create_task(pool.wait_for_ready(pool.model_name, timeout=SECONDS_TO_START))
    ended = asyncio.create_task(process.wait())
    await asyncio.wait([ready, ended], return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    assert ready.done(), f"the inference server ended with status {process.returncode}"
    await ready


async def main(file, requests, first, second):
    register_config()
    from prime_rl.configs.rl import RLConfig
    from prime_rl.utils.client import InferencePool
    from prime_rl.utils.config import cli

    config = cli(RLConfig, args=["@", str(file)])
    config.inference.vllm.enforce_eager = True
    config.inference.enable_fp32_lm_head = False  # a kernel of CUDA's
    asked = [scoring_request(**fields) for fields in requests]
    (source,) = config.orchestrator.train.source
    scorer = http_scorer(source.algo.scorer["kind"], HttpClient(source.algo.scorer["url"]))
    pool = InferencePool(config.orchestrator.model.client, model_name=config.orchestrator.model.name)
    found = {}

    async def score(name):
        matrices, cost = await asyncio.to_thread(scorer.score, asked)
        found[name] = {"scores": [value for m in matrices for value in m.ravel().tolist()], **asdict(cost)}

    async with inference_server(config, file.parent / "configs") as process:
        await wait_for(pool, process)
        await score("cold")
        began = time.monotonic()
        await score("warm")
        seconds = time.monotonic() - began
        await pool.update_weights(second, step=1)
        await score("updated")
        scoring = asyncio.create_task(score("updated_meanwhile"))
        await asyncio.sleep(seconds / 4)
        await pool.update_weights(first, step=2)
        found["met"] = not scoring.done()
        await scoring
    print(json.dumps(found))


if __name__ == "__main__":
    file, requests, first, second = map(Path, sys.argv[1:])
    asyncio.run(main(file, json.loads(requests.read_text()), first, second))
