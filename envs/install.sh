#!/bin/sh
# The CPU environment into the Python that is active: the locked packages, torch for the CPU, this package from its sources,
# and what else is named. For `make setup` and, through the post-deploy scripts, for `snakemake --sdm conda`.
set -eu
TORCH=2.13.0
cd "$(dirname "$0")/.."
[ -f pyproject.toml ] || { echo "conda needs a checkout of the workflow: there are no sources beside $0" >&2; exit 1; }
install() {
    python -m pip --disable-pip-version-check install --quiet --no-deps "$@"
}

install --require-hashes -r envs/cpu.lock
# torch for the CPU is not a package that every index has. First pip as it is configured (a mirror, wheels on disk), then
# uv, which knows where the CPU builds are.
install "torch==$TORCH+cpu" 2>/dev/null || {
    install uv
    python -m uv pip install --python "$(command -v python)" --no-deps --torch-backend cpu "torch==$TORCH"
}
install --no-build-isolation -e .
[ $# -eq 0 ] || install "$@"
