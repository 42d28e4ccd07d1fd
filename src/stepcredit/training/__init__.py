"""Supervised fine-tuning and the RL loop."""
