# Training under a sampler that is wrong on purpose, and what surrounds it: drift on the SFT model, costs, fingerprints.


wildcard_constraints:
    mismatch="|".join(sorted({run[0] for run in STABILITY_RUNS})),
    method="|".join(sorted({run[1] for run in STABILITY_RUNS})),
    rewards="|".join(CONFIG.stability.rewards),


rule train_mismatch:
    """One loss under one mismatch, one seed: RL from the SFT checkpoint, evaluated by an exact sampler."""
    input:
        model=rules.train_sft.output.model,
        puzzles=rules.split_puzzles.output.rl,
        validation=rules.split_puzzles.output.validation,
        learning_rate=(
            []
            if CONFIG.stability.learning_rate
            else rules.select_learning_rate.output.best
        ),
    output:
        metrics="<results>/stability/runs/{mismatch}/{method}/{rewards}/seed{seed}/metrics.parquet",
        timings="<results>/stability/runs/{mismatch}/{method}/{rewards}/seed{seed}/timings.parquet",
        evaluation="<results>/stability/runs/{mismatch}/{method}/{rewards}/seed{seed}/evaluation.parquet",
        manifest="<results>/stability/runs/{mismatch}/{method}/{rewards}/seed{seed}/manifest.json",
    log:
        "<logs>/stability/{mismatch}.{method}.{rewards}.seed{seed}.log",
    benchmark:
        "<benchmarks>/stability/{mismatch}.{method}.{rewards}.seed{seed}.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=TRAINING_MB,
        gpu=GPU,
        runtime="30m",
    params:
        settings=stability_job,
        code=stage_digest("train-mismatch"),
        rate=stability_rate,
        directory=subpath(output.metrics, parent=True),
    shell:
        "stepcredit train-mismatch --settings {params.settings:q} --seed {wildcards.seed} {params.rate}"
        " --model {input.model[0]} --puzzles {input.puzzles} --validation {input.validation}"
        " --out-dir {params.directory} > {log} 2>&1"


rule measure_drift:
    """What each loss does to the SFT model under a constant reward, for each wrong sampler."""
    input:
        model=rules.train_sft.output.model,
        puzzles=rules.split_puzzles.output.rl,
        validation=rules.split_puzzles.output.validation,
    output:
        drift="<results>/stability/drift/drift.parquet",
        start="<results>/stability/drift/start.parquet",
        manifest="<results>/stability/drift/manifest.json",
    log:
        "<logs>/stability/drift.log",
    benchmark:
        "<benchmarks>/stability/drift.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=TRAINING_MB,
        gpu=GPU,
        runtime="30m",
    params:
        settings=drift_job,
        code=stage_digest("measure-drift"),
        directory=subpath(output.drift, parent=True),
    shell:
        "stepcredit measure-drift --settings {params.settings:q} --model {input.model[0]} --puzzles {input.puzzles}"
        " --validation {input.validation} --out-dir {params.directory} > {log} 2>&1"


rule measure_mismatch_cost:
    """Seconds and bytes of what score centering asks of sampler and trainer."""
    input:
        model=rules.train_sft.output.model,
        puzzles=rules.split_puzzles.output.rl,
    output:
        cost="<results>/stability/cost/cost.parquet",
        manifest="<results>/stability/cost/manifest.json",
    log:
        "<logs>/stability/cost.log",
    benchmark:
        "<benchmarks>/stability/cost.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=TRAINING_MB,
        gpu=GPU,
        runtime="30m",
    params:
        settings=mismatch_cost_job,
        code=stage_digest("measure-mismatch-cost"),
        directory=subpath(output.cost, parent=True),
    shell:
        "stepcredit measure-mismatch-cost --settings {params.settings:q} --model {input.model[0]}"
        " --puzzles {input.puzzles} --out-dir {params.directory} > {log} 2>&1"


rule fingerprint_losses:
    """Every loss of the family named from the weights that one hidden step changes; the playground of the report."""
    output:
        fingerprint="<results>/stability/fingerprint/fingerprint.parquet",
        gradients="<results>/stability/fingerprint/gradients.parquet",
        playground="<results>/stability/fingerprint/playground.html",
        manifest="<results>/stability/fingerprint/manifest.json",
    log:
        "<logs>/stability/fingerprint.log",
    benchmark:
        "<benchmarks>/stability/fingerprint.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime="10m",
    params:
        code=stage_digest("fingerprint-table"),
        directory=subpath(output.fingerprint, parent=True),
    shell:
        "stepcredit fingerprint-table --out-dir {params.directory} > {log} 2>&1"
