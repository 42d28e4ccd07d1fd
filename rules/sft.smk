rule import_smollm2:
    """SmolLM2-135M-Instruct from its package, dequantised: for a configuration whose `model.pretrained` names it."""
    output:
        model=multiext(
            "<results>/smollm2/model/",
            "config.json",
            "model.safetensors",
            "tokenizer.json",
        ),
        manifest="<results>/smollm2/manifest.json",
    log:
        "<logs>/smollm2.log",
    benchmark:
        "<benchmarks>/smollm2.tsv"
    conda:
        "../envs/smollm2.yaml"
    threads: 1
    resources:
        mem_mb=3000,
        runtime="10m",
    params:
        code=stage_digest("import-smollm2"),
        directory=subpath(output.manifest, parent=True),
    shell:
        "stepcredit import-smollm2 --out-dir {params.directory}/model --manifest {output.manifest} > {log} 2>&1"


rule train_sft:
    """Supervised fine-tuning on the clean demonstrations, from random weights or a pretrained model."""
    input:
        pretrained=PRETRAINED,
        demonstrations=rules.split_puzzles.output.demonstrations,
    output:
        model=multiext("<results>/sft/model/", *MODEL_FILES),
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
        mem_mb=SFT_MB,
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
