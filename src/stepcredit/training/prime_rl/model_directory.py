"""Model directories for prime-rl: the plain chat template going in, our layout coming out.

prime-rl renders messages with the tokenizer's chat template; ours are plain text (`countdown.prompt`). So it gets the
checkpoint with a template that adds nothing but the end of the completion: it then trains on the very tokens that the
native backend trains on and that evaluation prompts with.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from stepcredit.provenance.errors import UserError
from stepcredit.provenance.files import atomic_directory

PLAIN_TEMPLATE = (
    "{% if bos_token %}{{ bos_token }}{% endif %}"
    "{% for message in messages %}{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"
)
_TEMPLATE_FILE = "chat_template.jinja"
_WEIGHTS = "model.safetensors"


def write_plain(source: Path, target: Path) -> None:
    """Make `target` the checkpoint `source` with the plain chat template (weights by hard link where possible)."""
    with atomic_directory(target) as temporary:
        for file in _files(source):
            if file.name == "tokenizer_config.json":
                settings = json.loads(file.read_text(encoding="utf-8"))
                settings.pop("chat_template", None)
                (temporary / file.name).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
            elif file.name != _TEMPLATE_FILE:
                _link(file, temporary / file.name)
        (temporary / _TEMPLATE_FILE).write_text(PLAIN_TEMPLATE, encoding="utf-8")


def export(source: Path, target: Path) -> None:
    """Make `target` the weights that prime-rl wrote to `source`.

    Raises:
        UserError: they are missing, in several files, or were not written to the end (no marker `STABLE`).
    """
    if not (source / "STABLE").is_file():
        raise UserError(f"{source}: prime-rl did not finish writing these weights")
    if not (source / _WEIGHTS).is_file():
        raise UserError(
            f"{source}: has no {_WEIGHTS}; prime-rl must write one file (trainer.ckpt.weights.save_sharded)"
        )
    with atomic_directory(target) as temporary:
        for file in _files(source):
            if file.name != "STABLE":
                _link(file, temporary / file.name)


def _files(directory: Path) -> list[Path]:
    return sorted(file for file in directory.iterdir() if file.is_file())


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source.resolve(), target)
    except OSError:
        shutil.copy2(source, target)
