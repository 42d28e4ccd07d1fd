"""Kill a run at random moments, resume it each time, and compare it with one that nobody disturbed.

    python benchmarks/random_kills.py [--kills 30] [--target results/smoke/tables/manifest.json] [--seed 0]
        [--configfile config/smoke.yaml] [--config 'sft={"steps": 6}']

Runs the target twice in a temporary directory, each from nothing: once whole, and once with a SIGKILL to every
process of the run (Snakemake, its jobs, their engines) after a random part of the time that the first took.
Then every file of the two that is no log, no state, no time and no manifest must be the same, no temporary
file and no process may be left, and the manifests must agree in all but what is volatile. Status 1 if not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
IGNORED = ("logs/", "benchmarks/", "state/", "config.yaml")
TIMES = ("timings.parquet", "step_time.csv", "step_ratio.csv", "cost.csv", "wall_clock.csv", "elapsed.csv")


def start(directory: Path, arguments: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Snakemake in a session of its own, with `directory` as the working directory."""
    shutil.copytree(ROOT / "config", directory / "config", dirs_exist_ok=True)
    command = [
        *[sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "all"],
        *["--directory", str(directory), "--rerun-incomplete", arguments.target],
        *["--configfile", arguments.configfile, *(["--config", *arguments.config] if arguments.config else [])],
    ]
    output = (directory / "output.txt").open("ab")
    return subprocess.Popen(command, cwd=directory, stdout=output, stderr=output, start_new_session=True)


def kill(run: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Kill a run with all its descendants at one blow; returns those that survived."""
    processes = [psutil.Process(run.pid), *psutil.Process(run.pid).children(recursive=True)]
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
    run.wait()
    _, left = psutil.wait_procs(processes, timeout=30)
    return left


def resume(directory: Path, arguments: argparse.Namespace) -> None:
    """Run to the end.

    Raises:
        SystemExit: the run failed.
    """
    unlock(directory, arguments)
    run = start(directory, arguments)
    if run.wait():
        print((directory / "output.txt").read_text(errors="replace")[-3000:])
        sys.exit(f"the run in {directory} failed with status {run.returncode}")


def unlock(directory: Path, arguments: argparse.Namespace) -> None:
    """What a user does after a kill: remove the lock that Snakemake left."""
    shutil.rmtree(directory / ".snakemake/locks", ignore_errors=True)


def files_of(directory: Path) -> dict[str, bytes]:
    """The files that two runs must share, manifests without what is volatile."""
    (results,) = [path.parent for path in directory.glob("results/**/config.yaml")]
    found = {}
    for path in sorted(results.rglob("*")):
        name = path.relative_to(results).as_posix()
        if not path.is_file() or name.startswith(IGNORED) or path.name in TIMES or path.name == ".snakemake_timestamp":
            continue
        found[name] = path.read_bytes()
        if path.name.endswith("manifest.json"):
            content = json.loads(found[name])
            content.pop("volatile")
            for times in ("inputs", "outputs"):
                content[times] = {file: digest for file, digest in content[times].items() if not file.endswith(TIMES)}
            found[name] = json.dumps(content, sort_keys=True).encode()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--target", default="results/smoke/tables/manifest.json")
    parser.add_argument("--configfile", default="config/smoke.yaml")
    parser.add_argument("--config", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    place = Path(tempfile.mkdtemp(prefix="random-kills-"))
    whole, killed = place / "whole", place / "killed"
    for directory in (whole, killed):
        directory.mkdir()
    os.environ["OMP_NUM_THREADS"] = "1"
    began = time.monotonic()
    resume(whole, arguments)
    seconds = time.monotonic() - began
    print(f"undisturbed: {seconds:.0f} s", flush=True)
    orphans = done = 0
    for number in range(arguments.kills):
        unlock(killed, arguments)
        run = start(killed, arguments)
        moment = rng.uniform(0.1, 1.0) * seconds
        try:
            run.wait(moment)
        except subprocess.TimeoutExpired:
            left = kill(run)
            orphans += len(left)
            print(f"kill {number + 1} after {moment:.1f} s: {len(left)} processes left", flush=True)
        else:
            done += 1
            print(f"kill {number + 1} came too late: the run had ended", flush=True)
            shutil.rmtree(killed)
            killed.mkdir()
    resume(killed, arguments)
    one, two = files_of(whole), files_of(killed)
    different = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
    for name in different:
        print(f"differs: {name}")
    print(
        f"{arguments.kills - done} kills, {done} too late; {len(one)} files compared, {len(different)} differ,"
        f" {orphans} processes left"
    )
    if different or orphans:
        print(f"kept: {place}")
        return 1
    shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
