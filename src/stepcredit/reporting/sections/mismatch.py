"""Mismatch between sampler and trainer: what a wrong sampler does to each loss, and why."""

from __future__ import annotations

from markupsafe import Markup

from stepcredit.provenance.errors import UserError
from stepcredit.reporting.accessor import interval_of
from stepcredit.reporting.blocks import Block, Cell, Details, Figures, Heading, Html, Prose, Section, Table
from stepcredit.reporting.csvfiles import Row
from stepcredit.reporting.mismatches import (
    distorting,
    main_rewards,
    method_label,
    methods_of,
    mismatch_label,
    reference,
    shown_mismatch,
)
from stepcredit.reporting.numbers import joined, with_interval
from stepcredit.reporting.run import Run
from stepcredit.settings.mismatch import EXACT

QUESTION = "What happens when the sampler is not the model that is trained, and which loss withstands it?"
NEAR, FAR = 0.03, 0.10
"""A method stays near the reference, or far below it, by this much accuracy."""
PUBLISHED_CLAIMS = (21, 22, 23, 24)
"""What SC reports of its own runs, beside the same question here."""


def section(run: Run) -> Section:
    labels = {"raw": "+1 and 0, which are all positive", "group_centred": "centred in their group"}
    blocks: list[Block] = [
        Prose(
            "Each run starts from the SFT checkpoint and trains under a sampler that is made wrong at each push of"
            f" its weights. Rewards are {labels[main_rewards(run.tables)]}. In the end an exact sampler answers."
        ),
        Figures([run.panel("stability_accuracy")], "Accuracy after training, with interval; band: exact sampler."),
        Figures(
            [run.panel("stability_reward"), run.panel("stability_drift")],
            f"Under {mismatch_label(run.tables, shown_mismatch(run.tables))}: mean over seeds, band from the smallest"
            " to the largest. Dashed: the exact sampler.",
        ),
        _standing(run),
        Details("Every run", [_ends(run)]),
        _published(run),
        Heading("The cause: drift under a constant reward"),
        Prose(
            "If every token earns the same, nothing is to be learned, and on average nothing should move. What moves"
            " all the same is the drift: (1/2) Σ |expected update of a logit|, over all that the sampler may draw."
        ),
        Figures(
            [run.panel("drift"), run.panel("drift_head")],
            "Left: on the SFT model. Right: what the tail model leaves when the sampler returns its top-k alone.",
        ),
        Details("Drift by method and mismatch", [_drift(run)]),
        Heading("What score centering costs"),
        _cost(run),
        _sampler_cost(run),
        Heading("Fingerprint: naming a loss from one step"),
        Prose(_named(run)),
        Figures([run.panel("fingerprint")], "At one token, reward +1. The sampled form moves a handful of logits."),
        Heading("Playground"),
        Html(_playground(run)),
    ]
    return Section("mismatch", "Mismatch", QUESTION, _answer(run), blocks)


def _answer(run: Run) -> str:
    tables = run.tables
    mismatch, base = shown_mismatch(tables), reference(tables)
    ends = {method: _end(run, mismatch, method) for method in methods_of(tables, mismatch)}
    said = [
        f"{with_interval(interval_of(row), 'fraction')} with {method_label(tables, name)}" for name, row in ends.items()
    ]
    fallen = [method_label(tables, method) for method, row in ends.items() if row["collapsed"]]
    exact = with_interval(interval_of(base), "fraction")
    where = f"Under {mismatch_label(tables, mismatch)}"
    return f"{where}, accuracy ends at {joined(said)}, against {exact} with an exact sampler; {_fall(fallen)}."


def _fall(fallen: list[str]) -> str:
    if not fallen:
        return "no method collapses"
    return f"{joined(fallen)} {'collapses' if len(fallen) == 1 else 'collapse'}"


def _end(run: Run, mismatch: str, method: str) -> Row:
    return run.tables.row("stability", mismatch=mismatch, method=method, rewards=main_rewards(run.tables))


def _standing(run: Run) -> Table:
    """Which methods an interval places near the reference, and which far below it."""
    tables, rewards = run.tables, main_rewards(run.tables)
    rows = []
    for mismatch in dict.fromkeys(str(row["mismatch"]) for row in tables.rows("stability", rewards=rewards)):
        if mismatch == EXACT:
            continue
        placed: dict[str, list[str]] = {"near": [], "far": [], "between": []}
        for method in methods_of(tables, mismatch):
            where = {"mismatch": mismatch, "method": method, "rewards": rewards, "other": "reference"}
            interval = tables.interval("stability_pairs", **where)
            place = "near" if interval.low > -NEAR else "far" if interval.high < -FAR else "between"
            placed[place].append(method_label(tables, method))
        rows.append(
            [Cell(mismatch_label(tables, mismatch)), *(Cell(joined(found) or "–") for found in placed.values())]
        )
    caption = (
        "Against the run under an exact sampler. Near: the whole interval of the difference lies above"
        f" −{100 * NEAR:g} points; far: below −{100 * FAR:g} points."
    )
    return run.table("stability_pairs", caption, ["sampler", "near", "far below", "not told apart"], rows)


