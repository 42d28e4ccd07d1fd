rule train_sft:
    """Supervised fine-tuning on the clean demonstrations, from random weights or a pretrained model."""
    input:
        demonstrations=rules.split_puzzles.output.demonstrations,
    output:
        model=multiext(
            "<results>/sft/model/",
            "model.safetensors",
            "config.json",
            "tokenizer.json",
        ),
        metrics="<results>/sft/metrics.parquet",
        timings="<results>/sft/timings.parquet",
        manifest="<results>/sft/manifest.json",
    log:
        "<logs>/sft.log",
    benchmark:
        "<benchmarks>/sft.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2500,
        runtime="30m",
        gpu=TRAINING_GPUS,
    params:
        settings=sft_job,
        code=stage_digest(TRAIN_SFT),
        directory=subpath(output.metrics, parent=True),
        state=f"{CONFIG.outdir}/state/sft",
    shell:
        f"stepcredit {TRAIN_SFT}"
        " --settings {params.settings:q} --demonstrations {input.demonstrations}"
        " --state {params.state} --out-dir {params.directory} > {log} 2>&1"
