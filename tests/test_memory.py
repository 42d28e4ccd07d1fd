"""What training takes at least, against what there is."""

import pytest
import torch
from safetensors.torch import save_file

from stepcredit.memory import machine_bytes, parameters_in, pretrained_mb, require_training_memory
from stepcredit.provenance.errors import UserError
from stepcredit.settings.model import ModelSettings


def test_parameters_are_read_off_the_headers_of_every_file(tmp_path):
    save_file({"a": torch.zeros(3, 4), "b": torch.zeros(5)}, tmp_path / "one.safetensors", metadata={"format": "pt"})
    save_file({"c": torch.zeros(2, 2, dtype=torch.bfloat16)}, tmp_path / "two.safetensors")
    assert parameters_in(tmp_path) == 21


def test_a_container_leaves_less_than_the_machine_has(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal:       4096 kB\nMemFree:        1 kB\n")
    (tmp_path / "limit").write_text("1048576\n")
    (tmp_path / "none").write_text("max\n")
    assert machine_bytes(tmp_path / "meminfo", (str(tmp_path / "none"), str(tmp_path / "absent"))) == 4096 * 1024
    assert machine_bytes(tmp_path / "meminfo", (str(tmp_path / "limit"),)) == 1048576


def test_a_model_that_cannot_be_trained_here_is_refused_with_both_numbers():
    require_training_memory(134_515_008, 4 * 2**30, "this machine")
    with pytest.raises(UserError, match=r"135 million parameters takes at least 2\.0 GiB .* GPU 1 has 2\.0 GiB"):
        require_training_memory(134_515_008, 2 * 2**30, "GPU 1")


def test_the_memory_that_jobs_ask_for_grows_with_the_pretrained_model():
    assert pretrained_mb(ModelSettings(), 7) == 0
    assert pretrained_mb(ModelSettings(pretrained="there", parameters=134_515_008), 7) == 3767
