"""Run by `test_vllm_plugin_engine.py` in a process of its own: scorings on an engine with hardly any room.

    python engine_stress.py CHECKPOINTS_DIRECTORY

Prints a JSON object; what must hold of it is in the test.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

os.environ.update(
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_CPU_OMP_THREADS_BIND="nobind",
    VLLM_LOGGING_LEVEL="WARNING",
    VLLM_PLUGINS="",
    VLLM_NO_USAGE_STATS="1",
    DO_NOT_TRACK="1",
    HF_HUB_OFFLINE="1",
)

import numpy as np
import torch
from tiny_qwen3 import build_checkpoint, flat, plain_score, plain_scores, workload
from vllm import LLM, SamplingParams

from stepcredit.scoring.engine import EngineScorer
from stepcredit.scoring.vllm_plugin.span import span_logprob, submission
from stepcredit.scoring.vllm_plugin.weights import checkpoint_tensors, reload_weights


def main(directory: Path) -> dict[str, Any]:
    torch.set_num_threads(1)
    models = [build_checkpoint(directory / str(seed), seed) for seed in range(2)]
    llm = LLM(
        model=str(directory / "0"),
        dtype="float32",
        max_model_len=512,
        enforce_eager=True,
        skip_tokenizer_init=True,
        block_size=32,
        max_num_seqs=32,
        max_num_batched_tokens=64,  # prefills are chunked, also inside spans
        num_gpu_blocks_override=24,  # less than two full sequences: requests are preempted
        kv_cache_memory_bytes=32 * 2**20,
    )
    preempted = count_preemptions(llm)
    return (
        {"scorer": scorer_error(llm, models[0])}
        | {"mixed": mixed_errors(llm, models[0]), "mixed_again": mixed_errors(llm, models[0])}
        | {"preempted": preempted_error(llm, models[0])}
        | {"aborts": abort_error(llm, models[0])}
        | {"updated": updated_errors(llm, models, directory)}
        | {"after_sampling": sampled_cost(llm, models[1])}
        | {"preempted_scorings": preempted[0]}
    )


def count_preemptions(llm: Any) -> list[int]:
    """Counts the preemptions of scorings from now on."""
    scheduler = type(llm.llm_engine.engine_core.engine_core.scheduler)
    preempt = scheduler._preempt_request
    count = [0]

    def counted(self: Any, request: Any, *rest: Any, **named: Any) -> Any:
        count[0] += bool(request.sampling_params.extra_args)
        return preempt(self, request, *rest, **named)

    scheduler._preempt_request = counted
    return count


def scorer_error(llm: Any, model: Any) -> float:
    requests = short_workload(0)
    scorer = EngineScorer(llm)
    errors = []
    for _ in range(2):
        matrices, cost = scorer.score(requests)
        assert cost.tokens_cached > 0
        errors.append(np.abs(flat(matrices) - plain_scores(model, requests)).max())
    return float(max(errors))


def short_workload(seed: int) -> list[Any]:
    """Trunks that leave room for their answers in 512 tokens."""
    requests = workload(seed, rollouts=6, boundaries=4, answers=4)
    return [type(r)(r.trunk[-380:], tuple(min(b, 380) for b in r.boundaries), r.template, r.answers) for r in requests]


def random_spans(seed: int, number: int) -> list[tuple[list[int], int]]:
    """Sequences with common beginnings and spans that start anywhere."""
    draw = random.Random(seed)
    trunk = [draw.randrange(2, 97) for _ in range(400)]
    spans = []
    for _ in range(number):
        tokens = trunk[: draw.randrange(40, 400)] + [draw.randrange(2, 97) for _ in range(draw.randrange(1, 80))]
        spans.append((tokens, draw.randrange(1, len(tokens))))
    return spans


def mixed_errors(llm: Any, model: Any) -> dict[str, float]:
    """Scorings among sampling and among vLLM's own prompt log-probs of whole sequences."""
    prompts: list[list[int]] = []
    parameters: list[Any] = []
    kinds: list[Any] = []
    for number, (tokens, start) in enumerate(random_spans(1, 90)):
        request = submission(tokens, start, use_cache=number % 4 != 0, v2_runner=False)
        prompts.append(request.prompt)
        parameters.append(request.parameters)
        kinds.append((tokens, start))
        if number % 5 == 0:
            prompts += [tokens, tokens[:60]]
            parameters.append(SamplingParams(max_tokens=1, temperature=0.0, prompt_logprobs=1, detokenize=False))
            parameters.append(SamplingParams(max_tokens=120, ignore_eos=True, detokenize=False))
            kinds += [tokens, None]
    outputs = llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], parameters, use_tqdm=False)
    spans = whole = 0.0
    for output, kind in zip(outputs, kinds, strict=True):
        if isinstance(kind, tuple):
            tokens, start = kind
            found = span_logprob(output, tokens[start:], v2_runner=False)
            assert found is not None
            wanted = plain_score(model, tokens, start, len(tokens))
            spans = max(spans, abs(found - wanted) / max(1.0, abs(wanted) / 100))
        elif kind is not None:
            total = sum(output.prompt_logprobs[at][kind[at]].logprob for at in range(1, len(kind)))
            whole = max(whole, abs(total / plain_score(model, kind, 1, len(kind)) - 1))
        else:
            assert len(output.outputs[0].token_ids) == 120
    return {"spans": spans, "whole": whole}


