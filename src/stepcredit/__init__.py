"""RL for reasoning models, made rerunnable: credit, scorers, losses, parity."""

__version__ = "0.1.0"
