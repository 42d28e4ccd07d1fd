import math

import pytest
import torch

from stepcredit.modeling.logprobs import token_logprobs
from stepcredit.modeling.model import build_model, load_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.settings.model import ModelSettings
from stepcredit.studies.parity.settings import Sampling, TrainerOptions
from stepcredit.studies.parity.trainer import Sampled, Trainer, shaped_logits
from stepcredit.studies.parity.workload import write_updated_model

SMALL = ModelSettings(
    hidden_size=64, layers=2, intermediate_size=64, attention_heads=2, key_value_heads=1, head_dim=32, max_positions=512
)
LOGITS = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))


def probabilities(sampling, token=0, renormalise=True):
    shaped = shaped_logits(LOGITS, sampling, torch.tensor([token]), renormalise)
    return shaped.softmax(-1)[0].tolist()


def test_top_k_and_top_p_renormalise_over_what_is_kept():
    assert probabilities(Sampling(top_k=2)) == pytest.approx([0.625, 0.375, 0, 0])
    assert probabilities(Sampling(top_p=0.7)) == pytest.approx([0.625, 0.375, 0, 0])
    assert probabilities(Sampling(top_p=0.7, top_k=3)) == pytest.approx([0.625, 0.375, 0, 0])
    assert probabilities(Sampling(top_p=0.7), renormalise=False) == pytest.approx([0.5, 0.3, 0.15, 0.05])


def test_the_temperature_comes_before_the_filters():
    scaled = [value**2 for value in (0.5, 0.3, 0.15, 0.05)]
    kept = sum(scaled[:2])
    assert probabilities(Sampling(0.5, top_k=2)) == pytest.approx([scaled[0] / kept, scaled[1] / kept, 0, 0])


def test_a_sampled_token_is_never_dropped():
    shaped = shaped_logits(LOGITS, Sampling(top_p=0.7), torch.tensor([3]))
    assert math.isfinite(token_logprobs(shaped, torch.tensor([3])).item())


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    directory = tmp_path_factory.mktemp("parity") / "model"
    codec = TextCodec(build_tokenizer(30))
    save_model(build_model(SMALL, codec, seed=0), codec, directory)
    return directory


SAMPLES = [Sampled((1, 20, 21), (30, 31, 32, 33), (-1.0,) * 4), Sampled((1, 22), (5, 6), (-2.0,) * 2)]


def test_the_entropy_is_that_of_the_kept_tokens(checkpoint):
    scored = Trainer(checkpoint, "cpu").score(SAMPLES, Sampling(top_k=1))
    assert scored.entropies.abs().max() < math.log(2) + 1e-6  # at most the largest token and the sampled one


def test_the_size_of_the_micro_batches_changes_nothing(checkpoint):
    trainer = Trainer(checkpoint, "cpu")
    one, many = trainer.score(SAMPLES, Sampling()), trainer.score(SAMPLES, Sampling(), rows=1)
    assert torch.allclose(one.logprobs, many.logprobs, atol=1e-5)
    assert one.sampler_logprobs.tolist() == [-1.0] * 4 + [-2.0] * 2


def test_a_float32_head_changes_the_logprobs_of_a_coarse_body_and_leaves_the_bodys_error(checkpoint):
    trainer = Trainer(checkpoint, "cpu")
    exact = trainer.score(SAMPLES, Sampling()).logprobs
    coarse = trainer.score(SAMPLES, Sampling(), TrainerOptions("bfloat16")).logprobs
    mended = trainer.score(SAMPLES, Sampling(), TrainerOptions("bfloat16", float32_head=True)).logprobs
    assert not torch.equal(mended, coarse)
    assert 0 < (mended - exact).abs().max() < 0.01
    assert 0 < (coarse - exact).abs().max() < 0.01
    assert trainer.model().dtype == torch.float32  # the others are copies


def test_an_update_changes_matrices_by_the_asked_share_of_their_spread(checkpoint, tmp_path):
    write_updated_model(checkpoint, tmp_path / "new", change=0.05, seed=0)
    old, new = (dict(load_model(path).named_parameters()) for path in (checkpoint, tmp_path / "new"))
    for name, before in old.items():
        change = (new[name] - before).std().item() if before.dim() == 2 else (new[name] - before).abs().max().item()
        assert change == pytest.approx(0.05 * before.std().item() if before.dim() == 2 else 0.0, rel=0.1)
