"""Held-out rollouts and their statistics."""
