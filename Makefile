# One command each. Everything runs in a private virtual environment, .venv, which is made on first
# use and renewed when pyproject.toml or a lock file changes; otherwise nothing is downloaded.
# `make demo` installs only what running needs; every other command adds what checks and tests need.

PYTHON ?= python3
PYTHONS := $(PYTHON) $(filter-out $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11)
BIN := .venv/bin
RUNNABLE := .venv/.runnable
READY := .venv/.ready

# Where compiled code may not be written beside its source, every process would compile all of it
# again: two thirds of the time that a command needs to start. Then it has a place of its own.
ifdef PYTHONDONTWRITEBYTECODE
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/bytecode
endif

# What a decision can depend on runs under two hash seeds: no order may come from a set.
SEEDED := $(wildcard tests/engine tests/kinds tests/scenarios tests/properties)
# What the compiled modules do is tried with these, which neither start servers nor look at sources.
TRIED_COMPILED := tests/decisions tests/engine tests/properties tests/scenarios tests/sim

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.PHONY: help setup fmt lint type test test-slow golden controlplane test-real real-cluster test-suites test-all faults hostile judge scenarios docs docs-site bench bench-real compiled test-compiled deploy reference screenshots demo changelog lock check clean

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(READY)  ## make the virtual environment .venv (the other targets do it by themselves)

fmt: $(READY)  ## rewrite the code in the agreed form
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lint: $(READY)  ## check form, banned calls and the layers of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

type: $(READY)  ## check types, strictly
	$(BIN)/mypy $(wildcard src tests tools bench)

test: lint type  ## lint, type, and every quick test that needs nothing but PyPI
	PYTHONHASHSEED=1 $(BIN)/python -m pytest -q -n 2 -m "not real and not slow"
	$(if $(SEEDED),PYTHONHASHSEED=2 $(BIN)/python -m pytest -q -n 2 -m "not real and not slow" $(SEEDED))

test-slow: $(READY)  ## the tests that take their time: stories on living clusters, crashes, long properties
	PYTHONHASHSEED=1 $(BIN)/python -m pytest -q -n 2 -m "slow and not real"

golden: $(READY)  ## write expected outputs anew (transcripts need kubectl); review the diff like code
	$(BIN)/python -m tests.cli.situations
	$(BIN)/python -m tests.cli.table_stories
	$(BIN)/python -m tests.kubectl $(ARGS)

controlplane: $(READY)  ## build a real Kubernetes control plane for test-real (once; needs Go)
	@$(BIN)/python -m tests.real.binaries

test-real: $(READY)  ## the tests that need a real Kubernetes, Slurm, Prometheus or browser
	@$(BIN)/python -m tests.real $(ARGS)

real-cluster: $(READY)  ## a real control plane with simulated nodes, to try things on by hand
	@$(BIN)/python -m tests.real.by_hand $(ARGS)

test-suites: $(READY)  ## specs of public projects, built from their Go modules, run against us (ARGS=kueue, ARGS=volcano; minutes, needs Go)
	@$(BIN)/python -m tests.suites $(ARGS)

test-all: lint type  ## every test, slow ones, thousands of runs with faults and of hostile objects, and the real ones
	PYTHONHASHSEED=1 $(BIN)/python -m pytest -q -n 2 -m "not real"
	$(if $(SEEDED),PYTHONHASHSEED=2 $(BIN)/python -m pytest -q -n 2 -m "not real" $(SEEDED))
	@$(BIN)/python -m tests.hostile --cases 25000 --jobs 2
	@$(BIN)/python -m tests.real --every

faults: $(READY)  ## clusters in trouble, drawn from seeds (ARGS="--range 0-500 --jobs 2", or "--seed 7 --trace")
	@$(BIN)/python -m tests.faults $(ARGS)

judge: $(READY)  ## judge the explanations of random clusters (ARGS="--runs 20000 --jobs 2", or "--runs 1 --seed 7")
	@$(BIN)/python -m tests.judge $(ARGS)

hostile: $(READY)  ## hostile objects beside an innocent job (ARGS="--cases 2000 --jobs 2", or "--seed 7")
	@$(BIN)/python -m tests.hostile $(ARGS)

scenarios: $(READY)  ## run the stories of the specification and list each one's outcome
	@$(BIN)/python -m tests.scenarios $(ARGS)

docs: $(READY)  ## check the documents: links, targets, glossary, and every block that can be run
	$(BIN)/python -m pytest -q tests/architecture/test_documents.py tests/docs

docs-site: $(READY)  ## build the documents into a static site, build/site
	@$(BIN)/python -m tools.docs_site build/site

compiled: $(READY)  ## compile the hot modules with mypyc, once, into the cache, and print the folder (needs a C compiler)
	@$(BIN)/python -m tools.compiled

test-compiled: $(READY)  ## the engine's quick tests on the compiled copy (needs a C compiler)
	@compiled=$$($(BIN)/python -m tools.compiled) && \
	  PYTHONPATH=$$compiled $(BIN)/python -m pytest -q -n 2 -m "not real and not slow" $(or $(ARGS),$(TRIED_COMPILED))

bench: $(READY)  ## measure, compiled where it can be (COMPILED=no: interpreted; options through ARGS=, see ARGS=--help)
	@$(if $(filter no,$(COMPILED)),,$(BIN)/python -m tools.compiled --with) $(BIN)/python -m bench $(ARGS)

bench-real: $(READY)  ## measure on a real etcd and API server (ARGS="--quick admissions")
	@$(BIN)/python -m bench.real $(ARGS)

deploy: $(READY)  ## write the manifests in deploy/ anew from what `unisono install` applies
	@$(BIN)/python -m tools.deploy

screenshots: $(READY)  ## take the pictures of the web page in docs/images anew (needs Chromium)
	@$(BIN)/python -m tools.screenshots

reference: $(READY)  ## write the pages of commands, kinds and metrics anew from the code
	@$(BIN)/python -m tools.reference

demo: $(RUNNABLE)  ## stories on clusters that are started for them; a menu at a terminal
	@$(BIN)/unisono demo

changelog: $(READY)  ## move the notes of changes/ into CHANGELOG.md (RELEASE=1.2.3 makes a release of it)
	@$(BIN)/python tools/changelog.py $(if $(RELEASE),--release $(RELEASE) --date $(shell date -u +%F))

lock: $(READY)  ## renew requirements.lock and requirements-dev.lock from pyproject.toml (needs PyPI)
	@$(BIN)/python tools/lock.py

check: test test-real  ## exactly what CI runs

clean:  ## remove the environment, caches and builds
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The locks hold exact versions of everything, the build backend included, so the package itself is
# installed without a second, unlocked environment to build it in.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(RUNNABLE): pyproject.toml requirements.lock
	@if ! $(BIN)/python -c 'import pip' 2>/dev/null; then \
	  rm -rf .venv; \
	  for python in $(PYTHONS); do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	      echo "setup: making .venv with $$($$python --version)"; \
	      $$python -m venv .venv || exit 1; \
	      break; \
	    fi; \
	  done; \
	fi
	@if ! [ -x $(BIN)/python ]; then \
	  echo "setup: Unisono needs Python 3.11 or newer; tried $(PYTHONS)" >&2; \
	  echo "setup: install one, or name it: make PYTHON=/path/to/python" >&2; \
	  exit 1; \
	fi
	@echo "setup: installing what running needs"
	@$(PIP) --no-compile -r requirements.lock
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

$(READY): $(RUNNABLE) requirements-dev.lock
	@echo "setup: installing what checks and tests need"
	@$(PIP) -r requirements-dev.lock
	@touch $@
