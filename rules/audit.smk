rule audit:
    """Every artifact of this configuration against its manifest; fails if anything is not as it was made."""
    input:
        "<results>/report.html",
    log:
        "<logs>/audit.log",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime="10m",
    params:
        results=results_directory,
    shell:
        "stepcredit audit {params.results} 2>&1 | tee {log}"
