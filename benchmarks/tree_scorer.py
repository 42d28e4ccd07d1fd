"""What the tree scorer costs on a step of the default experiment: random weights, synthetic rollouts, one
thread.

    python benchmarks/tree_scorer.py [--groups 16] [--rollouts 8] [--tokens-per-chunk 4096]

Prints the CPU seconds of a step, the tokens computed and the least that had to be, and the largest
difference to a plain forward pass over a sample of the scored sequences. With glibc's malloc, up to a quarter
of the time goes into handing memory back and fetching it again, unless
`MALLOC_TRIM_THRESHOLD_=268435456 MALLOC_MMAP_THRESHOLD_=268435456` is set in the environment.
"""

from __future__ import annotations

import argparse
import random
import time

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from stepcredit.scoring.scorer import LogLikelihoods, ScoringRequest, deduplicate, minimum_tokens
from stepcredit.scoring.tree import TreeScorer

VOCABULARY = 132
PROMPT, PARAGRAPHS, ANSWERS, TEMPLATE = 12, 6, 5, (1, 2, 3)
CLOSING = (4,)


def build_model(seed: int) -> Qwen3ForCausalLM:
    """The default experiment's model: 0.35M parameters."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=96,
        intermediate_size=288,
        num_hidden_layers=3,
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=512,
        tie_word_embeddings=True,
    )
    return Qwen3ForCausalLM(config).eval()


def build_requests(groups: int, rollouts: int, seed: int) -> list[ScoringRequest]:
    """One request a rollout: about six paragraphs of 18 tokens; banks of five answers of about 9 tokens."""
    rng = random.Random(seed)
    words = range(10, VOCABULARY)
    requests = []
    for _ in range(groups):
        prompt = (*rng.choices(words, k=PROMPT), 5)
        answers = [tuple(rng.choices(words, k=rng.choice((5, 7, 9)))) for _ in range(ANSWERS)]
        bank = tuple((rng.choice(answers[0][:3]), *answer, *CLOSING) for answer in answers)
        for _ in range(rollouts):
            lengths = [rng.randint(12, 24) for _ in range(rng.randint(PARAGRAPHS - 3, PARAGRAPHS + 3))]
            ends = np.cumsum([len(prompt), *lengths])
            trunk = prompt + tuple(rng.choices(words, k=sum(lengths)))
            requests.append(ScoringRequest(trunk, tuple(map(int, ends)), TEMPLATE, bank))
    return requests


@torch.inference_mode()
def largest_difference(
    model: Qwen3ForCausalLM, requests: list[ScoringRequest], scores: list[LogLikelihoods], sample: int
) -> float:
    """Against one plain causal forward pass a sequence, on a random sample of the unique scorings."""
    unique, positions = deduplicate(requests)
    values = np.empty(len(unique))
    for position, score in zip(positions, scores, strict=True):
        values[position] = score
    model.set_attn_implementation("sdpa")
    differences = []
    for index in random.Random(0).sample(range(len(unique)), min(sample, len(unique))):
        tokens, start = torch.tensor(unique[index].tokens), unique[index].start
        logprobs = model(input_ids=tokens[None]).logits[0, start - 1 : -1].log_softmax(-1)
        differences.append(abs(logprobs.gather(-1, tokens[start:, None]).double().sum().item() - values[index]))
    return max(differences)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", type=int, default=16)
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--tokens-per-chunk", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sample", type=int, default=500, help="scorings compared with a plain forward pass")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = build_model(seed=0)
    requests = build_requests(arguments.groups, arguments.rollouts, seed=0)
    minimum = minimum_tokens(requests)
    scorer = TreeScorer(model, arguments.tokens_per_chunk)
    seconds = []
    for _ in range(arguments.repeats):
        start = time.process_time()
        scores, cost = scorer.score(requests)
        seconds.append(time.process_time() - start)
    print(f"scorings          {cost.scorings}, unique {cost.scorings_unique}")
    print(f"trunk tokens      {sum(len(request.trunk) for request in requests)} before sharing")
    print(f"tokens computed   {cost.tokens_computed}, minimum {minimum}", end="")
    print(f" ({cost.tokens_computed / minimum:.4f})")
    print(f"CPU seconds       first {seconds[0]:.3f}, then {np.median(seconds[1:]):.3f} (median)")
    difference = largest_difference(model, requests, scores, arguments.sample)
    print(f"largest |difference| to a plain forward: {difference:.1e}")


if __name__ == "__main__":
    main()
