"""Kill a run at random moments, resume it each time, and compare it with one that nobody disturbed.

    python benchmarks/random_kills.py [--kills 30] [--longest 60] [--target results/smoke/tables/manifest.json]
        [--seed 0] [--configfile config/smoke.yaml] [--config 'sft={"steps": 6}']

Runs the target in a temporary directory, each time from nothing: once whole, then with a SIGKILL to every
process of the run (Snakemake, its jobs, their engines) at a random time between two seconds and the longest after
each start. A killed run that ends all the same begins again from nothing until the kills are done. Then every file
of a killed run that is no log, no state and no time must be the same as that of the whole one, manifests in all but
what is volatile, and no temporary file and no process may be left. Status 1 if not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath

import psutil

from stepcredit.reporting.names import TIMING_TABLES

ROOT = Path(__file__).parents[1]
IGNORED = ("logs/", "benchmarks/", "state/", "config.yaml")
SHORTEST = 2.0
TIMES = ("timings", *TIMING_TABLES)
TIMED = "scoring/"


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
    stopped: list[psutil.Process] = []
    while new := [process for process in tree(run) if process not in stopped]:  # what is stopped starts nothing more
        for process in new:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
        stopped += new
    for process in stopped:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    run.wait()
    _, left = psutil.wait_procs(stopped, timeout=30)
    return left


def tree(run: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The process of a run and all its descendants."""
    root = psutil.Process(run.pid)
    return [root, *root.children(recursive=True)]


def resume(directory: Path, arguments: argparse.Namespace) -> None:
    """Run to the end.

    Raises:
        SystemExit: the run failed.
    """
    unlock(directory)
    run = start(directory, arguments)
    if run.wait():
        print((directory / "output.txt").read_text(errors="replace")[-3000:])
        sys.exit(f"the run in {directory} failed with status {run.returncode}")


def unlock(directory: Path) -> None:
    """What a user does after a kill: remove the lock that Snakemake left."""
    shutil.rmtree(directory / ".snakemake/locks", ignore_errors=True)


def files_of(directory: Path) -> dict[str, bytes]:
    """The files that two runs must share, manifests without what is volatile."""
    (results,) = [path.parent for path in directory.glob("results/**/config.yaml")]
    found = {}
    for path in sorted(results.rglob("*")):
        name = path.relative_to(results).as_posix()
        if not path.is_file() or is_time(name) or name.startswith(IGNORED) or path.name == ".snakemake_timestamp":
            continue
        found[name] = path.read_bytes()
        if path.name.endswith("manifest.json"):
            content = json.loads(found[name])
            content.pop("volatile")
            for files in ("inputs", "outputs"):
                content[files] = {file: digest for file, digest in content[files].items() if not is_time(file)}
            found[name] = json.dumps(content, sort_keys=True).encode()
    return found


def is_time(name: str) -> bool:
    """Whether a file of the results holds measured times."""
    file = PurePosixPath(name)
    return file.stem in TIMES or (name.startswith(TIMED) and file.suffix == ".parquet")


def killed_run(directory: Path, kills: int, arguments: argparse.Namespace, rng: random.Random) -> tuple[int, int]:
    """Start a run until it has been killed so often or has ended; returns the kills and the processes left by them."""
    orphans = 0
    for number in range(kills):
        unlock(directory)
        run = start(directory, arguments)
        moment = rng.uniform(SHORTEST, arguments.longest)
        try:
            run.wait(moment)
        except subprocess.TimeoutExpired:
            left = kill(run)
            orphans += len(left)
            print(f"killed after {moment:.1f} s: {len(left)} processes left", flush=True)
        else:
            return number, orphans
    return kills, orphans


def differences(whole: Path, killed: Path) -> list[str]:
    """The files of which one run has other bytes than the other, or none."""
    one, two = files_of(whole), files_of(killed)
    different = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
    print(f"a killed run is whole: {len(one)} files compared, {len(different)} differ", flush=True)
    for name in different:
        print(f"differs: {name}", flush=True)
    return different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--longest", type=float, default=60.0, help="seconds from a start to a kill; a job takes 50")
    parser.add_argument("--target", default="results/smoke/tables/manifest.json")
    parser.add_argument("--configfile", default="config/smoke.yaml")
    parser.add_argument("--config", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    place = Path(tempfile.mkdtemp(prefix="random-kills-"))
    whole = place / "whole"
    resume(whole, arguments)
    kills = orphans = runs = 0
    different: list[str] = []
    while kills < arguments.kills:
        killed = place / f"killed{runs}"
        more, left = killed_run(killed, arguments.kills - kills, arguments, rng)
        kills, orphans, runs = kills + more, orphans + left, runs + 1
        resume(killed, arguments)
        different += differences(whole, killed)
    print(f"{kills} kills of {runs} runs: {len(different)} files differ, {orphans} processes left")
    if different or orphans:
        print(f"kept: {place}")
        return 1
    shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
