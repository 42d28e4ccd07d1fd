#!/bin/sh
# The environment of the prime-rl backend: Python 3.12, prime-rl at the pinned commit with the versions of its own lock file,
# and this package without its dependencies. Needs git, uv (0.11 or newer), CUDA 12.8 and the network.
#   envs/prime-rl.sh [DIRECTORY]      (.venv-prime-rl by default; another one: STEPCREDIT_PRIME_RL=DIRECTORY when you run)
set -eu
COMMIT=e3e3a87deac100f4bda66f50c9e4ec5386d21343
TARGET=$(realpath -m "${1:-.venv-prime-rl}")
ROOT=$(realpath "$(dirname "$0")/..")
SOURCE="$TARGET-source"

[ -d "$SOURCE" ] || git clone https://github.com/PrimeIntellect-ai/prime-rl "$SOURCE"
cd "$SOURCE"
git checkout --quiet "$COMMIT"
# It names some over SSH, which asks for a key.
git -c url.https://github.com/.insteadOf=git@github.com: submodule update --init --recursive
UV_PROJECT_ENVIRONMENT="$TARGET" uv sync --locked --python 3.12 --extra flash-attn
uv pip install --python "$TARGET/bin/python" --no-deps "$ROOT"
uv pip install --python "$TARGET/bin/python" tomlkit
"$TARGET/bin/python" "$ROOT/tests/training/prime_rl/real_prime_rl.py"
