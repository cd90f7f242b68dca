# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

help:  ## say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

.venv/installed-dev: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ .venv/installed

demo: .venv/installed  ## install, and run the demonstration in this terminal
	$(BIN)/rankstream demo

test: .venv/installed-dev  ## install, and run all tests with a real Kafka and Redis
	$(BIN)/python -m pytest

lint: .venv/installed-dev  ## style, types, spelling and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell README.md ARCHITECTURE.md CHANGELOG.md rankstream models streams producers deploy tests

check: lint test  ## what CI runs

format: .venv/installed-dev  ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: help demo test lint check format
