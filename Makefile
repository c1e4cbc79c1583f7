# Needs Python 3.11 or newer with its venv module, and nothing else: `make help` lists what there is to do.
PYTHON ?= python3
VENV   ?= .venv
OUT    ?= demo-run

BIN     := $(VENV)/bin
PINNED  := pyproject.toml requirements/constraints.txt
INSTALL := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check -c requirements/constraints.txt
TESTS   := $(if $(BROWSER),-m "not slow")

.DEFAULT_GOAL := help
.PHONY: help demo test check wheel docs clean

help: ## what there is to do
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.tgsr ## install tgsr and run the demonstration; its results go to demo-run
	$(BIN)/python -m tgsr.demo --out $(OUT)

test: $(VENV)/.tgsr-test ## the test suite (BROWSER=1 adds the tests that open the report in Chromium)
	$(BIN)/python -m pytest $(TESTS) $(ARGS)

check: $(VENV)/.tgsr-dev ## lint, types, layers, pins, and a strict build of the documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-cache
	$(BIN)/python requirements/update.py --check
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

wheel: $(BIN)/python ## build the wheel, install it somewhere else, and let it look at itself
	rm -rf dist build/wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(BIN)/python -m venv build/wheel
	build/wheel/bin/python -m pip install --no-compile --quiet --disable-pip-version-check -c requirements/constraints.txt dist/*.whl
	cd build && wheel/bin/tgsr doctor && wheel/bin/python -m tgsr.demo --quick --out wheel/demo && rm -rf wheel

docs: $(VENV)/.tgsr-dev ## the documentation, served at http://127.0.0.1:8000 while you write it
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

clean: ## delete what this file made: the environment, caches and built pages
	rm -rf $(VENV) site build dist .pytest_cache .ruff_cache .hypothesis
	find src tests docs -name __pycache__ -type d -prune -exec rm -rf {} +

# One pip call each; a later one touches the marks of those it includes, so nothing is installed twice.
$(VENV)/.tgsr: $(PINNED) | $(BIN)/python
	@echo "Installing tgsr into $(VENV) (about a minute)"
	@$(INSTALL) -e . && touch $@

$(VENV)/.tgsr-test: $(PINNED) | $(BIN)/python
	@echo "Installing tgsr and what its tests need into $(VENV) (about a minute)"
	@$(INSTALL) -e '.[test]' && touch $(VENV)/.tgsr $@

$(VENV)/.tgsr-dev: $(PINNED) | $(BIN)/python
	@echo "Installing tgsr and what its development needs into $(VENV) (about a minute)"
	@$(INSTALL) -e '.[dev]' && touch $(VENV)/.tgsr $(VENV)/.tgsr-test $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "error: '$(PYTHON)' is not installed. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: tgsr needs Python 3.11 or newer and '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name a newer one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "error: '$(PYTHON)' comes without its venv module. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
