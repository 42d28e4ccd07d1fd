"""The Python that the documentation shows runs as it is printed, page by page, block after block."""

import contextlib
import io
import re
import types
from pathlib import Path

import numpy as np
import pytest
import torch

from stepcredit.modeling.logprobs import packed_logits, token_logprobs
from stepcredit.modeling.model import build_model, load_model, save_model
from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer
from stepcredit.settings.model import ModelSettings

ROOT = Path(__file__).parents[1]


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """A small model of random weights."""
    directory = tmp_path_factory.mktemp("checkpoint") / "model"
    settings = ModelSettings(hidden_size=32, layers=2, intermediate_size=64, attention_heads=2, head_dim=32)
    codec = TextCodec(build_tokenizer(30))
    save_model(build_model(settings, codec, seed=0), codec, directory)
    return directory


def run(code: str, names: dict) -> str:
    """What the code prints; `names` are those it finds, and leaves."""
    printed = io.StringIO()
    module = types.ModuleType("page")
    module.__dict__.update(names)
    with contextlib.redirect_stdout(printed):
        exec(code, module.__dict__)
    names.update(module.__dict__)
    return printed.getvalue()


def test_the_readme_runs_from_verifier_to_tree_scorer(checkpoint):
    names = {}
    verifier, loss, tree = blocks("README.md")
    assert run(verifier, names) == "1.0\n"
    run(loss, names)
    assert names["trainer"].grad.abs().min() > 0
    run(tree.replace("results/sft/model", str(checkpoint)), names)
    assert names["scores"] == pytest.approx(plainly(names["request"], load_model(checkpoint)), abs=1e-4)


def plainly(request, model) -> np.ndarray:
    """The same scores from a forward pass for each answer: [boundaries, answers]."""
    pairs = [
        (list(request.trunk[:boundary] + request.template), list(answer))
        for boundary in request.boundaries
        for answer in request.answers
    ]
    with torch.no_grad():
        logprobs = token_logprobs(*packed_logits(model, pairs))
    lengths = [len(answer) for _, answer in pairs]
    sums = [part.sum().item() for part in logprobs.split(lengths)]
    return np.array(sums).reshape(len(request.boundaries), len(request.answers))


def test_the_page_of_the_losses_runs_and_its_gradient_is_finite():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 9, generator=generator, requires_grad=True)
    trainer = logits.log_softmax(-1)
    sampler = (trainer.detach() + 0.1 * torch.randn(6, 9, generator=generator)).log_softmax(-1)
    names = {
        "logprobs": trainer[:, 0],
        "sampler_logprobs": sampler[:, 0],
        "advantages": torch.ones(6),
        "head_logprobs": trainer[:, :4],
        "head_sampler_logprobs": sampler[:, :4],
        "tokens": 6,
    }
    (page,) = blocks("docs/losses.md")
    run(page, names)
    assert torch.isfinite(logits.grad).all()
    assert logits.grad.abs().max() > 0


def test_the_page_of_the_plugin_scores_and_updates_a_server(checkpoint):
    (page,) = blocks("docs/plugin.md")
    assert page.count("path/to/checkpoint") == page.count("path/to/newer/checkpoint") == 1
    for path in ("path/to/checkpoint", "path/to/newer/checkpoint"):
        page = page.replace(path, str(checkpoint))
    page = page.replace("max_model_len=1024, kv_cache_mib=512", "max_model_len=256, kv_cache_mib=64")
    names = {}
    run(page, names)
    assert names["scores"] == pytest.approx(plainly(names["request"], load_model(checkpoint)), abs=0.05)  # bfloat16
