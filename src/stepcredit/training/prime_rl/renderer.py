"""Messages as plain text, a renderer of prime-rl: the tokens are those of the native backend. Runs in its environment.

A prompt is its text after the beginning-of-sequence token, where there is one; a completion is its text and the
end-of-sequence token. So prime-rl trains on what `evaluate` prompts with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renderers.base import ParsedResponse, RenderedTokens
from renderers.configs import BaseRendererConfig


class PlainRendererConfig(BaseRendererConfig):
    """No settings of its own."""


class PlainRenderer:
    """Renders one user message and one assistant message; implements `renderers.Renderer`."""

    config_class = PlainRendererConfig
    is_prefix_stable = True
    supports_tools = False
    effective_thinking_retention = "all"

    def __init__(self, tokenizer: Any, config: PlainRendererConfig | None = None) -> None:
        self._tokenizer = tokenizer
        self.config = config or PlainRendererConfig()

    def render(self, messages: Sequence[Any], *, tools: Any = None, add_generation_prompt: bool = False) -> Any:
        """Tokens with the message of each; the completion's are what the model samples."""
        start = self._tokenizer.bos_token_id
        ids: list[int] = [] if start is None else [start]
        owners, sampled = [-1] * len(ids), [False] * len(ids)
        for index, message in enumerate(messages):
            answered = message["role"] == "assistant"
            tokens = self._encode(message["content"] or "")
            tokens += [self._tokenizer.eos_token_id] if answered else []
            ids += tokens
            owners += [index] * len(tokens)
            sampled += [answered] * len(tokens)
        return RenderedTokens(
            token_ids=ids,
            message_indices=owners,
            sampled_mask=sampled,
            is_content=[owner >= 0 for owner in owners],
            message_roles=[message["role"] for message in messages],
        )

    def render_ids(
        self, messages: Sequence[Any], *, tools: Any = None, add_generation_prompt: bool = False
    ) -> list[int]:
        """The tokens alone."""
        ids: list[int] = self.render(messages).token_ids
        return ids

    def parse_response(self, token_ids: list[int], *, tools: Any = None, prompt_ids: list[int] | None = None) -> Any:
        """The completion's text, without special tokens."""
        return ParsedResponse(content=self._tokenizer.decode(token_ids, skip_special_tokens=True))

    def get_stop_token_ids(self) -> list[int]:
        return [self._tokenizer.eos_token_id]

    def bridge_to_next_turn(self, *arguments: Any, **options: Any) -> None:
        """There is one turn."""
        return None

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids
