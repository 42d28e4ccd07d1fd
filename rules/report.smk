# Whatever stage a report tells of leaves one, and a job on another machine is given only what is declared.
MANIFESTS = [
    *[f"data/{stage}.manifest.json" for stage in ("raw", "clean")],
    "data/splits/manifest.json",
    "sft/manifest.json",
    *[
        f"sweep/lr{rate}/{kind}manifest.json"
        for rate in RATES
        for kind in ("", "validation.")
    ],
    "sweep/manifest.json",
    *[f"rl/{arm}/seed{seed}/manifest.json" for arm, seed in RUNS],
    "eval/sft/step0.manifest.json",
    *[
        f"eval/{arm}/seed{seed}/step{step}.manifest.json"
        for arm, seed in RUNS
        for step in CONFIG.steps_of(arm)
    ],
    "signal/sft/step0.manifest.json",
    *[
        f"signal/{arm}/seed{CONFIG.seeds[0]}/step{STEPS[-1]}.manifest.json"
        for arm in CONFIG.signal.arms
    ],
    *[f"stability/{study}/manifest.json" for study in ("drift", "cost", "fingerprint")],
    *[
        f"stability/runs/{mismatch}/{method}/{rewards}/seed{seed}/manifest.json"
        for mismatch, method, rewards in STABILITY_RUNS
        for seed in CONFIG.stability.seeds
    ],
    *[f"parity/{model}.manifest.json" for model in CONFIG.parity.models],
    *(
        ["parity/random_model/manifest.json"]
        if "random" in CONFIG.parity.models
        else []
    ),
    *[f"parity/ablation/{run}/manifest.json" for run in CONFIG.parity.ablation.runs],
    *[f"scoring/{study}.manifest.json" for study in ("run", "large", "steps")],
    "tables/manifest.json",
    "claims.manifest.json",
    "figures/manifest.json",
]


rule tables:
    """Every number of the report, as CSV."""
    input:
        funnel=rules.clean_demonstrations.output.funnel,
        splits=[
            file for file in rules.split_puzzles.output if file.endswith(".parquet")
        ],
        sft=[rules.train_sft.output.metrics, rules.train_sft.output.timings],
        sweep=[
            rules.select_learning_rate.output.best,
            *expand(
                "<results>/sweep/lr{rate}/{file}.parquet",
                rate=RATES,
                file=["metrics", "timings", "validation"],
            ),
        ],
        rl=[
            f"<results>/rl/{arm}/seed{seed}/{file}.parquet"
            for arm, seed in RUNS
            for file in ["metrics", "timings"]
        ],
        evaluation=[
            rules.evaluate_sft.output.rollouts,
            *(
                f"<results>/eval/{arm}/seed{seed}/step{step}.parquet"
                for arm, seed in RUNS
                for step in CONFIG.steps_of(arm)
            ),
        ],
        signal=[
            rules.signal_sft.output.boundaries,
            *(
                f"<results>/signal/{arm}/seed{CONFIG.seeds[0]}/step{STEPS[-1]}.parquet"
                for arm in CONFIG.signal.arms
            ),
        ],
        stability=[
            rules.measure_drift.output.drift,
            rules.measure_drift.output.start,
            rules.measure_mismatch_cost.output.cost,
            rules.fingerprint_losses.output.fingerprint,
            rules.fingerprint_losses.output.gradients,
            *(
                f"<results>/stability/runs/{mismatch}/{method}/{rewards}/seed{seed}/{file}.parquet"
                for mismatch, method, rewards in STABILITY_RUNS
                for seed in CONFIG.stability.seeds
                for file in ("metrics", "evaluation")
            ),
        ],
        parity=[
            *expand("<results>/parity/{model}.parquet", model=CONFIG.parity.models),
            *expand(
                "<results>/parity/ablation/{run}/metrics.parquet",
                run=CONFIG.parity.ablation.runs,
            ),
        ],
        scoring=[
            rules.benchmark_scorers.output.measured,
            rules.benchmark_scorers_large.output.measured,
            rules.time_scoring_steps.output.measured,
        ],
    output:
        tables=report(
            expand("<results>/tables/{table}.csv", table=[*TABLES, *TIMING_TABLES]),
            category="Tables",
            caption="../report/tables.rst",
        ),
        manifest="<results>/tables/manifest.json",
    log:
        "<logs>/tables.log",
    benchmark:
        "<benchmarks>/tables.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime="15m",
    params:
        settings=tables_settings,
        code=stage_digest("tables"),
        results=subpath(output.manifest, ancestor=2),
        directory=subpath(output.manifest, parent=True),
    shell:
        "stepcredit tables --results {params.results} --settings {params.settings:q}"
        " --out-dir {params.directory} > {log} 2>&1"


