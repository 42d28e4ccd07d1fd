"""Names of the tables and figures of a run, for the rules: nothing heavy is imported here."""

TABLES = (
    "funnel",
    "splits",
    "arm_list",
    "sft",
    "sft_curve",
    "sweep",
    "arms",
    "paired",
    "pairs",
    "gains",
    "training",
    "training_seeds",
    "potential",
    "deduplication",
)
TIMING_TABLES = (
    "step_time",
    "step_ratio",
    "cost",
    "wall_clock",
    "elapsed",
    "scoring",
    "scoring_repetitions",
    "scoring_agreement",
    "scoring_steps",
    "scoring_projection",
)
"""Tables of seconds and of rounding: they differ from run to run."""

FIGURES = (
    "funnel",
    "sft_loss",
    "sweep",
    "training_reward",
    "training_length",
    "training_well_formed",
    "training_entropy",
    "pass_at_1",
    "pass_at_4",
    "paired_pass_at_1",
    "paired_pass_at_4",
    "heldout_finished",
    "heldout_length",
    "step_time",
    "pass_at_1_time",
    "scoring_wall",
    "scoring_steps",
)
