"""How much the token cap decides: the same completions, judged again as if the cap had been smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stepcredit.reporting.csvfiles import Row, interval_cells, write_rows
from stepcredit.reporting.measures import measures
from stepcredit.reporting.raw import Evaluation
from stepcredit.reporting.settings import TablesSettings

COLUMNS = ["arm", "step", "cap", "metric", "mean", "low", "high", "seeds"]
METRICS = ("pass@1", "finished", "accuracy_of_finished")


def write_cap_sensitivity(
    evaluations: Mapping[tuple[str, int], Sequence[Evaluation]], settings: TablesSettings, out_dir: Path
) -> None:
    """cap_sensitivity.csv: METRICS of each arm at its last step under each cap, and their difference to the baseline.

    A difference is the metric `{name} minus baseline`, of the same puzzles and seeds.
    """
    rows: list[Row] = []
    last = settings.evaluation.steps[-1]
    for cap in caps(settings):
        cut = {
            arm: measures([evaluation.cut(cap) for evaluation in evaluations[arm, last]], [1]) for arm in settings.arms
        }
        for arm, named in cut.items():
            for name in METRICS:
                key = {"arm": arm, "step": last, "cap": cap, "seeds": len(settings.seeds_of(arm))}
                rows.append(key | {"metric": name} | interval_cells(named[name].interval(settings.bootstrap)))
                if arm != settings.baseline:
                    difference = named[name].minus(cut[settings.baseline][name], settings.bootstrap)
                    rows.append(key | {"metric": f"{name} minus baseline"} | interval_cells(difference))
    write_rows(out_dir / "cap_sensitivity.csv", COLUMNS, rows)


def caps(settings: TablesSettings) -> list[int]:
    """The caps in tokens, in increasing order."""
    evaluation = settings.evaluation
    return sorted({max(1, round(share * evaluation.max_new_tokens)) for share in evaluation.cap_shares})