def preempted_error(llm: Any, model: Any) -> float:
    """Scorings that lose their blocks in mid-span: four decodes need a further block while a prefill has the rest."""
    draw = random.Random(5)
    prompts = [[draw.randrange(2, 97) for _ in range(60)] for _ in range(4)]
    parameters = [SamplingParams(max_tokens=100, ignore_eos=True, detokenize=False) for _ in prompts]
    scorings = [[draw.randrange(2, 97) for _ in range(450)] for _ in range(3)]
    requests = [submission(tokens, 40, use_cache=True, v2_runner=False) for tokens in scorings]
    outputs = llm.generate(
        [{"prompt_token_ids": prompt} for prompt in [*prompts, *(request.prompt for request in requests)]],
        [*parameters, *(request.parameters for request in requests)],
        use_tqdm=False,
    )
    errors = []
    for output, tokens, request in zip(outputs[4:], scorings, requests, strict=True):
        found = span_logprob(output, request.targets, v2_runner=False)
        assert found is not None
        errors.append(abs(found / plain_score(model, tokens, 40, len(tokens)) - 1))
    return max(errors)


def abort_error(llm: Any, model: Any) -> float:
    """Scorings of which half are aborted while they are computed."""
    engine = llm.llm_engine
    spans = {str(number): span for number, span in enumerate(random_spans(2, 40))}
    for name, (tokens, start) in spans.items():
        request = submission(tokens, start, use_cache=True, v2_runner=False)
        engine.add_request(name, {"prompt_token_ids": request.prompt}, request.parameters)
    for _ in range(3):
        engine.step()
    engine.abort_request([name for name in spans if int(name) % 2])
    worst = 0.0
    finished = 0
    while engine.has_unfinished_requests():
        for output in engine.step():
            tokens, start = spans[output.request_id]
            found = span_logprob(output, tokens[start:], v2_runner=False)
            assert found is not None
            wanted = plain_score(model, tokens, start, len(tokens))
            worst = max(worst, abs(found - wanted) / max(1.0, abs(wanted) / 100))
            finished += 1
    assert finished >= 17  # what three steps of 64 tokens had finished before is not counted
    return worst


def updated_errors(llm: Any, models: list[Any], directory: Path) -> list[float]:
    """Errors after each of several weight updates in process."""
    requests = short_workload(3)
    scorer = EngineScorer(llm)
    errors = []
    for which in (1, 0, 1):
        llm.collective_rpc(reload_weights, args=(checkpoint_tensors(directory / str(which)),))
        assert llm.reset_prefix_cache()
        matrices, _ = scorer.score(requests)
        errors.append(float(np.abs(flat(matrices) - plain_scores(models[which], requests)).max()))
    return errors


def sampled_cost(llm: Any, model: Any) -> dict[str, float]:
    """A rollout that the engine has just sampled is in the cache: only the branches are computed."""
    request = short_workload(4)[0]
    llm.reset_prefix_cache()
    parameters = SamplingParams(max_tokens=100, temperature=1.0, ignore_eos=True, detokenize=False)
    prompt = list(request.trunk[:100])
    output = llm.generate([{"prompt_token_ids": prompt}], [parameters], use_tqdm=False)[0]
    trunk = (*prompt, *output.outputs[0].token_ids)
    scoring = type(request)(trunk, (150, 200), request.template, request.answers[:2])
    matrices, cost = EngineScorer(llm).score([scoring])
    error = float(np.abs(flat(matrices) - plain_scores(model, [scoring])).max())
    return {"error": error, "computed": cost.tokens_computed, "cached": cost.tokens_cached}


if __name__ == "__main__":
    print("RESULT " + json.dumps(main(Path(sys.argv[1]))))
