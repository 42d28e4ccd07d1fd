"""How many prompt tokens a vLLM server took in, and how many of them from its cache: its own metrics."""

from __future__ import annotations

import re
from typing import NamedTuple

from stepcredit.scoring.transport import HttpClient, ServerError

_METRIC = r"^vllm:{name}_total(?:\{{[^}}]*\}})? ([0-9.eE+]+)$"


class TokenCount(NamedTuple):
    """Prompt tokens of all requests so far, and those of them that the prefix cache held."""

    prompt_tokens: int
    prompt_tokens_cached: int


class TokenCounters:
    """Reads `/metrics` of a vLLM server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def read(self) -> TokenCount:
        """The counters as they stand.

        Raises:
            ServerError: the server does not tell them.
        """
        text = self._client.get_text("/metrics")
        return TokenCount(*(self._sum(text, name) for name in TokenCount._fields))

    def _sum(self, text: str, name: str) -> int:
        found = re.findall(_METRIC.format(name=name), text, flags=re.MULTILINE)
        if not found:
            raise ServerError(f"/metrics has no vllm:{name}_total")
        return int(sum(map(float, found)))