def _ends(run: Run) -> Table:
    tables = run.tables
    rows = []
    for row in tables.rows("stability"):
        where = {key: row[key] for key in ("rewards", "mismatch", "method")}
        found = next(iter(tables.rows("stability_pairs", other="reference", **where)), None)
        against = Cell.interval(interval_of(found), "difference") if found else Cell("–", numeric=True)
        rewards = "" if len(run.config.stability.rewards) == 1 else f", {str(row['rewards']).replace('_', ' ')}"
        rows.append(
            [
                Cell(f"{mismatch_label(tables, row['mismatch'])}{rewards}"),
                Cell(method_label(tables, row["method"])),
                Cell.interval(interval_of(row), "fraction"),
                against,
                Cell("yes" if row["collapsed"] else "no"),
                Cell.value(row["mean_ratio"]),
                Cell.value(row["drift"]),
            ]
        )
    caption = (
        "Accuracy on validation puzzles after training, and against the run under an exact sampler, points. Collapsed:"
        " the whole interval against the SFT model lies below −5 points. Mean ratio and drift over all steps."
    )
    header = ["sampler", "loss", "accuracy, %", "v exact", "collapsed", "ratio", "drift"]
    return run.table("stability", caption, header, rows)


def _drift(run: Run) -> Table:
    tables = run.tables
    names = [EXACT, *(str(row["mismatch"]) for row in distorting(tables))]
    head = tables.rows("drift", method="reinforce")[0]["head"]
    rows = [
        [
            Cell(method_label(tables, method)),
            *(
                Cell.interval(
                    tables.interval("drift", mismatch=name, method=method, head=head, metric="drift"), "number"
                )
                for name in names
            ),
        ]
        for method in (str(row["loss"]) for row in tables.rows("fingerprint"))
    ]
    header = ["loss", *(mismatch_label(tables, name) for name in names)]
    return run.table("drift", f"Drift on the SFT model, with interval over rollouts; top {head}.", header, rows)


def _cost(run: Run) -> Table:
    tables = run.tables
    methods = list(dict.fromkeys(str(row["method"]) for row in tables.rows("stability_cost")))
    parts = ("sampler", "trainer", "step")
    rows = [
        [
            Cell(method_label(tables, method)),
            *(
                Cell.interval(tables.interval("stability_cost", method=method, part=part), "difference")
                for part in parts
            ),
        ]
        for method in methods
    ]
    caption = "Extra CPU time, points of a whole step of the plain policy gradient, with interval over repeats."
    return run.table("stability_cost", caption, ["loss", *parts], rows)


def _sampler_cost(run: Run) -> Table:
    rows = [
        [
            Cell(str(row["variant"])),
            Cell.value(row["cpu_seconds"], "seconds"),
            Cell.interval(interval_of(row), "ratio"),
            Cell(f"{row['bytes_per_token']:.0f}", numeric=True),
        ]
        for row in run.tables.rows("sampler_cost")
    ]
    caption = "What the sampler notes at each position beside the sampled token, for the rollouts of one step."
    return run.table("sampler_cost", caption, ["noted", "CPU, s", "over none", "bytes a token"], rows)


def _named(run: Run) -> str:
    rows = run.tables.rows("fingerprint")
    right, models = sum(row["right"] for row in rows), sum(row["models"] for row in rows)
    return (
        f"One optimiser step with Adam's epsilon at 10⁴ on a rank-1 adapter of the unembedding shows a loss's logit"
        f" gradient. {right} of {models} hidden losses ({len(rows)} losses, {rows[0]['models']} random models) were"
        f" named right, at a distance of at most {max(row['distance'] for row in rows):.0e}; the nearest wrong name was"
        f" at {min(row['next_distance'] for row in rows):.2g}."
    )


def _playground(run: Run) -> Markup:
    path = run.layout.playground
    if not path.is_file():
        raise UserError(f"{path}: missing; it is written by `stepcredit fingerprint-table`")
    return Markup(path.read_text(encoding="utf-8"))


def _published(run: Run) -> Table:
    found = {claim["id"]: claim for claim in run.claims["claims"]}
    claims = [found[number] for number in PUBLISHED_CLAIMS if number in found]
    rows = [[Cell(claim["text"]), Cell(claim["published"]), Cell(claim["verdict"])] for claim in claims]
    model = claims[0]["published_model"] if claims else ""
    return Table(f"Published, with {model}, and the verdict of this run.", ["claim", "published", "here"], rows)
