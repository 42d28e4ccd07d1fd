"""The task: puzzles, answers, the verifier, demonstrations."""
