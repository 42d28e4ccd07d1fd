"""One group through prime-rl's env-server, our algorithm and prime-rl's log, in its environment.

    python real_env_server.py rl.toml completions.json DIRECTORY

The engine is a stand-in that answers with `completions.json`, one after the other, and scores by `stub_logprob`. The
group is logged in DIRECTORY as prime-rl logs a step; the prompts that the engine was asked go to standard output.
"""

import asyncio
import json
import sys
import threading
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from stepcredit.training.prime_rl.register import register_config, register_runtime

LIMIT = 480
SECONDS_TO_STOP = 60


def stub_logprob(token, position):
    """What the stand-in says of a token there: fractions that sum without rounding."""
    return -((3 * token + 5 * position) % 16 + 1) / 16


class Engine(BaseHTTPRequestHandler):
    """`/inference/v1/generate`: a scoring where prompt log-probs are asked for, else the next completion."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens = body["token_ids"]
        if "prompt_logprobs" in body["sampling_params"]:
            rows = [{str(token): {"logprob": stub_logprob(token, at)}} for at, token in enumerate(tokens)]
            return self._answer({"prompt_logprobs": [None, *rows[1:]]})
        self.server.prompts.append(tokens)
        completion = self.server.completions.pop(0)
        sampled = [{"token": f"token_id:{token}", "logprob": -0.5} for token in completion["token_ids"]]
        return self._answer({"request_id": "r", "choices": [{**completion, "logprobs": {"content": sampled}}]})

    def do_GET(self):
        self._answer({"data": []})

    def _answer(self, fields):
        body = json.dumps(fields).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@contextmanager
def engine(port, completions):
    with ThreadingHTTPServer(("127.0.0.1", port), Engine) as server:
        server.completions, server.prompts = completions, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@asynccontextmanager
async def env_server(config, directory):
    """prime-rl's server of the one source, started as its launcher does; the block ends with it."""
    from prime_rl.entrypoints.rl import write_subconfigs

    write_subconfigs(config, directory)
    (file,) = directory.glob("envs/train/*.json")
    program = Path(sys.executable).parent / "env-server"
    process = await asyncio.create_subprocess_exec(program, "@", file, stdout=sys.stderr)
    try:
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            watch = group.create_task(ended(process))
            yield
            watch.cancel()
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), SECONDS_TO_STOP)


async def ended(process):
    raise RuntimeError(f"the env-server ended with status {await process.wait()}")


async def roll_out(config, rollouts):
    """As prime-rl's orchestrator does it, one at a time: the engine's answers have an order."""
    import verifiers.v1 as vf
    from prime_rl.orchestrator.envs import TrainEnvs
    from prime_rl.orchestrator.utils import setup_policy_inference_pool
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(config.model.name)
    _, pool = await setup_policy_inference_pool(config=config, tokenizer=tokenizer)
    (env,) = TrainEnvs(config.train.source, config.env_addresses, policy_pool=pool, renderer_config=config.renderer)
    await env.start()
    await env.algorithm.setup()
    task = next(env.tasks).data.model_dump(mode="json")
    episodes = []
    for _ in range(rollouts):
        episode = await env.run(pool.train_client, pool.model_name, cache_salt="0", task_data=task)
        assert episode.ok, episode.last_error
        episode.group = vf.GroupInfo(id="group")
        await env.algorithm.finalize_episode(episode)
        episodes.append(episode)
    await env.algorithm.finalize_group(episodes)
    await env.env_client.close()
    return episodes


async def log(episodes, directory):
    from prime_rl.configs.monitors import FileMonitorConfig
    from prime_rl.monitors.file import FileMonitor

    monitor = FileMonitor(FileMonitorConfig())
    await monitor.init(directory)
    await monitor.log(episodes, 1, "train", "effective")


async def main(file, completions, directory):
    register_config()
    from prime_rl.configs.rl import RLConfig
    from prime_rl.utils.config import cli

    config = cli(RLConfig, args=["@", str(file)])
    register_runtime()
    answers = json.loads(completions.read_text())
    with engine(config.inference.server.port, list(answers)) as server:
        async with env_server(config, directory / "configs"):
            episodes = await roll_out(config.orchestrator, len(answers))
    await log(episodes, directory)
    print(json.dumps({"prompts": server.prompts}))


if __name__ == "__main__":
    asyncio.run(main(*map(Path, sys.argv[1:])))
