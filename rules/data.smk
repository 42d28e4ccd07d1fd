rule ingest_demonstrations:
    """Raw rows of the configured source: generated, from the hub, or from a file."""
    output:
        raw="<results>/data/raw.parquet",
        manifest="<results>/data/raw.manifest.json",
    log:
        "<logs>/data/ingest.log",
    benchmark:
        "<benchmarks>/data/ingest.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime="10m",
    params:
        settings=data_settings,
        code=stage_digest("ingest"),
    shell:
        "stepcredit ingest --settings {params.settings:q} --out {output.raw} --manifest {output.manifest} > {log} 2>&1"


rule clean_demonstrations:
    """Normalised, verified, rewritten demonstrations; every dropped row counted under one reason."""
    input:
        raw=rules.ingest_demonstrations.output.raw,
    output:
        clean="<results>/data/clean.parquet",
        funnel="<results>/data/funnel.csv",
        manifest="<results>/data/clean.manifest.json",
    log:
        "<logs>/data/clean.log",
    benchmark:
        "<benchmarks>/data/clean.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime="10m",
    params:
        code=stage_digest("clean"),
    shell:
        "stepcredit clean --in {input.raw} --out {output.clean} --funnel {output.funnel}"
        " --manifest {output.manifest} > {log} 2>&1"


rule split_puzzles:
    """Demonstrations for SFT and puzzles for RL, validation and held-out evaluation, checked to be disjoint."""
    input:
        clean=rules.clean_demonstrations.output.clean,
    output:
        demonstrations="<results>/data/splits/demonstrations.parquet",
        rl="<results>/data/splits/rl.parquet",
        validation="<results>/data/splits/validation.parquet",
        heldout="<results>/data/splits/heldout.parquet",
        manifest="<results>/data/splits/manifest.json",
    log:
        "<logs>/data/split.log",
    benchmark:
        "<benchmarks>/data/split.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime="10m",
    params:
        settings=data_settings,
        code=stage_digest("split"),
        directory=subpath(output.rl, parent=True),
    shell:
        "stepcredit split --settings {params.settings:q} --clean {input.clean}"
        " --out-dir {params.directory} --manifest {output.manifest} > {log} 2>&1"
