"""Replaces the weights of a running engine: as a worker extension of vLLM or in process.

A server gets it by `--worker-extension-cls stepcredit.scoring.vllm_plugin.weights.WeightReload`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor, nn

RELOAD_METHOD = "stepcredit_reload_weights"
"""Name of the extension's method, for `collective_rpc`."""

EXTENSION_CLASS = f"{__name__}.WeightReload"


class WeightReload:
    """Mixed into vLLM's worker class."""

    def stepcredit_reload_weights(self, directory: str) -> int:
        """Load `directory`'s safetensors in place; returns the number of tensors. See `reload_weights`."""
        return reload_weights(self, checkpoint_tensors(Path(directory)))


def reload_weights(worker: Any, tensors: dict[str, Tensor]) -> int:
    """Load a checkpoint's tensors into a vLLM worker's model; the caller resets the prefix cache afterwards.

    Args:
        worker: the worker (`llm.collective_rpc(reload_weights, args=(tensors,))` passes it in).
        tensors: by their names in the Hugging Face checkpoint.

    Returns:
        the number of tensors.

    Raises:
        ValueError: the checkpoint leaves a parameter of the model as it was.
    """
    model: nn.Module = worker.model_runner.get_model()
    expected = {name for name, _ in model.named_parameters()}
    loaded = _loaded_names(worker, model, iter(tensors.items()))
    if expected - loaded:
        raise ValueError(f"the checkpoint has no weights for {', '.join(sorted(expected - loaded))}")
    redispatch_tied_head(model)
    return len(tensors)


def redispatch_tied_head(model: Any) -> None:
    """Make an unembedding that is tied to the embeddings use the new weights.

    vLLM on a CPU packs linear weights once, at load. `reload_weights` packs them anew, but not a tied
    lm_head, which
    then goes on with the old ones without a word: mean |log-prob difference| 0.07 after one update.
    """
    from vllm.platforms import current_platform

    if current_platform.is_cpu() and getattr(model.config, "tie_word_embeddings", False):
        from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm

        dispatch_cpu_unquantized_gemm(model.lm_head, remove_weight=False)


def checkpoint_tensors(directory: Path) -> dict[str, Tensor]:
    """The tensors of all safetensors files of a directory.

    Raises:
        FileNotFoundError: there are none.
    """
    from safetensors.torch import load_file

    files = sorted(directory.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{directory} holds no .safetensors file")
    return {name: tensor for file in files for name, tensor in load_file(file).items()}


def _loaded_names(worker: Any, model: Any, tensors: Iterator[tuple[str, Tensor]]) -> set[str]:
    """Run vLLM's in-place reload; which parameters it filled it only logs, so its loader is overheard."""
    loaded: set[str] = set()
    load = model.load_weights

    def overheard(weights: Any) -> Any:
        names = load(weights)
        loaded.update(names)
        return names

    model.load_weights = overheard
    try:
        worker.reload_weights(weights_iterator=tensors, is_checkpoint_format=True)
    finally:
        del model.load_weights
    return loaded
