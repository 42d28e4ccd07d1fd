"""Target-span scoring inside vLLM: a span's summed log-probs, with prefix-cache reads up to its start.

vLLM does not read its prefix cache for a request that asks for prompt log-probs, since a cached token has no
logits any more. Where only a span's log-probs are wanted, everything before the span may come from the cache
(CPAS, "Third implementation"). Two entry points, both called `stepcredit`, put this into a server started
with `VLLM_PLUGINS=stepcredit`: `engine:register` (the scheduler and the model runner) and
`endpoint:make_plugin` (HTTP).
"""

PLUGIN_NAME = "stepcredit"
"""The name of both entry points, so that `VLLM_PLUGINS` cannot allow one without the other."""

SCORE_PATH = "/inference/v1/prompt_logprobs"
UPDATE_PATH = "/inference/v1/update_weights"
RESET_PATH = "/inference/v1/reset_prefix_cache"
