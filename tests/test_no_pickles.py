"""No file is read in a way that can run what it holds: weights are safetensors, tables Parquet, the rest text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[1]
FILES = sorted(file for folder in ("src", "benchmarks") for file in (ROOT / folder).rglob("*.py"))
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
CALLS = {"torch.load", "torch.save", "np.load", "numpy.load", "pd.read_pickle", "yaml.load", "yaml.unsafe_load"}
BUILT_IN = {"eval", "exec"}


def dangers(source: str) -> set[str]:
    """What a source imports or calls that could run what a file holds."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & MODULES
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module} & MODULES
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & CALLS
        elif isinstance(node, ast.Attribute):
            found |= {ast.unparse(node)} & CALLS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {node.func.id} & BUILT_IN
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_nothing_that_was_pickled_is_read(file: Path) -> None:
    assert dangers(file.read_text(encoding="utf-8")) == set()


def test_transformers_is_told_to_take_safetensors_or_a_gguf_file_only() -> None:
    loads = [
        (file.name, node)
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ForCausalLM.from_pretrained")
    ]
    assert loads
    for name, call in loads:
        words = {word.arg: ast.unparse(word.value) for word in call.keywords}
        assert words.get("use_safetensors") == "True" or "gguf_file" in words, name


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from stepcredit.modeling.model import load_model

    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1}
    model = Qwen3ForCausalLM(Qwen3Config(vocab_size=8, intermediate_size=8, head_dim=8, **shape))
    model.save_pretrained(tmp_path)
    assert load_model(tmp_path).config.vocab_size == 8
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(OSError, match=r"model\.safetensors"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    "source", ["import pickle", "from torch import load", "import torch\ntorch.load('x')", "eval('1')"]
)
def test_a_danger_is_seen(source: str) -> None:
    assert dangers(source)
