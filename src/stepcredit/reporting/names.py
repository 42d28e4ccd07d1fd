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
    "parity",
    "parity_models",
    "parity_training",
    "parity_ablation",
)
TIMING_TABLES = ("step_time", "step_ratio", "cost", "wall_clock", "parity_served")
"""Tables that differ from run to run: seconds, and where in a generation an update lands."""

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
    "parity",
    "parity_ablation_kl",
    "parity_ablation_reward",
)
