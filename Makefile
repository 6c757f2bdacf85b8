# make test and make demo do everything a fresh machine needs besides Python 3.11+ and Java 17+.

VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
# The interpreter for a new environment; without it the newest suitable one on the PATH is taken.
PYTHON ?=
# Tests run in so many processes; each may start a Spark of its own.
TEST_PROCESSES ?= 2

.DEFAULT_GOAL := help
.PHONY: help test demo bench lint types format java clean

help:
	@echo "make test    run the tests"
	@echo "make demo    recognise a pattern in 200,000 stock ticks, on Spark in local mode"
	@echo "make bench   measure cerflow and other engines: an hour, or minutes with BENCH_ARGS=--quick"
	@echo "make lint    check style and formatting (make format repairs them)"
	@echo "make types   check the types"
	@echo "make clean   remove the virtual environment, caches and the demo's output"

test: java $(INSTALLED)
	@$(PY) -m pytest -n $(TEST_PROCESSES) --dist loadfile $(PYTEST_ARGS)

demo: java $(INSTALLED)
	@$(PY) -m cerflow.examples.demo

bench: $(INSTALLED)
	@$(PY) -m pip install --quiet --editable '.[bench]'
	@$(PY) -m benchmarks $(BENCH_ARGS)

lint: $(INSTALLED)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

format: $(INSTALLED)
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

types: $(INSTALLED)
	@$(PY) -m mypy

java:
	@scripts/check-java

$(INSTALLED): pyproject.toml
	@PYTHON='$(PYTHON)' scripts/make-venv $(VENV)
	@touch $@

clean:
	rm -rf $(VENV) build dist demo-output bench-output spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
