"""How the scorers compare as traces get longer: the run's own model on its recorded rollouts, put one after the other.

Needs a finished arm with a scorer; by hand, with nothing beside it (about a minute a length):

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/scoring_by_length.py --results results --trunks 64 128 256 384

Prints for each length of a trunk the wall seconds of each scorer (medians), naive over cached, the tokens that
`cached` computes over the minimum, and the same for the least that any prefix cache of whole blocks can compute.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

import torch

from stepcredit.config_files import load_config
from stepcredit.jobs import scoring_job
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.scoring.scorer import ScoringRequest
from stepcredit.studies.scoring.benchmark import Row, benchmark, roomy
from stepcredit.studies.scoring.workload import long_request, recorded_requests

RECORDED, ANSWERS, TRUNKS = 20_000, 8, 8


def workload(recorded: Sequence[ScoringRequest], trunk: int) -> list[ScoringRequest]:
    """Trunks of `trunk` tokens from different recorded rollouts, each with a bank of up to `ANSWERS` answers."""
    stride = len(recorded) // TRUNKS
    rotations = [[*recorded[k * stride :], *recorded[: k * stride]] for k in range(TRUNKS)]
    return [long_request(rotation, trunk, scorings=ANSWERS * trunk)[0] for rotation in rotations]


def summary(rows: Sequence[Row]) -> str:
    """A line a workload."""
    by_scorer: dict[str, list[Row]] = {}
    for row in rows:
        by_scorer.setdefault(row["scorer"], []).append(row)
    wall = {scorer: statistics.median(row["wall_s"] for row in found) for scorer, found in by_scorer.items()}
    cached = by_scorer["cached"][0]
    minimum = cached["tokens_minimum"]
    times = ", ".join(f"{scorer} {seconds:.2f} s" for scorer, seconds in wall.items())
    return "\n    ".join(
        (
            f"{cached['scorings_unique']} scorings: {times}",
            f"naive / cached {wall['naive'] / wall['cached']:.1f}",
            f"cached, computed / minimum {cached['tokens_computed'] / minimum:.2f}, "
            f"least by blocks {cached['tokens_minimum_blocks'] / minimum:.2f}",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--arm", default="frozen")
    parser.add_argument("--trunks", type=int, nargs="+", default=[64, 128, 256, 384])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    job = scoring_job(load_config(arguments.results / "config.yaml"))
    model = arguments.results / "sft/model"
    rollouts = arguments.results / "rl" / arguments.arm / "seed0/rollouts.parquet"
    recorded = recorded_requests(rollouts, TextCodec.load(model), job.shaping, RECORDED)
    for name, requests in (
        ("as recorded", recorded_requests(rollouts, TextCodec.load(model), job.shaping, job.scoring.scorings)),
        *((f"{trunk} tokens", workload(recorded, trunk)) for trunk in arguments.trunks),
    ):
        rows = benchmark("run", model, requests, roomy(job, requests))
        print(f"{name}: {summary(rows)}", flush=True)


if __name__ == "__main__":
    main()
