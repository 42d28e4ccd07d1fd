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
    "signal",
    "signal_points",
    "failures",
    "cap_sensitivity",
)
TIMING_TABLES = ("step_time", "step_ratio", "cost", "wall_clock")
"""Tables of seconds: they differ from run to run."""

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
    "signal_continuations",
    "signal_answers",
    "paragraph_length",
    "guard_length",
    "at_cap",
    "guard_reward",
    "cap_sensitivity",
)
