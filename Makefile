# Everything a fresh machine with Python >= 3.11 (pip, venv) and make needs. See README.md.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
LOWEST := .venv-lowest
NAME ?= all
# Tests run on all cores; each worker keeps to one thread and one process, unless a test says how many it wants.
WORKERS ?= auto
ALONE := COTERIE_NUM_THREADS=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: help venv demo test test-slow test-lowest test-browser lint format bench report-js docs evidence wrap clean

help:
	@echo "make demo       set up and discover groups in synthetic data"
	@echo "make test       set up, check style and types, run the tests"
	@echo "make test-slow  the tests that take longer"
	@echo "make test-lowest   the tests on the lowest supported versions"
	@echo "make test-browser  the report in a real browser (Chromium)"
	@echo "make lint       ruff and mypy"
	@echo "make report-js  lint and build the report's script (needs Node)"
	@echo "make bench NAME=news20   one benchmark (NAME=all for all)"
	@echo "make docs       the documentation site, in docs/_build/html"
	@echo "make evidence NAME=family   measure one page of docs/evidence again"
	@echo "make wrap       break the lines of the pages at 100 characters"

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
	$(ALONE) $(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not browser"

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

# The lower bounds of pyproject.toml, in an environment of their own. Style, types and documentation are not checked there.
test-lowest: $(LOWEST)/.ready
	$(ALONE) $(LOWEST)/bin/python -m pytest -n $(WORKERS) -m "not slow and not browser" --ignore=tests/docs

$(LOWEST)/.ready: pyproject.toml tests/lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip
	$(LOWEST)/bin/python -m pip install --quiet --constraint tests/lowest.txt --editable '.[dev]'
	@touch $@

# Chromium comes from the system; where we may, it is installed. Without it the tests are skipped, and say so.
test-browser: $(STAMP)
	@command -v chromedriver >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq chromium chromium-driver >/dev/null; } || \
		echo "Chromium could not be installed."
	$(BIN)/python -m pytest -m browser tests/browser

# The script of the report, for those who change it: Node and npm build it, the package carries what they made.
report-js:
	cd report-js && npm ci --silent && npm run --silent lint && npm run --silent build

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@if [ "$(NAME)" = all ]; then for f in benchmarks/[a-z]*.py; do $(BIN)/python $$f || exit 1; done; \
	else $(BIN)/python benchmarks/$(NAME).py; fi

# Links between pages and to headings are checked by the build and by pages.py; those to the web are not followed.
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
	rm -rf $(VENV) $(LOWEST) coterie-demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/learn/gallery \
		docs/reference/generated
