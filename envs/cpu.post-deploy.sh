# Snakemake runs a copy of this in the new environment, and makes another one where this file or the YAML changes.
# cpu.lock: c904db534c4eb2d9
sh "$STEPCREDIT_INSTALL"
