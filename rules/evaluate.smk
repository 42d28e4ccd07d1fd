rule evaluate:
    """Rollouts of one checkpoint on the held-out puzzles."""
    input:
        model=multiext(
            "<results>/rl/{arm}/seed{seed}/checkpoints/step{step}/", *MODEL_FILES
        ),
        puzzles=rules.split_puzzles.output.heldout,
    output:
        rollouts="<results>/eval/{arm}/seed{seed}/step{step}.parquet",
        manifest="<results>/eval/{arm}/seed{seed}/step{step}.manifest.json",
    log:
        "<logs>/eval/{arm}/seed{seed}/step{step}.log",
    benchmark:
        "<benchmarks>/eval/{arm}/seed{seed}/step{step}.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=ENGINE_MB,
        gpu=GPU,
        runtime="20m",
    params:
        settings=evaluation_job,
        code=stage_digest("evaluate"),
    shell:
        "stepcredit evaluate --settings {params.settings:q} --model {input.model[0]} --puzzles {input.puzzles}"
        " --out {output.rollouts} --manifest {output.manifest} > {log} 2>&1"


use rule evaluate as evaluate_sft with:
    input:
        model=rules.train_sft.output.model,
        puzzles=rules.split_puzzles.output.heldout,
    output:
        rollouts="<results>/eval/sft/step0.parquet",
        manifest="<results>/eval/sft/step0.manifest.json",
    log:
        "<logs>/eval/sft/step0.log",
    benchmark:
        "<benchmarks>/eval/sft/step0.tsv"


use rule evaluate as validate_learning_rate with:
    input:
        model=rules.sweep_learning_rate.output.model,
        puzzles=rules.split_puzzles.output.validation,
    output:
        rollouts="<results>/sweep/lr{rate}/validation.parquet",
        manifest="<results>/sweep/lr{rate}/validation.manifest.json",
    log:
        "<logs>/sweep/lr{rate}.validation.log",
    benchmark:
        "<benchmarks>/sweep/lr{rate}.validation.tsv"
    priority: 50
    params:
        settings=validation_job,
        code=stage_digest("evaluate"),
