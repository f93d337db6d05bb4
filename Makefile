# Everything a developer does here. It needs Python 3.11 or newer with its venv module; uv is used where it is there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
STAMP := $(VENV)/.installed
TOOLS := $(VENV)/tools

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test test-all fuzz coverage ready parts packages crewai lint format bench docs lock clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 10

install: $(STAMP) ## Make .venv with atp and all that its developers need

# The lock holds the hash of every file that is installed, the build backend's included; hence no build isolation.
$(STAMP): pyproject.toml requirements-dev.lock | $(BIN)/python
	@echo "installing into $(VENV): about a minute"
ifneq ($(UV),)
	$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements-dev.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	@touch $@

# The pip that comes with Python 3.11 takes twice as long as one of today.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("ATP needs Python 3.11 or newer: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
ifneq ($(UV),)
	$(UV) venv --quiet --python $(PYTHON) $(VENV)
else
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-pip.lock
endif

demo: install ## Show atp at work on the example suites
	PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo.sh

# A worker more than there are processors: some tests wait for processes. No file is torn apart, for what it shares.
WORKERS := $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

test: ready ## Check everything: lint, types, tests
	$(PYTEST) -m "not slow and not fuzz"

test-all: ready ## The same with slow tests, then the tests with Python 3.12 and 3.13 where they are installed
	$(PYTEST) -m "not fuzz"
	tools/test-pythons.sh 3.12 3.13

fuzz: ready ## Long proofs: generated and damaged files, injected faults, secrets in every form
	$(PYTEST) --dist worksteal -m fuzz

coverage: ready ## Show which lines the tests don't reach
	$(PYTEST) -m "not fuzz" --cov

# What comes before the tests is done side by side: half of it waits for the network.
ready:
	@$(MAKE) --no-print-directory --jobs=4 $(if $(filter output-sync,$(.FEATURES)),--output-sync) parts lint

parts: packages crewai ## Install what tests need beside Python: a container engine, a browser, PostgreSQL, CrewAI in its own environment

packages:
	tools/docker-engine.sh
	tools/chromium.sh
	tools/postgresql.sh

crewai: | $(BIN)/python
	tools/crewai-env.sh

lint: install ## Check style, form and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: install ## Bring the code into form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: install ## Measure: run every bench/bench_*.py
	@set -e; for file in bench/bench_*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

docs: install ## Write the reference, build the documentation into site/
	$(BIN)/python tools/reference.py
	$(BIN)/properdocs build --strict --quiet

lock: $(or $(UV),$(TOOLS)/bin/uv) ## Pin the newest versions of all dependencies
	$< pip compile --no-config --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
		--all-extras --group dev pyproject.toml -o requirements-dev.lock
	echo pip | $< pip compile --no-config --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command "make lock" - -o requirements-pip.lock

$(TOOLS)/bin/uv:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check uv

clean: ## Remove what make and the tools have made
	rm -rf $(VENV) .artifacts site dist build .coverage .coverage.* htmlcov .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests bench examples tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