rule claims:
    """Each claim of the write-ups, judged by a stated rule from the tables."""
    input:
        tables=rules.tables.output.tables,
        published=local(source_file("../config/published.yaml")),
    output:
        claims=report(
            "<results>/claims.json",
            category="Claims",
            caption="../report/captions/claims.rst",
        ),
        manifest="<results>/claims.manifest.json",
    log:
        "<logs>/claims.log",
    benchmark:
        "<benchmarks>/claims.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime="5m",
    params:
        code=stage_digest("claims"),
        results=subpath(output.claims, parent=True),
    shell:
        "stepcredit claims --tables {params.results}/tables --published {input.published}"
        " --out {output.claims} > {log} 2>&1"


rule figures:
    """Every figure, as SVG."""
    input:
        tables=rules.tables.output.tables,
        published=local(source_file("../config/published.yaml")),
    output:
        figures=[
            report(
                f"<results>/figures/{figure}.svg",
                category="Figures",
                caption=f"../report/captions/{figure}.rst",
            )
            for figure in FIGURES
        ],
        alt="<results>/figures/alt.json",
        manifest="<results>/figures/manifest.json",
    log:
        "<logs>/figures.log",
    benchmark:
        "<benchmarks>/figures.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime="10m",
    params:
        code=stage_digest("figures"),
        results=subpath(output.manifest, ancestor=2),
        directory=subpath(output.manifest, parent=True),
    shell:
        "stepcredit figures --tables {params.results}/tables --published {input.published}"
        " --out-dir {params.directory} > {log} 2>&1"


rule report:
    """One self-contained page: claims, arms, failure modes, provenance."""
    input:
        tables=rules.tables.output.tables,
        claims=rules.claims.output.claims,
        figures=[*rules.figures.output.figures, rules.figures.output.alt],
        playground=rules.fingerprint_losses.output.playground,
        rollouts=[
            f"<results>/rl/{arm}/seed{seed}/rollouts.parquet" for arm, seed in RUNS
        ],
        manifests=[f"<results>/{manifest}" for manifest in MANIFESTS],
    output:
        page=report(
            "<results>/report.html",
            category="Report",
            caption="../report/captions/report.rst",
        ),
        manifest="<results>/report.manifest.json",
    log:
        "<logs>/report.log",
    benchmark:
        "<benchmarks>/report.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime="10m",
    params:
        settings=whole_config,
        code=stage_digest("report"),
        results=subpath(output.page, parent=True),
    shell:
        "stepcredit report --settings {params.settings:q} --results {params.results}"
        " --out {output.page} > {log} 2>&1"


rule model_cards:
    """Each final checkpoint as a directory to load and to hand on, with a model card. A target of its own."""
    input:
        data=rules.ingest_demonstrations.output.manifest,
        sft=[
            *rules.train_sft.output.model,
            rules.train_sft.output.manifest,
            rules.evaluate_sft.output.rollouts,
        ],
        rl=[
            f"<results>/{file}"
            for arm, seed in RUNS
            for file in [
                f"rl/{arm}/seed{seed}/manifest.json",
                *(
                    part
                    for step in CONFIG.steps_of(arm)[-1:]
                    for part in [
                        *(
                            f"rl/{arm}/seed{seed}/checkpoints/step{step}/{name}"
                            for name in MODEL_FILES
                        ),
                        f"eval/{arm}/seed{seed}/step{step}.parquet",
                    ]
                ),
            ]
        ],
    output:
        models=directory("<results>/models"),
        manifest="<results>/models.manifest.json",
    log:
        "<logs>/models.log",
    benchmark:
        "<benchmarks>/models.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=1500,
        runtime="10m",
    params:
        settings=tables_settings,
        code=stage_digest("model-cards"),
        results=subpath(output.manifest, parent=True),
    shell:
        "stepcredit model-cards --results {params.results} --settings {params.settings:q}"
        " --out-dir {output.models} --manifest {output.manifest} > {log} 2>&1"
