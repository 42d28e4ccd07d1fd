# Two threads, so that on two cores nothing else runs beside what is timed: a scorer's client and its server are two
# processes. Each of them keeps to the threads that its command names.
TIMING_THREADS = 2 if CONFIG.scoring.alone else 1


rule benchmark_scorers:
    """Every scorer on the first rollouts of the baseline arm, with the checkpoint that sampled them."""
    input:
        model=rules.train_sft.output.model,
        rollouts=f"<results>/rl/{CONFIG.baseline}/seed{CONFIG.seeds[0]}/rollouts.parquet",
    output:
        measured="<results>/scoring/run.parquet",
        manifest="<results>/scoring/run.manifest.json",
    log:
        "<logs>/scoring/run.log",
    benchmark:
        "<benchmarks>/scoring/run.tsv"
    priority: 20
    conda:
        "../envs/cpu.yaml"
    threads: TIMING_THREADS
    resources:
        mem_mb=4000,
        gpu=GPU,
        runtime="30m",
    params:
        command="score-benchmark",
        settings=scoring_job,
        code=stage_digest("score-benchmark"),
        threads=1,
    shell:
        "stepcredit {params.command} --settings {params.settings:q} --model {input.model[0]}"
        " --rollouts {input.rollouts} --out {output.measured} --manifest {output.manifest}"
        " --threads {params.threads} > {log} 2>&1"


use rule benchmark_scorers as benchmark_scorers_large with:
    output:
        measured="<results>/scoring/large.parquet",
        manifest="<results>/scoring/large.manifest.json",
    log:
        "<logs>/scoring/large.log",
    benchmark:
        "<benchmarks>/scoring/large.tsv"
    resources:
        mem_mb=6000,
        gpu=GPU,
        runtime="30m",
    params:
        command="score-benchmark-large",
        settings=scoring_job,
        code=stage_digest("score-benchmark-large"),
        threads=2,


rule time_scoring_steps:
    """A few RL steps with each scorer, frozen and moving, by phase."""
    input:
        model=rules.train_sft.output.model,
        puzzles=rules.split_puzzles.output.rl,
    output:
        measured="<results>/scoring/steps.parquet",
        manifest="<results>/scoring/steps.manifest.json",
    log:
        "<logs>/scoring/steps.log",
    benchmark:
        "<benchmarks>/scoring/steps.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: TIMING_THREADS
    resources:
        mem_mb=4000,
        gpu=GPU,
        runtime="30m",
    params:
        settings=scoring_job,
        code=stage_digest("time-scoring-steps"),
    shell:
        "stepcredit time-scoring-steps --settings {params.settings:q} --model {input.model[0]}"
        " --puzzles {input.puzzles} --out {output.measured} --manifest {output.manifest} > {log} 2>&1"
