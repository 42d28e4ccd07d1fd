"""Data: what cleaning keeps."""

from __future__ import annotations

from stepcredit.reporting.blocks import Block, Cell, Details, Figures, Section
from stepcredit.reporting.labels import SPLITS
from stepcredit.reporting.numbers import count, number
from stepcredit.reporting.run import Run


def section(run: Run) -> Section:
    rows = run.tables.rows("funnel")
    read, kept = float(rows[0]["rows"]), float(rows[-1]["rows"])
    worst = max(rows[1:-1], key=lambda row: float(row["rows"]), default=None)
    answer = f"{count(kept)} of {count(read)} demonstrations ({number(kept / read, 'fraction')}) survive cleaning"
    if worst and worst["rows"]:
        answer += f"; the commonest reason for dropping one is “{worst['stage']}” ({count(worst['rows'])})"
    funnel = [
        [
            Cell(str(row["stage"])),
            Cell(count(row["rows"]), numeric=True),
            Cell.value(row["rows"] / read, "fraction"),
        ]
        for row in rows
    ]
    splits = [[Cell(SPLITS[row["split"]]), Cell(count(row["rows"]), numeric=True)] for row in run.tables.rows("splits")]
    blocks: list[Block] = [
        Figures(
            [run.panel("funnel")],
            "Rows read, dropped for each reason that occurred, and kept. A row counts once, under the first reason.",
        ),
        Details(
            "Numbers of the funnel and the splits",
            [
                run.table(
                    "funnel", "Rows read, dropped for each reason, and kept.", ["stage", "rows", "% of read"], funnel
                ),
                run.table("splits", "Rows of each split; no puzzle is in two.", ["split", "rows"], splits),
            ],
        ),
    ]
    return Section("data", "Data", "How much of the raw data is fit to learn from?", f"{answer}.", blocks)
