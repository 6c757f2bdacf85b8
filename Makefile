# make test and make demo do everything a fresh machine needs besides Python 3.11+ and Java 17+.

VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
# The interpreter for a new environment; without it the newest suitable one on the PATH is taken.
PYTHON ?=
# Tests run in so many processes. Three of them begin with those that use Spark, and wait for it much of their time.
TEST_PROCESSES ?= 3
# make test-deep tries so many times the examples that random tests name (make test: a twentieth), drawn by a seed.
EXAMPLES ?= 10
SEED ?= 1
# make test-versions fails where fewer Pythons are found.
LEAST_PYTHONS ?= 2

# Else every process of the tests compiles all of cerflow anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help test test-fast test-deep test-versions test-lowest coverage demo demo-stream docs bench bench-docs papers lint types format java clean

help:
	@echo "make test         run the tests; TESTS=all as CI does: those that take longest, too"
	@echo "make test-fast    run the tests that need no Spark, with few random examples"
	@echo "make test-deep    run the random tests with EXAMPLES=10 times the examples that they name, drawn by SEED=1, and kill streams"
	@echo "make test-versions  install the wheel for each Python that is found, and test it; LEAST_PYTHONS=1 allows a single one, BRIEF=1 takes a selection as CI does"
	@echo "make test-lowest  the same with the oldest Python and the lowest versions of the dependencies that pyproject.toml allows"
	@echo "make coverage     say which lines and branches the tests without Spark reach"
	@echo "make demo         recognise a pattern in 200,000 stock ticks, on Spark in local mode"
	@echo "make demo-stream  the same in a stream of files, in disorder, as they come"
	@echo "make docs         make the manual a site, in site/"
	@echo "make bench        measure cerflow and other engines: an hour, or minutes with BENCH_ARGS=--quick"
	@echo "make papers       measure the figures of the papers, and write bench-output/papers/papers.md; a quarter of an hour with PAPERS_ARGS=--quick"
	@echo "make bench-docs   measure in a quarter of an hour, and write docs/benchmarks.md (on a quiet machine)"
	@echo "make lint         check style and formatting (make format repairs them)"
	@echo "make types        check the types"
	@echo "make clean        remove the virtual environments, caches and the demo's output"

ALL := CERFLOW_EXAMPLES=0.05 $(PY) -m pytest
MOST := $(ALL) -m 'not long'

test: java $(INSTALLED)
	@$(if $(filter all,$(TESTS)),$(ALL),$(MOST)) -n $(TEST_PROCESSES) $(PYTEST_ARGS)

FAST := -m 'not slow' $(addprefix --ignore=tests/,spark benchmarks docs cli studio look/viewing look/notebooks)

test-fast: $(INSTALLED)
	@CERFLOW_EXAMPLES=0.05 $(PY) -m pytest -n $(TEST_PROCESSES) $(FAST) $(PYTEST_ARGS)

test-deep: $(INSTALLED)
	@CERFLOW_EXAMPLES=$(EXAMPLES) $(PY) -m pytest -n $(TEST_PROCESSES) --hypothesis-seed=$(SEED) --timeout=7200 -m 'not slow or deep' $(PYTEST_ARGS)

test-versions: java $(INSTALLED)
	@$(PY) scripts/test_versions.py --least $(LEAST_PYTHONS) $(if $(BRIEF),--brief -n 2,-n $(TEST_PROCESSES)) $(PYTEST_ARGS)

test-lowest: java $(INSTALLED)
	@$(PY) scripts/test_versions.py --lowest -n $(TEST_PROCESSES) $(PYTEST_ARGS)

coverage: $(INSTALLED)
	@CERFLOW_EXAMPLES=0.05 $(PY) -m pytest -n $(TEST_PROCESSES) --cov --cov-report=term:skip-covered $(FAST) $(PYTEST_ARGS)

demo: java $(INSTALLED)
	@$(PY) -m cerflow.examples.demo

demo-stream: java $(INSTALLED)
	@$(PY) -m cerflow.examples.stream_demo

bench: $(INSTALLED)
	@$(PY) -m pip install --quiet --editable '.[bench]'
	@$(PY) -m benchmarks $(BENCH_ARGS)

papers: $(INSTALLED)
	@$(PY) -m pip install --quiet --editable '.[bench]'
	@$(PY) -m benchmarks.papers $(PAPERS_ARGS)

bench-docs: java $(INSTALLED)
	@$(PY) -m pip install --quiet --editable '.[bench]'
	@$(PY) -m benchmarks core dataframes everyday large start --limit 10 --out bench-output/full
	@$(PY) -m benchmarks srt cel scale --quick --out bench-output/quick
	@$(PY) -m benchmarks.spark --events 4000000 --cores 2 --runs 2 --out bench-output/spark
	@$(PY) -m benchmarks.publish bench-output/full bench-output/quick bench-output/spark

docs: $(INSTALLED)
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet
	@echo "cerflow: the manual is site/index.html"

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
	rm -rf $(VENV) $(VENV)-[0-9l]* site .coverage build dist demo-output bench-output spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
