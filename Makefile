# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13; do \
  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  && echo $$python && break; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL := $(PIP) -e
SPELLED := README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs rankstream models streams producers deploy tests
LOCK := deploy/requirements.lock
BUILD_LOCK := deploy/requirements-image.lock
ENGINE ?= $(shell command -v docker || command -v podman || command -v buildah)
IMAGE ?= rankstream
NATIVE := streams/native
NATIVE_SOURCES := $(wildcard $(NATIVE)/*.c $(NATIVE)/*.h) $(NATIVE)/compiler.py
# Tests start hundreds of processes: each would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE
# More than two cores, as tests on a broker mostly wait.
SPREAD := -n 3 --dist loadfile
DURATIONS := tests/session/durations.csv
PURE_TESTS := tests/models tests/laws tests/streams tests/rankstream/wire tests/rankstream/ranking

help:  ## say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "rankstream needs Python 3.11 or newer; none was found: install it, or say make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv

# Stamps: nothing is installed twice while pyproject.toml and the sources in C stay
# as they are. Installing compiles.
.venv/installed: pyproject.toml $(NATIVE_SOURCES) | .venv/bin/python
	@echo "installing rankstream into .venv; this takes a minute, once"
	@$(INSTALL) '.[pipeline]'
	@touch $@

.venv/installed-dev: pyproject.toml $(NATIVE_SOURCES) | .venv/bin/python
	@echo "installing rankstream and its tools into .venv; this takes a minute, once"
	@$(INSTALL) '.[dev]'
	@touch $@ .venv/installed

demo: .venv/installed  ## install, and run the demonstration in this terminal
	@$(BIN)/rankstream demo

# Byte code of all modules and tests, written once, on two cores.
.venv/collected: .venv/installed-dev
	@echo "collecting the tests for the first time"
	@$(BIN)/python -m pytest --collect-only -q tests/streams tests/laws streams >/dev/null & \
	  $(BIN)/python -m pytest --collect-only -q tests/rankstream tests/models tests/producers models rankstream >/dev/null; wait
	@touch $@

# Tests start some fifty brokers. Where there is no Java they say so themselves.
.venv/broker-classes: deploy/kafka/pom.xml tests/session/broker_classes.py | .venv/installed-dev
	@$(BIN)/python -m tests.session.broker_classes && touch $@ || true

kernels: .venv/collected
	@echo "compiling kernels, half a minute the first time"
	@$(BIN)/python -m tests.session.kernels

test: .venv/collected .venv/broker-classes kernels  ## install, and run all tests, those on a real Kafka and Redis too
	$(BIN)/python -m pytest $(SPREAD)

quick: .venv/collected  ## laws and pure rooms, and style of what changed
	@git diff --name-only --diff-filter=d HEAD -- '*.py' | xargs -r $(BIN)/ruff check
	@git diff --name-only --diff-filter=d HEAD -- '*.py' | xargs -r $(BIN)/ruff format --check
	$(BIN)/python -m pytest -n 2 --dist loadfile -q -m 'not broker' --under 1

long: .venv/collected .venv/broker-classes kernels fuzz fuzz-wire  ## what takes hours: all cases of the laws, a million broken records
	RANKSTREAM_TEST_CASES=all $(BIN)/python -m pytest $(SPREAD)

durations: .venv/collected .venv/broker-classes kernels  ## run all tests, and keep what each took
	$(BIN)/python -m pytest $(SPREAD) --keep-durations $(DURATIONS)

native: .venv/bin/python  ## compile the fold's core in C anew
	$(BIN)/python -m streams.native.compiler

typescript:  ## compile the client in TypeScript, and run its tests that need no server
	@command -v node >/dev/null || { echo "the client in TypeScript needs Node 18 or later; none was found: install nodejs"; exit 1; }
	cd producers/typescript && node build.mjs && node --test test/*.test.mjs

fuzz: .venv/installed-dev  ## a million broken records through the core, under sanitizers
	$(BIN)/python -m tests.fuzz

fuzz-wire: .venv/installed-dev  ## a hundred thousand broken records through the decoders in Python
	$(BIN)/python -W error -m tests.fuzz.decoding

mutants: .venv/installed-dev  ## plant 300 faults, one at a time: which no test sees; an hour
	$(BIN)/python -m tests.mutants

lint: .venv/installed-dev  ## style, types, import contracts and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell $(SPELLED)

check: lint test  ## what CI runs

format: .venv/installed-dev  ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: .venv/installed-dev  ## lines of the pure rooms that tests without a broker run; takes minutes
	@$(PIP) -e '.[coverage]'
	$(BIN)/python -m coverage run -m pytest -q -m "not broker" $(PURE_TESTS)
	$(BIN)/python -m coverage report

hooks: .venv/installed-dev  ## check style and message of each commit
	@$(PIP) 'pre-commit>=4'
	$(BIN)/pre-commit install

PINNED := --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-emit-find-links --no-annotate --quiet --custom-compile-command 'make lock'

lock: .venv/installed-dev  ## write the lock files in deploy/ anew; UPGRADE=--upgrade for newer versions
	$(BIN)/python -m uv pip compile pyproject.toml --extra serve $(PINNED) $(UPGRADE) -o $(LOCK)
	$(BIN)/python -m uv pip compile --group image $(PINNED) $(UPGRADE) -o $(BUILD_LOCK)

image:  ## build the container image; ENGINE=docker, podman or buildah, IMAGE=its name
	@test -n "$(ENGINE)" || { echo "an image needs a builder; found none of docker, podman, buildah: install one"; exit 1; }
	$(ENGINE) build --file deploy/Containerfile --tag $(IMAGE) $(IMAGE_OPTIONS) \
	  --build-arg VERSION="$$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)" \
	  --build-arg REVISION="$$(git rev-parse HEAD)" .

site: .venv/installed-dev  ## build the documentation site into site/; read it with make read
	$(BIN)/python -m docs

read: site  ## build the site, and show it at http://127.0.0.1:8000
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site 8000

dist: .venv/installed-dev  ## build the wheel and the source distribution into dist/
	$(BIN)/python -m uv build --quiet --out-dir dist .

release:  ## name a version: make release VERSION=1.2.3; commits and tags, sends nothing
	@echo "$(VERSION)" | grep -qE '^[0-9]+\.[0-9]+\.[0-9]+$$' || { echo "release needs VERSION=1.2.3; got '$(VERSION)'"; exit 2; }
	@test -z "$$(git status --porcelain)" || { echo "release needs a clean tree; commit or stash what 'git status' shows"; exit 2; }
	@! git rev-parse --quiet --verify "refs/tags/v$(VERSION)" >/dev/null || { echo "release needs a new version; v$(VERSION) is a tag already"; exit 2; }
	@sed -i.old 's/^version = ".*"/version = "$(VERSION)"/' pyproject.toml && rm pyproject.toml.old
	@awk -v name="$(VERSION) - $$(date +%F)" '{ print } /^## Unreleased$$/ { print "\n## " name }' CHANGELOG.md > CHANGELOG.new && mv CHANGELOG.new CHANGELOG.md
	git commit --quiet --all --message "Release $(VERSION)"
	git tag --annotate --message "rankstream $(VERSION)" "v$(VERSION)"

.PHONY: help demo kernels test quick long durations native typescript fuzz fuzz-wire mutants lint check format coverage hooks lock image site read dist release
