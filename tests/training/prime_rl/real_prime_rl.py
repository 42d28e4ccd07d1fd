"""Loads configurations through prime-rl's own classes: `python real_prime_rl.py [DIRECTORY]`, in its environment."""

import json
import sys
from pathlib import Path

from stepcredit.training.prime_rl import ALGORITHM
from stepcredit.training.prime_rl.keys import flatten, stored_keys
from stepcredit.training.prime_rl.register import register_config, register_runtime

register_config()

from prime_rl.configs.rl import RLConfig  # noqa: E402
from prime_rl.configs.sft import SFTConfig  # noqa: E402
from prime_rl.utils.config import cli  # noqa: E402

register_runtime()

from prime_rl.orchestrator.algo import build_algorithm  # noqa: E402
from prime_rl.orchestrator.algo.base import Algorithm  # noqa: E402

found = {"algorithms": [], "tasksets": []}
for directory in map(Path, sys.argv[1:]):
    cli(SFTConfig, args=["@", str(directory / "sft.toml")])
    for file in sorted(directory.glob("rl/*/*.toml")):
        source = cli(RLConfig, args=["@", str(file)]).orchestrator.train.source[0]
        algorithm = build_algorithm(source.algo, None)
        assert isinstance(algorithm, Algorithm)
        found["algorithms"].append(source.algo.type)
        found["tasksets"].append(type(source.env.taskset).__name__)
unknown = stored_keys("sft").keys() - flatten(SFTConfig.model_json_schema()).keys()
assert not unknown, f"keys.json has keys that prime-rl has not: {sorted(unknown)[:5]}"
assert ALGORITHM in {"contrastive_potential"}
print(json.dumps(found))
