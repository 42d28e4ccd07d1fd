"""The audit of sampler against trainer: the same tokens, their log-probs by both, under one setting after another."""
