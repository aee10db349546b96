# The two commands for a bare machine: `make run` and `make test`. Everything stays inside the checkout.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: run test check format bench clean help

help:
	@echo 'make run     index your sessions (or the sample home) and list them'
	@echo 'make test    all tests, in an environment of their own'
	@echo 'make check   ruff, mypy (linux and darwin), the layer contract'
	@echo 'make format  let ruff format and fix'
	@echo 'make bench   measure, and write docs/benchmarks.md'
	@echo 'make clean   remove the environment and the index of make run'

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sessiond needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "$(PYTHON) lacks venv. On Debian and Ubuntu: sudo apt install python3-venv"; exit 1; }
	@echo "making $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --upgrade pip
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --editable .
	@touch $@

$(VENV)/.developed: $(VENV)/.made pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --editable '.[dev]'
	@touch $@ $(VENV)/.installed

run: $(VENV)/.installed
	@sh fixtures/run.sh $(BIN)

test: $(VENV)/.developed
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile $(PYTEST_OPTIONS)

check: $(VENV)/.developed
	@$(BIN)/ruff format --check --quiet . || { echo 'run: make format'; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --platform linux
	@$(BIN)/mypy --platform darwin
	@$(BIN)/lint-imports --no-logo

format: $(VENV)/.developed
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

bench: $(VENV)/.developed
	@$(BIN)/python -m bench

clean:
	rm -rf $(VENV) .run .cache
