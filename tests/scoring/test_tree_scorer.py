"""The tree scorer against plain forward passes of the same weights."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from stepcredit.scoring.scorer import LogLikelihoods, Scoring, ScoringRequest, deduplicate, minimum_tokens
from stepcredit.scoring.tree import TreeScorer

torch.set_num_threads(1)

VOCABULARY = 40
TEMPLATE = (1, 2, 3)
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "max_position_embeddings": 256,
    "initializer_range": 0.3,  # so that context changes log-probabilities by far more than rounding
}


def qwen3() -> PreTrainedModel:
    torch.manual_seed(0)
    heads = {"num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 16}
    return Qwen3ForCausalLM(Qwen3Config(**SIZES, **heads, tie_word_embeddings=True)).eval()


def llama() -> PreTrainedModel:
    torch.manual_seed(1)
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return LlamaForCausalLM(LlamaConfig(**SIZES, **heads, tie_word_embeddings=False)).eval()


def random_tokens(rng: random.Random, length: int) -> tuple[int, ...]:
    return tuple(rng.choices(range(4, VOCABULARY), k=length))


def mixed_requests(groups: int = 4, rollouts: int = 4, seed: int = 0) -> list[ScoringRequest]:
    """All that the tree shares: prompts, first paragraphs, answers, their beginnings; in awkward orders."""
    rng = random.Random(seed)
    requests = []
    for group in range(groups):
        prompt = random_tokens(rng, rng.randint(1, 9))
        stem = random_tokens(rng, 3)
        answers = [
            stem,
            stem[:2],  # a prefix of the first
            (*stem, 7, 7),  # continues the first
            (*stem[:1], *random_tokens(rng, 4)),  # shares its first token
            random_tokens(rng, 1),
            random_tokens(rng, rng.randint(2, 8)),
            stem,  # the first again
        ]
        rng.shuffle(answers)
        shared = random_tokens(rng, 6)
        for rollout in range(rollouts):
            trunk = prompt + (shared if rollout % 2 else ()) + random_tokens(rng, rng.randint(5, 40))
            inner = [rng.randint(len(prompt), len(trunk)) for _ in range(6)]
            boundaries = (0, len(trunk), len(prompt), *inner, inner[0])
            requests.append(ScoringRequest(trunk, boundaries, TEMPLATE, tuple(answers)))
        if group % 2:
            requests.append(requests[-1])  # the same rollout again
        requests.append(  # the same prompt with another bank that overlaps the first
            ScoringRequest(prompt, (len(prompt),), TEMPLATE, (answers[0], random_tokens(rng, 2)))
        )
        requests.append(ScoringRequest(prompt, (len(prompt),), (1,), tuple(answers)))  # another template
    return requests


@torch.inference_mode()
def plain_scores(model: PreTrainedModel, scorings: list[Scoring], batch: int = 64) -> LogLikelihoods:
    """One ordinary causal sequence a scoring, padded on the right, which a causal model does not see."""
    result = []
    for first in range(0, len(scorings), batch):
        some = scorings[first : first + batch]
        ids = torch.zeros(len(some), max(len(scoring.tokens) for scoring in some), dtype=torch.int64)
        for row, scoring in enumerate(some):
            ids[row, : len(scoring.tokens)] = torch.tensor(scoring.tokens)
        logprobs = model(input_ids=ids, use_cache=False).logits.double().log_softmax(-1)
        for row, (tokens, start) in enumerate(some):
            steps = range(start, len(tokens))
            result.append(sum(logprobs[row, step - 1, tokens[step]].item() for step in steps))
    return np.array(result)


def expected(model: PreTrainedModel, requests: list[ScoringRequest]) -> list[LogLikelihoods]:
    unique, positions = deduplicate(requests)
    values = plain_scores(model, unique)
    return [values[position] for position in positions]


@pytest.mark.parametrize("tokens_per_chunk", [1, 300, 100_000])
@pytest.mark.parametrize("build", [qwen3, llama])
def test_every_score_equals_a_plain_forward_pass(build: Callable[[], PreTrainedModel], tokens_per_chunk: int) -> None:
    requests = mixed_requests()
    scores, cost = TreeScorer(build(), tokens_per_chunk).score(requests)
    assert cost.scorings > 1000
    for found, wanted in zip(scores, expected(build(), requests), strict=True):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)


def test_scores_depend_on_every_token_before_the_answer() -> None:
    """The guard of the test above: if the weights ignored their context, equal scores would prove nothing."""
    trunk = (5, 6, 7, 8)
    scores = []
    for changed in range(4):
        other = tuple(9 if place == changed else token for place, token in enumerate(trunk))
        requests = [ScoringRequest(tokens, (4,), TEMPLATE, ((10, 11),)) for tokens in (trunk, other)]
        before, after = TreeScorer(qwen3()).score(requests)[0]
        scores.append(abs(before - after).item())
    assert min(scores) > 0.01


def test_shared_tokens_are_computed_once() -> None:
    """By hand: prompt 5 6, rollouts 7 8 and 7 9, boundaries after the prompt, 7 and the end."""
    answers = ((10, 11, 4), (10, 12, 4), (10, 4))
    requests = [ScoringRequest((5, 6, 7, last), (2, 3, 4), TEMPLATE, answers) for last in (8, 9)]
    _, cost = TreeScorer(qwen3()).score(requests)
    # Trunks: 5 6 7 8 9. Four distinct prefixes, each with the tree 1 2 3 10 (11 | 12): 4 is never an input.
    assert cost.tokens_computed == minimum_tokens(requests) == 5 + 4 * 6
    assert cost.scorings == 2 * 3 * 3
    assert cost.scorings_unique == 4 * 3
    assert (cost.requests, cost.bytes, cost.tokens_cached) == (0, 0, 0)


def test_a_group_is_computed_without_waste_and_its_chunks_nearly_so() -> None:
    requests = mixed_requests(groups=1, rollouts=8)[:8]
    minimum = minimum_tokens(requests)
    whole = TreeScorer(qwen3(), 100_000).score(requests)[1]
    split = TreeScorer(qwen3(), 300).score(requests)[1]
    assert whole.tokens_computed == minimum
    assert minimum < split.tokens_computed < 1.05 * minimum


def test_groups_of_the_default_size_cost_at_most_a_twentieth_more_than_the_minimum() -> None:
    requests = mixed_requests(groups=8, rollouts=8)
    _, cost = TreeScorer(qwen3(), 1000).score(requests)
    assert cost.tokens_computed <= 1.05 * minimum_tokens(requests)


def test_a_prefix_without_any_token_is_scored() -> None:
    request = ScoringRequest((), (0,), TEMPLATE, ((5, 6), (5, 7)))
    scores, _ = TreeScorer(qwen3()).score([request])
    np.testing.assert_allclose(scores[0], expected(qwen3(), [request])[0], rtol=0, atol=1e-5)


def test_nothing_to_score_is_no_error() -> None:
    scorer = TreeScorer(qwen3())
    assert scorer.score([])[0] == []
    no_boundary = ScoringRequest((5, 6), (), TEMPLATE, ((7,),))
    no_answer = ScoringRequest((5, 6), (1, 2), TEMPLATE, ())
    scores, cost = scorer.score([no_boundary, no_answer])
    assert [score.shape for score in scores] == [(0, 1), (2, 0)]
    assert cost.tokens_computed == 0


def test_a_model_in_training_is_scored_as_it_is_now_and_trains_on() -> None:
    requests = mixed_requests(groups=1, rollouts=1)
    model = llama().train()
    scorer = TreeScorer(model)
    before = scorer.score(requests)[0]
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())

    plain = llama()
    for trained in (model, plain):
        trained.set_attn_implementation("sdpa")
        optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
        trained(input_ids=torch.arange(4, 20)[None], labels=torch.arange(4, 20)[None]).loss.backward()
        optimizer.step()
    after = TreeScorer(model).score(requests)[0]
    assert abs(after[0] - before[0]).max() > 0.01
    np.testing.assert_allclose(after[0], expected(plain, requests)[0], rtol=0, atol=1e-4)


def test_bfloat16_weights_are_scored_in_their_own_precision() -> None:
    requests = mixed_requests(groups=1, rollouts=1)
    scores, _ = TreeScorer(qwen3().to(torch.bfloat16)).score(requests)
    wanted = expected(qwen3().to(torch.bfloat16).float(), requests)
    np.testing.assert_allclose(scores[0], wanted[0], rtol=0.05, atol=0.5)


def test_large_vocabularies_are_unembedded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepcredit.scoring.tree.LOGITS_AT_ONCE", 7 * VOCABULARY)
    requests = mixed_requests(groups=1, rollouts=2)
    scores, _ = TreeScorer(qwen3()).score(requests)
    for found, wanted in zip(scores, expected(qwen3(), requests), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)


def test_sequences_longer_than_one_block_of_rows_are_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepcredit.scoring.tree_chunk.ROWS_PER_BLOCK", 7)
    monkeypatch.setattr("stepcredit.scoring.row_wise.ROWS_AT_ONCE", 16)
    requests = mixed_requests(groups=2, rollouts=4)
    scores, _ = TreeScorer(qwen3()).score(requests)
    for found, wanted in zip(scores, expected(qwen3(), requests), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)


def test_the_last_layer_attends_only_from_branches_and_is_given_back() -> None:
    """By hand: the trunk 5 6 7 8 and two branches of four tokens; every other layer attends from all twelve rows."""
    model = qwen3()
    layers, attended = model.base_model.layers, []
    handles = [
        layer.self_attn.o_proj.register_forward_hook(
            lambda _, inputs, __: attended.append(inputs[0][0].any(-1).tolist())
        )
        for layer in layers
    ]
    TreeScorer(model).score([ScoringRequest((5, 6, 7, 8), (3, 4), TEMPLATE, ((10, 11), (12,)))])
    for handle in handles:
        handle.remove()
    assert attended == [*[[True] * 12] * (len(layers) - 1), [False] * 4 + [True] * 8]
    assert not any("forward" in vars(module) for module in model.modules())


def test_the_last_mlp_sees_only_rows_that_predict_and_is_given_back() -> None:
    """By hand: 5 6 7 8, an end at each: trunk rows predict nothing, 1 2 3 10 of each branch predict from 3 on."""
    model = qwen3()
    mlp, seen = model.base_model.layers[-1].mlp, []
    handle = mlp.down_proj.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape[1]))
    TreeScorer(model).score([ScoringRequest((5, 6, 7, 8), (3, 4), TEMPLATE, ((10, 11), (12,)))])
    handle.remove()
    assert seen == [2 * 2]
    assert "forward" not in vars(mlp)
