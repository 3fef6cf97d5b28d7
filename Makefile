# Requires Python >= 3.11 (with pip and venv) and make. CONTRIBUTING.md describes the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
LOWEST := .venv-lowest
NAME ?= all
PART ?= solver
# Tests run in one process per core. Each process uses one thread unless a test sets another number.
WORKERS ?= auto
SINGLE_THREAD := COTERIE_NUM_THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# What to measure with `make coverage`: all tests, or some files and folders.
TESTS ?=

.PHONY: help venv demo test test-slow test-lowest test-browser coverage mutation lint format bench report-js docs evidence wrap clean

help:
	@echo "Usage: make TARGET [WORKERS=1] [PYTHON=python3.12]"
	@echo
	@echo "  demo          install Coterie in .venv and discover groups in synthetic data"
	@echo "  test          check style and types, then run the tests"
	@echo "  test-slow     run the slow tests (bad inputs, wheel and sdist)"
	@echo "  test-lowest   run the tests with the lowest supported versions of all dependencies"
	@echo "  test-browser  test the HTML report in Chromium"
	@echo "  mutation      mutation score of a part (PART=solver, discovery, confidence, redundancy, probing or store)"
	@echo "  coverage      run the tests with branch coverage (TESTS=tests/solver for a part)"
	@echo "  lint          check style (ruff) and types (mypy)"
	@echo "  format        apply the style"
	@echo "  docs          build the documentation in docs/_build/html"
	@echo "  wrap          wrap the lines of all pages at 100 characters"
	@echo "  bench         run one benchmark (NAME=news20) or all (NAME=all)"
	@echo "  evidence      measure one page of docs/evidence again (NAME=family)"
	@echo "  report-js     lint and bundle the script of the report (requires Node)"
	@echo "  clean         delete environments, caches and build products"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	@touch $@

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.installed

venv: $(VENV)/.installed

demo: venv
	$(BIN)/coterie demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(SINGLE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not browser"

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

# Style, types and documentation are not checked with the lowest versions.
test-lowest: $(LOWEST)/.ready
	$(SINGLE_THREAD) $(LOWEST)/bin/python -m pytest -n $(WORKERS) -m "not slow and not browser" --ignore=tests/docs

# The environment is created from scratch: pip would keep versions that an earlier run installed.
$(LOWEST)/.ready: pyproject.toml tests/lowest.txt
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip
	$(LOWEST)/bin/python -m pip install --quiet --constraint tests/lowest.txt --editable '.[dev]'
	@touch $@

# Installs Chromium if it is missing and we may (as root, with apt). Otherwise the tests are skipped.
test-browser: $(STAMP)
	@command -v chromedriver >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
		echo "Chromium could not be installed."
	$(BIN)/python -m pytest -m browser tests/browser

# Slow: some minutes for 30 mutants (docs/development/mutation.md).
mutation: $(STAMP)
	$(BIN)/python tests/mutation/run.py $(PART) --seed 1 --mutants 30

# Compiled kernels are excluded: coverage cannot see them (docs/development/releasing.md).
coverage: $(STAMP)
	$(SINGLE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not browser" \
		--cov --cov-report=term --cov-report=html $(TESTS)

# Node and npm bundle the script of the report. The bundle is part of the package, so users need neither.
report-js:
	cd report-js && npm ci --silent && npm run --silent lint && npm run --silent build

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@if [ "$(NAME)" = all ]; then for f in benchmarks/[a-z]*.py; do $(BIN)/python $$f || exit 1; done; \
	else $(BIN)/python benchmarks/$(NAME).py; fi

# pages.py and Sphinx check links between pages and to headings. Links to other sites are not followed.
docs: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	$(BIN)/python docs/scripts/pages.py links
	$(BIN)/python -m sphinx -b html --fail-on-warning --keep-going --quiet docs docs/_build/html
	@echo "Written: docs/_build/html/index.html"

evidence: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python benchmarks/evidence.py $(NAME)

wrap:
	$(PYTHON) docs/scripts/pages.py wrap

clean:
	rm -rf $(VENV) $(LOWEST) coterie-demo build dist htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache \
		.hypothesis docs/_build docs/learn/gallery docs/reference/generated
