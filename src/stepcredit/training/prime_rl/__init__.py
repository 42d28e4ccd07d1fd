"""The prime-rl backend: its configuration written from ours, our credit as its algorithm, its output as our tables.

prime-rl is not on PyPI and needs Python 3.12 and CUDA: it lives in an environment of its own (envs/prime-rl.sh), in
which this package is installed too. The modules `register`, `algorithm`, `taskset`, `renderer`, `launcher` and
`orchestrator` run there and import it; the others run in ours and never do.
"""

REPOSITORY = "PrimeIntellect-ai/prime-rl"
COMMIT = "e3e3a87deac100f4bda66f50c9e4ec5386d21343"
"""The last commit that writes Hugging Face weights (`weights/step_N`); every key and name here is of this commit."""

ALGORITHM = "contrastive_potential"
"""The name that our credit has in prime-rl's configuration."""

TASKSET = "stepcredit_countdown"
"""The importable module of the taskset: verifiers takes no dotted names."""
