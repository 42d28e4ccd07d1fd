"""stepcredit: from puzzles to a report on paragraph-level credit.

raw -> clean -> split -> SFT -> learning-rate sweep -> RL (arm, seed) -> evaluation (arm, seed, step) -> report
                                                    -> RL under a wrong sampler, drift, costs         ->
"""

from snakemake.utils import min_version

min_version("9.27")


configfile: "config/config.yaml"


include: "rules/common.smk"


pathvars:
    results=CONFIG.outdir,
    logs=f"{CONFIG.outdir}/logs",
    benchmarks=f"{CONFIG.outdir}/benchmarks",


wildcard_constraints:
    arm="|".join(CONFIG.arms),
    seed=r"\d+",
    step=r"\d+",
    rate=r"[0-9.e-]+",
    model="sft|rl|random",
    run="|".join(CONFIG.parity.ablation.runs),


include: "rules/data.smk"
include: "rules/sft.smk"
include: "rules/rl.smk"
include: "rules/evaluate.smk"
include: "rules/stability.smk"
include: "rules/parity.smk"
include: "rules/signal.smk"
include: "rules/scoring.smk"
include: "rules/report.smk"
include: "rules/audit.smk"


report: "report/workflow.rst"


onstart:
    write_config()


rule all:
    default_target: True
    input:
        "<results>/report.html",
