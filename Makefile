.DEFAULT_GOAL := help
.PHONY: help demo test lint bench fuzz clean

SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
CANDIDATES := python3 python3.13 python3.12 python3.11
PYTHON ?= $(shell for p in $(CANDIDATES); do $$p -c '$(SUPPORTED)' 2>/dev/null && echo $$p && break; done)
LOOPSPAN_FUZZ ?= 100000

BIN := .venv/bin
INSTALLED := .venv/.installed
TYPING := $(wildcard tests/typing)

help:  ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 8

demo: $(INSTALLED)  ## run a traced agent loop and print its tree
	$(BIN)/loopspan demo

test: $(INSTALLED)  ## run the tests
	$(BIN)/pytest

lint: $(INSTALLED)  ## ruff, mypy, import-linter, pyright
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(if $(TYPING),$(BIN)/pyright $(TYPING))

bench: $(INSTALLED)  ## measure what loopspan costs, as ratios
	$(BIN)/python -m benchmarks

fuzz: $(INSTALLED)  ## property tests with LOOPSPAN_FUZZ examples each
	LOOPSPAN_FUZZ=$(LOOPSPAN_FUZZ) $(BIN)/pytest -m fuzz --hypothesis-profile=fuzz

clean:  ## remove the environment, caches and build output
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@'$(PYTHON)' -c '$(SUPPORTED)' 2>/dev/null || { \
	  echo "loopspan needs Python 3.11, 3.12 or 3.13; $(if $(PYTHON),$(PYTHON) is not,none of $(CANDIDATES) is): make $(MAKECMDGOALS) PYTHON=/path/to/python" >&2; \
	  exit 1; }
	test -x $(BIN)/python || '$(PYTHON)' -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c constraints.txt -e '.[dev]'
	@touch $@
