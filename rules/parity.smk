rule make_random_model:
    """Random weights in the shape that the audit asks for."""
    output:
        model=multiext("<results>/parity/random_model/", *MODEL_FILES),
        manifest="<results>/parity/random_model/manifest.json",
    log:
        "<logs>/parity/random_model.log",
    benchmark:
        "<benchmarks>/parity/random_model.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=3000,
        runtime="5m",
    params:
        settings=random_model_job,
        code=stage_digest("random-model"),
        directory=subpath(output.manifest, parent=True),
    shell:
        "stepcredit random-model --settings {params.settings:q} --out-dir {params.directory} > {log} 2>&1"


rule audit_parity:
    """Sampler against trainer, token by token, under one setting after another."""
    input:
        model=audited_model,
        puzzles=rules.split_puzzles.output.validation,
    output:
        rows="<results>/parity/{model}.parquet",
        manifest="<results>/parity/{model}.manifest.json",
    log:
        "<logs>/parity/{model}.log",
    benchmark:
        "<benchmarks>/parity/{model}.tsv"
    priority: 20
    conda:
        "../envs/cpu.yaml"
    threads: CONFIG.parity.workers
    resources:
        mem_mb=6000,
        gpu=GPU,
        runtime="30m",
    params:
        settings=parity_job,
        code=stage_digest("parity"),
    shell:
        "stepcredit parity --model {input.model[0]} --puzzles {input.puzzles} --settings {params.settings:q}"
        " --workers {threads} --out {output.rows} --manifest {output.manifest} > {log} 2>&1"


rule ablate_parity:
    """A short RL run of the baseline arm under one setting of the sampler."""
    input:
        model=rules.train_sft.output.model,
        puzzles=rules.split_puzzles.output.rl,
        learning_rate=rules.select_learning_rate.output.best,
    output:
        metrics="<results>/parity/ablation/{run}/metrics.parquet",
        timings="<results>/parity/ablation/{run}/timings.parquet",
        rollouts="<results>/parity/ablation/{run}/rollouts.parquet",
        model=multiext(
            f"<results>/parity/ablation/{{run}}/checkpoints/step{CONFIG.parity.ablation.steps}/",
            *MODEL_FILES,
        ),
        manifest="<results>/parity/ablation/{run}/manifest.json",
    log:
        "<logs>/parity/ablation/{run}.log",
    benchmark:
        "<benchmarks>/parity/ablation/{run}.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=TRAINING_MB,
        gpu=GPU,
        runtime="30m",
    params:
        settings=ablation_job,
        code=stage_digest("train-rl"),
        seed=CONFIG.parity.ablation.seed,
        directory=subpath(output.metrics, parent=True),
        state=f"{CONFIG.outdir}/state/parity/ablation/{{run}}",
    shell:
        "stepcredit train-rl --settings {params.settings:q} --seed {params.seed}"
        " --learning-rate-file {input.learning_rate} --model {input.model[0]} --puzzles {input.puzzles}"
        " --state {params.state} --out-dir {params.directory} > {log} 2>&1"
