"""The scoring study: every scorer on the same recorded rollouts, and in the RL loop (CPAS, "vLLM improvements")."""
