"""Plugin and engine scorer in one process with vLLM: chunks, preemption, aborts, company, updates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `engine_stress.py` found; a process has one engine at most, and this one is cramped."""
    script = Path(__file__).with_name("engine_stress.py")
    ran = subprocess.run(
        [sys.executable, str(script), str(tmp_path_factory.mktemp("checkpoints"))],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    line = next(line for line in ran.stdout.splitlines() if line.startswith("RESULT "))
    return dict(json.loads(line.removeprefix("RESULT ")))


def test_the_engine_scorer_agrees_with_plain_forwards_cold_and_warm(result: dict[str, Any]) -> None:
    assert result["scorer"] < TOLERANCE


@pytest.mark.parametrize("round_", ["mixed", "mixed_again"])
def test_chunks_amid_other_traffic_do_not_change_a_score(result: dict[str, Any], round_: str) -> None:
    assert result[round_]["spans"] < TOLERANCE


def test_a_scoring_preempted_in_its_span_is_computed_anew(result: dict[str, Any]) -> None:
    assert result["preempted_scorings"] > 0
    assert result["preempted"] < 1e-6


@pytest.mark.parametrize("round_", ["mixed", "mixed_again"])
def test_ordinary_prompt_logprobs_stay_what_they_were(result: dict[str, Any], round_: str) -> None:
    assert result[round_]["whole"] < 1e-5


def test_aborted_scorings_do_not_disturb_the_others(result: dict[str, Any]) -> None:
    assert result["aborts"] < TOLERANCE


def test_weight_updates_in_process_leave_nothing_stale(result: dict[str, Any]) -> None:
    assert len(result["updated"]) == 3
    assert max(result["updated"]) < TOLERANCE


def test_a_sampled_rollout_is_scored_from_the_cache(result: dict[str, Any]) -> None:
    """Of 200 tokens of rollout: prefixes of 153 and 203 tokens have 128 and 192 in whole blocks."""
    found = result["after_sampling"]
    assert found["error"] < TOLERANCE
    assert found["cached"] >= 2 * 128 + 2 * 160
