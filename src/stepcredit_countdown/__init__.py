"""The Countdown taskset under a name that verifiers can import: it takes no dotted ones."""

from stepcredit.training.prime_rl.taskset import CountdownTaskset

__all__ = ["CountdownTaskset"]
