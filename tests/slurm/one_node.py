"""A Slurm of one node on loopback, from Debian's packages slurm-wlm and munge, with no accounting."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel")
SEARCH = f"{os.environ.get('PATH', '')}:/usr/sbin"
CONFIGURED = Path("/etc/slurm/slurm.conf")
"""Where `srun` looks inside a job: the executor plugin hides every SLURM_* variable from it."""
CONFIGURATION = """\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthInfo=socket={munge}
SlurmctldPort={controller_port}
SlurmdPort={node_port}
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MinJobAge=600
KillWait=2
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={megabytes} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why no cluster can be started here; empty if one can."""
    absent = [program for program in PROGRAMS if not shutil.which(program, path=SEARCH)]
    if absent:
        return f"needs {', '.join(absent)}: apt-get install -y slurm-wlm munge"
    if CONFIGURED.exists() or CONFIGURED.is_symlink():
        return f"a Slurm is configured here already: {CONFIGURED}"
    return "" if os.getuid() == 0 else "starting a Slurm needs root"


@contextmanager
def cluster(directory: Path) -> Iterator[dict[str, str]]:
    """A running cluster; yields the environment in which `sbatch`, `squeue` and `scancel` talk to it."""
    host = socket.gethostname().split(".")[0]
    for name in ("state", "spool", "munge"):
        (directory / name).mkdir(parents=True)
    directory.joinpath("munge").chmod(0o711)
    key = directory / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    munge = directory / "munge" / "socket"
    text = CONFIGURATION.format(
        host=host,
        munge=munge,
        directory=directory,
        controller_port=_free_port(),
        node_port=_free_port(),
        cpus=os.cpu_count(),
        megabytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 - 512,
    )
    (directory / "slurm.conf").write_text(text)
    environment = {**os.environ, "PATH": SEARCH, "SLURM_CONF": str(directory / "slurm.conf")}
    own = {f"{name}-file": directory / "munge" / name for name in ("pid", "log", "seed")}
    files = {"key-file": key, "socket": munge, **own}
    daemons = (
        ["munged", "--foreground", "--force", *(f"--{option}={file}" for option, file in files.items())],
        ["slurmctld", "-D"],
        ["slurmd", "-D", "-N", host],
    )
    with ExitStack() as running:
        CONFIGURED.parent.mkdir(exist_ok=True)
        CONFIGURED.symlink_to(directory / "slurm.conf")
        running.callback(CONFIGURED.unlink)
        for command in daemons:
            running.enter_context(_daemon(command, directory / f"{command[0]}.log", environment))
            time.sleep(1)
        _wait_until_idle(environment, directory)
        yield environment


@contextmanager
def _daemon(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_idle(environment: dict[str, str], directory: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        told = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, text=True, check=False
        )
        if told.stdout.strip() in ("idle", "mixed"):
            return
        time.sleep(0.5)
    logs = "\n".join(file.read_text(errors="replace")[-1500:] for file in sorted(directory.glob("*.log")))
    raise RuntimeError(f"Slurm did not come up:\n{logs}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
