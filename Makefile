# The two commands of the README and their neighbours. PYTHON chooses the interpreter (3.11 or newer).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SPHINX := $(BIN)/sphinx-build -W --keep-going --quiet -c docs .

.PHONY: setup report smoke test lint docs linkcheck format rulegraph lock clean

setup: $(READY)

$(READY): envs/cpu.lock envs/install.sh pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stepcredit needs Python 3.11 or newer: make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PATH="$(abspath $(BIN)):$$PATH" sh envs/install.sh
	touch $@

report: setup
	$(BIN)/snakemake --cores all results/report.html
	@echo "The report: results/report.html"

smoke: setup
	$(BIN)/snakemake --cores all --configfile config/smoke.yaml

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: setup
	$(BIN)/ruff check src tests benchmarks docs/conf.py
	$(BIN)/ruff format --check src tests benchmarks docs/conf.py
	$(BIN)/mypy
	$(BIN)/snakefmt --check --compact-diff Snakefile workflow rules
	$(BIN)/snakemake --lint
	$(SPHINX) build/site

# The documentation as a site, build/site/docs/index.html; a link inside it that leads nowhere fails. The second also asks other hosts.
docs: setup
	$(SPHINX) build/site

linkcheck: setup
	$(SPHINX) build/links -b linkcheck

format: setup
	$(BIN)/ruff check --fix --quiet src tests benchmarks docs/conf.py
	$(BIN)/ruff format src tests benchmarks docs/conf.py
	$(BIN)/snakefmt Snakefile workflow rules

# The picture in docs/architecture.md, by Snakemake and Graphviz.
rulegraph: setup
	$(BIN)/snakemake --forceall --rulegraph dot -- results/report.html 2>/dev/null | dot -Tsvg > docs/rulegraph.svg

# Resolve envs/cpu.in anew. vLLM asks for torchvision, torchaudio and torchcodec, whose published builds are for CUDA and break
# transformers beside a CPU torch; nothing here needs them.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
	  $(foreach package,torch torchvision torchaudio torchcodec triton,--no-emit-package $(package)) \
	  envs/cpu.in --output-file envs/cpu.lock
	sed -i "s/cpu.lock: .*/cpu.lock: $$(sha256sum envs/cpu.lock | cut -c1-16)/" envs/*.post-deploy.sh

clean:
	rm -rf results/[!R]* .snakemake
