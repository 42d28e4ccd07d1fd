"""Drift under a constant reward, as the table of SC's appendix C describes it."""

import pytest
import torch
from random_drift import VOCABULARY, drift_by_head_size, drift_by_mismatch

from stepcredit.losses import build_loss, expected_update


def drifts(loss: str, **settings: int) -> dict[float, float]:
    return {row.mismatch: row.drift for row in drift_by_mismatch([loss], positions=5, **settings)}


def test_the_policy_gradient_drifts_by_the_whole_mismatch():
    rows = drift_by_mismatch(["reinforce"], positions=5)
    assert [row.drift for row in rows] == pytest.approx([row.total_variation for row in rows])
    assert rows[0].drift == pytest.approx(0, abs=1e-12)
    assert [row.drift for row in rows] == sorted(row.drift for row in rows)
    assert rows[-1].drift > 0.4


@pytest.mark.parametrize("loss", ["is", "sc", "tis_sc", "sc_sampled", "tis_sc_sampled"])
def test_importance_sampling_and_full_centering_do_not_drift(loss):
    assert max(drifts(loss, head_size=VOCABULARY).values()) < 1e-12


@pytest.mark.parametrize("loss", ["tis", "mis", "ppo_clip", "dppo_kl"])
def test_clipped_importance_sampling_removes_a_part_only(loss):
    assert 0.01 < drifts(loss)[2.0] < 0.6 * drifts("reinforce")[2.0]


def test_no_method_drifts_without_mismatch():
    for loss in ("reinforce", "is", "tis", "mis", "ppo_clip", "dppo_kl", "sc", "tis_sc"):
        assert drifts(loss)[0.0] < 1e-12


def test_a_larger_head_leaves_less_drift():
    rows = drift_by_head_size(positions=5)
    assert [row.drift for row in rows] == sorted((row.drift for row in rows), reverse=True)
    assert rows[-2].head_size == 32
    assert rows[-2].drift < 0.01 * rows[-2].total_variation


@pytest.mark.parametrize("name", ["sc_sampled", "tis_sc_sampled"])
def test_the_drift_of_a_sampled_form_is_the_same_with_every_pair_of_token_and_draw(name):
    """One reward for all takes a short cut; one for each token, all equal, does not."""
    p, q = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.1, 0.3, 0.6])
    short, long = (expected_update(build_loss(name), p, q, reward) for reward in (0.7, torch.full((3,), 0.7)))
    torch.testing.assert_close(short, long, atol=1e-12, rtol=0)
