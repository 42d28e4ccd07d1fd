rule signal:
    """The potential at boundaries of a checkpoint's rollouts, and success rates sampled from there."""
    input:
        model=multiext(
            "<results>/rl/{arm}/seed{seed}/checkpoints/step{step}/", *MODEL_FILES
        ),
        frozen=rules.train_sft.output.model,
        puzzles=rules.split_puzzles.output.heldout,
    output:
        boundaries="<results>/signal/{arm}/seed{seed}/step{step}.parquet",
        manifest="<results>/signal/{arm}/seed{seed}/step{step}.manifest.json",
    log:
        "<logs>/signal/{arm}/seed{seed}/step{step}.log",
    benchmark:
        "<benchmarks>/signal/{arm}/seed{seed}/step{step}.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=ENGINE_MB,
        gpu=GPU,
        runtime="20m",
    params:
        settings=signal_job,
        code=stage_digest("signal"),
    shell:
        "stepcredit signal --settings {params.settings:q} --model {input.model[0]} --frozen {input.frozen[0]}"
        " --puzzles {input.puzzles} --out {output.boundaries} --manifest {output.manifest} > {log} 2>&1"


use rule signal as signal_sft with:
    input:
        model=rules.train_sft.output.model,
        frozen=rules.train_sft.output.model,
        puzzles=rules.split_puzzles.output.heldout,
    output:
        boundaries="<results>/signal/sft/step0.parquet",
        manifest="<results>/signal/sft/step0.manifest.json",
    log:
        "<logs>/signal/sft/step0.log",
    benchmark:
        "<benchmarks>/signal/sft/step0.tsv"
