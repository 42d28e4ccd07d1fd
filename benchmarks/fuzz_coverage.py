"""Coverage-guided fuzzing of the verifier's parser and of the JSONL reader, by atheris.

    pip install --no-deps --target build/atheris atheris
    PYTHONPATH=build/atheris python benchmarks/fuzz_coverage.py answer -max_total_time=300 -max_len=300
    PYTHONPATH=build/atheris python benchmarks/fuzz_coverage.py jsonl -max_total_time=300 -max_len=300

`answer` grades text and holds the reward against the second evaluator of the tests; `jsonl` grades bytes as lines of
a file, which may end in a `UserError` and nothing else, and reads back what it wrote. A finding ends the run with
status 1 and the input that made it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["stepcredit", "json"]):
    from stepcredit.countdown.prompt import completion_text
    from stepcredit.countdown.puzzle import Puzzle
    from stepcredit.countdown.verifier import grade
    from stepcredit.data.grading import grade_lines
    from stepcredit.provenance.errors import UserError

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/countdown"))
from second_evaluator import is_right

PUZZLE = Puzzle((3, 5, 12), 36)
COMMON = "0123456789+-*/() \n"


def fuzz_answer(data: bytes) -> None:
    """Text over the grammar's characters and some others."""
    provider = atheris.FuzzedDataProvider(data)
    if provider.ConsumeBool():
        answer = provider.ConsumeUnicode(len(data))
    else:
        answer = "".join(COMMON[byte % len(COMMON)] for byte in provider.ConsumeBytes(len(data)))
    completion = completion_text("a", answer)
    reward = grade(completion, PUZZLE).reward
    assert bool(reward) == is_right(completion, PUZZLE.nums, PUZZLE.target), completion


def fuzz_jsonl(data: bytes) -> None:
    """Bytes, alone and as the completion of a line that is right in all else."""
    row = {"nums": [3, 5, 12], "target": 36, "completion": data.decode("latin-1")}
    for lines in (data.split(b"\n"), [json.dumps(row).encode()]):
        try:
            written = list(grade_lines(lines, "input"))
        except UserError:
            continue
        for line in written:
            assert {"nums", "target", "completion", "reward", "answer", "reason"} <= json.loads(line).keys()


if __name__ == "__main__":
    targets = {"answer": fuzz_answer, "jsonl": fuzz_jsonl}
    if len(sys.argv) < 2 or sys.argv[1] not in targets:
        sys.exit(__doc__)
    atheris.Setup([sys.argv[0], *sys.argv[2:]], targets[sys.argv[1]])
    atheris.Fuzz()
