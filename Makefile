# Every target sets up what it needs; `make demo` and `make test` work in a fresh checkout.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# Where the project stands beside its shared material the oracles judge the real sessions too.
SESSIONS := $(if $(wildcard ../shared/transcripts),sessions)

.DEFAULT_GOAL := help
.PHONY: help demo test check unit bench nightly oracles samples clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/.installed  ## compare five policies on the bundled sessions
	$(BIN)/rewindow demo

test: check unit  ## types, lint and every test

check: $(VENV)/.dev  ## types and lint
	$(BIN)/ruff check .
	$(BIN)/mypy

unit: $(VENV)/.dev  ## every test
	$(BIN)/pytest -n auto

bench: $(VENV)/.dev  ## ratios of speed and memory
	$(BIN)/pytest -m bench --benchmark-disable-gc -s tests/bench

nightly: $(VENV)/.dev  ## the tests that take minutes
	$(BIN)/pytest -m nightly

oracles: $(VENV)/.dev  ## judge the presets anew by the harnesses' own code (installs their packages apart)
	$(PYTHON) -m venv .venv-oracles
	.venv-oracles/bin/python -m pip install --quiet --disable-pip-version-check -r tests/oracles/requirements.txt
	npm install --silent --prefix tests/oracles
	.venv-oracles/bin/python tests/oracles/frameworks_oracle.py golden
	$(BIN)/python tests/oracles/histories.py 5000 | node tests/oracles/pi_oracle.mjs golden
	for kind in thought $(SESSIONS); do \
	  $(BIN)/python tests/oracles/more_histories.py $$kind > .venv-oracles/$$kind.json && \
	  .venv-oracles/bin/python tests/oracles/frameworks_oracle.py golden $$kind < .venv-oracles/$$kind.json && \
	  node tests/oracles/pi_oracle.mjs golden $$kind < .venv-oracles/$$kind.json || exit 1; done
	$(BIN)/pytest tests/oracles

samples: $(VENV)/.dev  ## make the bundled sessions again
	$(BIN)/python -m evals.samples

clean:  ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
