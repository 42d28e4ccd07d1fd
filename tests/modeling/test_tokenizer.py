from stepcredit.modeling.tokenizer import TextCodec, build_tokenizer

TEXT = (
    "<reasoning>Try 3 + 5 = 8, 8 * 2 = 16. Too low by 4.\n\nTry (3 + 5) / 2 = 4. Found it.</reasoning>\n"
    "<solution>(3 + 5) * 2</solution>"
)


def codec() -> TextCodec:
    return TextCodec(build_tokenizer(100))


def test_canonical_text_survives_encoding_and_decoding():
    prompt = "Numbers: 3 5 2\nTarget: 16\n"
    assert codec().decode(codec().encode(TEXT)) == TEXT
    assert codec().decode(codec().encode(prompt)) == prompt


def test_every_number_word_and_tag_is_one_token():
    pieces = codec().pieces(codec().encode("<solution>(97 - 8)</solution>"))
    assert pieces == ["<solution>", "(", "97", "-", "8", ")", "</solution>"]


def test_adjacent_numbers_never_merge_into_another_number():
    numbers = codec().encode("8 97")
    assert len(numbers) == 2
    assert codec().decode(numbers) == "8 97"


def test_special_tokens_have_no_text():
    loaded = codec()
    ids = [*loaded.encode_prompt("Try"), loaded.eos_id]
    assert ids[0] == loaded.tokenizer.bos_token_id
    assert loaded.decode(ids) == "Try"
    assert loaded.pieces(ids) == ["", "Try", ""]


def test_a_saved_tokenizer_loads_as_it_was(tmp_path):
    original = codec()
    original.tokenizer.save_pretrained(tmp_path)
    loaded = TextCodec.load(tmp_path)
    assert loaded.encode(TEXT) == original.encode(TEXT)
    assert loaded.decode(original.encode(TEXT)) == TEXT
    assert loaded.eos_id == original.eos_id
