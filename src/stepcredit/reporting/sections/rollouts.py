"""A few rollouts of each arm, as the model wrote them."""

from __future__ import annotations

import pandas as pd

from stepcredit.reporting.blocks import Block, Code, Details, Heading, Prose
from stepcredit.reporting.raw import read_parquet
from stepcredit.reporting.run import Run

COLUMNS = ("step", "group", "sample", "nums", "target", "completion", "reward", "advantage", "tokens")
LONGEST = 2000
"""Characters of a rollout that are shown."""


def rollouts(run: Run) -> list[Block]:
    """The first right and the first wrong rollout of each arm's last kept step, of its first seed."""
    folded: list[Block] = []
    for arm, settings in run.main_arms.items():
        path = run.layout.rl(arm, run.config.seeds[0], "rollouts")
        if path.is_file():
            frame = read_parquet(path, COLUMNS)
            last = frame[frame["step"] == frame["step"].max()]
            shown = [block for right in (True, False) for block in _first(last, right)]
            folded.append(Details(f"{settings.label}: a right and a wrong rollout", shown))
    return [Heading("What the model writes"), *folded] if folded else []


def _first(frame: pd.DataFrame, right: bool) -> list[Block]:
    chosen = frame[(frame["reward"] > 0) == right].sort_values(["group", "sample"])
    if chosen.empty:
        return [Prose(f"No rollout of this step is {'right' if right else 'wrong'}.")]
    row = chosen.iloc[0]
    numbers = ", ".join(str(int(number)) for number in row["nums"])
    text = str(row["completion"])
    cut = " … (cut)" if len(text) > LONGEST else ""
    head = (
        f"Step {int(row['step'])}, numbers {numbers}, target {int(row['target'])}: reward {row['reward']:g},"
        f" advantage {row['advantage']:+.2f}, {int(row['tokens'])} tokens"
    )
    return [Prose(head), Code(text[:LONGEST] + cut)]
