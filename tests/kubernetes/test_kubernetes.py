"""The workflow on a bucket, and in jobs that share nothing else, by the profile for Kubernetes."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import loopback_cluster
import pytest
import yaml

ROOT = Path(__file__).parents[2]
BUCKET = "bucket"
IN_BUCKET = ["--default-storage-provider", "s3", "--default-storage-prefix", f"s3://{BUCKET}/stepcredit"]
FEW = {
    "data": {"synthetic": {"demonstrations": 300}, "splits": {"validation": 8, "heldout": 8}},
    "sft": {"steps": 4, "batch_size": 8, "warmup_steps": 1, "decay_steps": 1},
}
MISSING = loopback_cluster.missing()
pytestmark = [pytest.mark.workflow, pytest.mark.skipif(bool(MISSING), reason=MISSING)]


def checkout(directory: Path) -> Path:
    """A clone of the workflow as it is here: Snakemake sends the files that git knows, below where it was started."""
    for name in ("config", "envs", "profiles", "report", "rules", "workflow"):
        shutil.copytree(ROOT / name, directory / name)
    shutil.copy(ROOT / "Snakefile", directory)
    (directory / "config/few.yaml").write_text(yaml.safe_dump(FEW))
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *command], cwd=directory, check=True)
    return directory


def run(directory: Path, environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "snakemake", "--configfile", "config/smoke.yaml", "config/few.yaml", *arguments]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return done.stdout + done.stderr


def test_on_a_bucket_every_path_of_a_command_is_where_the_bucket_is_mirrored(tmp_path):
    with loopback_cluster.bucket(tmp_path, BUCKET) as environment:
        arguments = ["--cores", "1", "--dry-run", "--printshellcmds", *IN_BUCKET]
        plan = run(checkout(tmp_path / "work"), environment, *arguments, "results/smoke/report.html")
    commands = re.findall(r"^Shell command: (stepcredit .*)", plan, re.MULTILINE)
    assert len(commands) > 30
    mirrored = f".snakemake/storage/s3/{BUCKET}/stepcredit/"
    state = re.compile(r"--state results/smoke/state/\S+|\"outdir\":\"results/smoke\"")
    for command in commands:
        assert "results/smoke" not in state.sub("", command).replace(f"{mirrored}results/smoke", ""), command
    assert any("--published config/published.yaml" in command for command in commands)


def test_jobs_that_share_a_bucket_alone_find_what_they_read(tmp_path):
    with (
        loopback_cluster.bucket(tmp_path, BUCKET) as environment,
        loopback_cluster.cluster(tmp_path / "cluster") as (cluster, configuration),
    ):
        profile = ["--profile", "profiles/kubernetes", "--default-storage-prefix", IN_BUCKET[-1]]
        often = ["--seconds-between-status-checks", "1"]
        environment["KUBECONFIG"] = str(configuration)
        run(checkout(tmp_path / "work"), environment, *profile, *often, "--", "results/smoke/eval/sft/step0.parquet")
        stored = loopback_cluster.objects(environment, BUCKET)
    assert list(cluster.codes.values()) == [0] * 5, "the data, SFT, and its evaluation"
    for name in ("eval/sft/step0.parquet", "sft/model/generation_config.json", "logs/sft.log"):
        assert stored[f"stepcredit/results/smoke/{name}"] > 0
    asked = [job["spec"]["template"]["spec"]["containers"][0]["resources"] for job in cluster.jobs.values()]
    gpus = [(each["requests"].get("nvidia.com/gpu"), each["limits"].get("nvidia.com/gpu")) for each in asked]
    assert gpus == [(None, None)] * 3 + [("0", "0")] * 2, "Kubernetes refuses GPUs without a limit"
