# Snakemake runs a copy of this in the new environment, and makes another one where this file or the YAML changes.
# cpu.lock: 0174834e20ffa5a9
sh "$STEPCREDIT_INSTALL"
