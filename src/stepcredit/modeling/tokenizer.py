"""A small tokenizer for Countdown: one token a number, word, operator or tag.

Text in canonical spacing survives encoding and decoding: `Try 3 + 5 = 8, 8 * 2 = 16.` comes back as it was. Numbers
never merge: the tokens `8` and `97` decode to `8 97`, not `897`.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

PAD, BOS, EOS, UNKNOWN = "<pad>", "<bos>", "<eos>", "<unk>"
SPECIAL = (PAD, BOS, EOS, UNKNOWN)
TAGS = ("<reasoning>", "</reasoning>", "<solution>", "</solution>")
LINES = ("\n\n", "\n")
WORDS = ("Numbers", "Target", "Try", "Too", "low", "high", "by", "far", "Found", "it", "Left")
SYMBOLS = (":", "+", "-", "*", "/", "(", ")", "=", ",", ".")

_PIECES = Regex(r"</?[a-z]+>|\n\n|\n|[0-9]+|[A-Za-z]+|[^\s0-9A-Za-z]")
_SPACING = (
    (" )", ")"),
    ("( ", "("),
    (" ,", ","),
    (" .", "."),
    (" :", ":"),
    (" \n", "\n"),
    ("\n ", "\n"),
    (" <", "<"),
    ("> ", ">"),
)


def build_tokenizer(largest_number: int) -> PreTrainedTokenizerFast:
    """The tokenizer for puzzles whose numbers, targets and intermediates are 0..`largest_number`."""
    numbers = tuple(str(number) for number in range(largest_number + 1))
    vocabulary = {token: index for index, token in enumerate((*SPECIAL, *TAGS, *LINES, *WORDS, *SYMBOLS, *numbers))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(_PIECES, behavior="removed", invert=True)
    never = "\0"  # WordPiece puts a space before every token that does not start with its prefix
    tokenizer.decoder = decoders.Sequence(
        [decoders.WordPiece(prefix=never, cleanup=False), decoders.Fuse()]
        + [decoders.Replace(spaced, tight) for spaced, tight in _SPACING]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, bos_token=BOS, eos_token=EOS, unk_token=UNKNOWN
    )


class TextCodec:
    """Text in, token ids out and back, for any Hugging Face tokenizer; never adds special tokens by itself."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        self._pieces: dict[int, str] = {}
        if tokenizer.eos_token_id is None:
            raise ValueError("the tokenizer has no end-of-sequence token: completions could never end")
        self.eos_id: int = tokenizer.eos_token_id

    @classmethod
    def load(cls, directory: Path | str) -> TextCodec:
        return cls(AutoTokenizer.from_pretrained(directory))

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, nothing added."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def encode_prompt(self, text: str) -> list[int]:
        """Token ids of a prompt, after the beginning-of-sequence token where the tokenizer has one."""
        start = self.tokenizer.bos_token_id
        return ([] if start is None else [start]) + self.encode(text)

    def decode(self, ids: list[int] | tuple[int, ...]) -> str:
        """Text of `ids`, without special tokens."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def pieces(self, ids: list[int] | tuple[int, ...]) -> list[str]:
        """The text of each token by itself; special tokens are empty."""
        for token in set(ids) - self._pieces.keys():
            self._pieces[token] = self.decode([token])
        return [self._pieces[token] for token in ids]
