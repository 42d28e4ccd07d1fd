"""Runs prime-rl for one stage: writes its configuration, starts it (and the frozen scorer's server), collects.

prime-rl's environment is `.venv-prime-rl`, or what STEPCREDIT_PRIME_RL names. The scorer's server runs in ours, on
the GPU of prime-rl's inference server, whose memory the two share.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stepcredit.credit.scorers import server_settings
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_path
from stepcredit.scoring.server import ScorerServer
from stepcredit.settings.prime_rl import PrimeRLJob
from stepcredit.settings.sft import SFTSettings
from stepcredit.training.prime_rl.collect import RunLog, collect_rl, collect_sft
from stepcredit.training.prime_rl.config import (
    TRAINER_METRICS,
    RunPlace,
    rl_configuration,
    sft_configuration,
    write_toml,
)
from stepcredit.training.prime_rl.credit import API_KEY
from stepcredit.training.prime_rl.model_directory import export

ENVIRONMENT = "STEPCREDIT_PRIME_RL"
DEFAULT_ENVIRONMENT = Path(".venv-prime-rl")
_LAUNCHER = "stepcredit.training.prime_rl.launcher"
_PORTS = 3
_PORT_RANGE = range(15_000, 30_000)
_SCORER_MEMORY = "0.25"


@dataclass(frozen=True)
class RLInputs:
    """What one RL run reads.

    Attributes:
        model: the SFT checkpoint: the policy's first weights, and the frozen scorer.
        puzzles: Parquet file of puzzles.
    """

    model: Path
    puzzles: Path


def environment_directory() -> Path:
    """The directory of prime-rl's programs.

    Raises:
        UserError: there is no such environment.
    """
    root = Path(os.environ.get(ENVIRONMENT, DEFAULT_ENVIRONMENT))
    programs = root / "bin"
    if not (programs / "sft").exists():
        raise UserError(
            f"{root} is no environment with prime-rl: make one with envs/prime-rl.sh, or name yours in {ENVIRONMENT}"
            " (docs/howto/prime-rl.md)"
        )
    return programs.absolute()


def run_sft(settings: SFTSettings, model: Path, demonstrations: Path, state: Path, out_dir: Path) -> RunLog:
    """SFT with prime-rl; the model goes to `out_dir/model`.

    Raises:
        UserError: no prime-rl, or it failed or left something out.
    """
    programs = environment_directory()
    place = _place(state, "sft", model, state / "data")
    write_demonstrations(demonstrations, place.data)
    write_toml(sft_configuration(settings, place), state / "sft.toml")
    _start([str(programs / "sft"), "@", str(state / "sft.toml")], programs)
    log = collect_sft(place.directory / "metrics.jsonl", settings.steps)
    export(place.weights(settings.steps), out_dir / "model")
    return log


def run_rl(job: PrimeRLJob, seed: int, learning_rate: float, inputs: RLInputs, state: Path, out_dir: Path) -> RunLog:
    """One arm and one seed with prime-rl; the models go to `out_dir/checkpoints`.

    Raises:
        UserError: no prime-rl, or it failed or left something out.
        ServerError: the frozen scorer's server did not start.
    """
    programs = environment_directory()
    place = replace(_place(state, "rl", inputs.model, inputs.puzzles), port=free_ports())
    write_toml(rl_configuration(job, seed, learning_rate, place), state / "rl.toml")
    with ExitStack() as stack:
        keys = stack.enter_context(_frozen_scorer(job, inputs.model, place))
        _start([str(programs / "python"), "-m", _LAUNCHER, "@", str(state / "rl.toml")], programs, keys)
    log = collect_rl(
        place.directory,
        place.directory / TRAINER_METRICS,
        TextCodec.load(inputs.model),
        steps=job.steps[-1],
        max_new_tokens=job.rl.max_new_tokens,
        keep_every=job.rl.keep_rollouts_every,
    )
    for step in job.steps:
        export(place.weights(step), out_dir / "checkpoints" / f"step{step}")
    shutil.rmtree(place.output)
    return log


def write_demonstrations(source: Path, directory: Path) -> None:
    """Prompts and completions as a data set that prime-rl reads: one Parquet file in `directory`."""
    table = pq.read_table(source, columns=["prompt", "completion"])
    columns = {name: pa.array(table[name].to_pylist(), pa.string()) for name in ("prompt", "completion")}
    with atomic_path(directory / "train.parquet") as temporary:
        pq.write_table(pa.table(columns), temporary)


def _place(state: Path, name: str, model: Path, data: Path) -> RunPlace:
    state = state.absolute()
    return RunPlace(output=state / "runs", name=name, model=model.absolute(), data=data.absolute())


@contextmanager
def _frozen_scorer(job: PrimeRLJob, model: Path, place: RunPlace) -> Iterator[dict[str, str]]:
    """The server of a frozen scorer while the block runs, and the environment variable with its key."""
    scorer = job.arm.scorer
    if scorer is None or scorer.model != "frozen":
        yield {}
        return
    settings = replace(
        server_settings(job.sampler),
        port=place.scorer_port,
        block_size=16,
        allow_updates=False,
        arguments=("--gpu-memory-utilization", _SCORER_MEMORY),
    )
    with ScorerServer(model, settings) as server:
        yield {API_KEY: server.api_key}


def _start(command: list[str], programs: Path, keys: dict[str, str] | None = None) -> None:
    path = os.pathsep.join([str(programs), os.environ.get("PATH", "")])
    environment = {**os.environ, **(keys or {}), "PATH": path, "WANDB_MODE": "disabled", "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, env=environment, check=False)
    if done.returncode:
        raise UserError(
            f"prime-rl ended with status {done.returncode}: {' '.join(command)} (its logs: logs/latest of the run)"
        )


def free_ports() -> int:
    """The first of some consecutive ports that are free now.

    They lie below those that systems give to outgoing connections: a client that polls for a server which does not
    listen yet can be given the very port that it polls, and the server then cannot have it.

    Raises:
        UserError: none were found.
    """
    for first in random.SystemRandom().sample(_PORT_RANGE, 100):
        if all(_is_free(first + offset) for offset in range(_PORTS)):
            return first
    raise UserError("no three consecutive free ports were found on this machine")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
