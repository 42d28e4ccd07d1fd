rule sweep_learning_rate:
    """The baseline arm at one learning rate of the sweep."""
    input:
        model=rules.train_sft.output.model,
        puzzles=rules.split_puzzles.output.rl,
    output:
        metrics="<results>/sweep/lr{rate}/metrics.parquet",
        timings="<results>/sweep/lr{rate}/timings.parquet",
        rollouts="<results>/sweep/lr{rate}/rollouts.parquet",
        model=multiext(
            f"<results>/sweep/lr{{rate}}/checkpoints/step{CONFIG.sweep.steps}/",
            *MODEL_FILES,
        ),
        manifest="<results>/sweep/lr{rate}/manifest.json",
    log:
        "<logs>/sweep/lr{rate}.log",
    benchmark:
        "<benchmarks>/sweep/lr{rate}.tsv"
    priority: 50
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=TRAINING_MB,
        runtime="30m",
        gpu=TRAINING_GPUS,
    params:
        settings=sweep_job,
        code=sweep_code,
        seed=CONFIG.sweep.seed,
        directory=subpath(output.metrics, parent=True),
        state=f"{CONFIG.outdir}/state/sweep/lr{{rate}}",
    shell:
        f"stepcredit {TRAIN_RL}"
        " --settings {params.settings:q} --seed {params.seed} --learning-rate {wildcards.rate}"
        " --model {input.model[0]} --puzzles {input.puzzles}"
        " --state {params.state} --out-dir {params.directory} > {log} 2>&1"


rule select_learning_rate:
    """The learning rate with the best pass@1 on the validation puzzles."""
    input:
        validation=expand("<results>/sweep/lr{rate}/validation.parquet", rate=RATES),
    output:
        best="<results>/sweep/best.json",
        manifest="<results>/sweep/manifest.json",
    log:
        "<logs>/sweep/select.log",
    benchmark:
        "<benchmarks>/sweep/select.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime="5m",
    params:
        rates=RATES,
        code=stage_digest("select-learning-rate"),
    shell:
        "stepcredit select-learning-rate --rates '{params.rates}' --out {output.best} --manifest {output.manifest} {input.validation} > {log} 2>&1"


rule train_rl:
    """One arm, one seed: RL from the SFT checkpoint with the swept learning rate."""
    input:
        model=rules.train_sft.output.model,
        puzzles=rules.split_puzzles.output.rl,
        learning_rate=rules.select_learning_rate.output.best,
    output:
        metrics="<results>/rl/{arm}/seed{seed}/metrics.parquet",
        timings="<results>/rl/{arm}/seed{seed}/timings.parquet",
        rollouts="<results>/rl/{arm}/seed{seed}/rollouts.parquet",
        models=expand(
            "<results>/rl/{{arm}}/seed{{seed}}/checkpoints/step{step}/{file}",
            step=STEPS,
            file=MODEL_FILES,
        ),
        manifest="<results>/rl/{arm}/seed{seed}/manifest.json",
    log:
        "<logs>/rl/{arm}/seed{seed}.log",
    benchmark:
        "<benchmarks>/rl/{arm}/seed{seed}.tsv"
    priority: 10
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=rl_memory,
        runtime="1h",
        gpu=TRAINING_GPUS,
    params:
        settings=rl_job,
        code=rl_code,
        directory=subpath(output.metrics, parent=True),
        state=f"{CONFIG.outdir}/state/rl/{{arm}}/seed{{seed}}",
    shell:
        f"stepcredit {TRAIN_RL}"
        " --settings {params.settings:q} --seed {wildcards.seed}"
        " --learning-rate-file {input.learning_rate} --model {input.model[0]} --puzzles {input.puzzles}"
        " --state {params.state} --out-dir {params.directory} > {log} 2>&1"
