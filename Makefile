# Everything runs in .venv, which the first target that needs it creates from pinned, hashed requirements.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.PHONY: help demo test extras lint docs mutants soak lock clean
help: ## show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.venv/ready: requirements/dev.txt pyproject.toml
	@echo "setting up .venv (once; some minutes on a slow network)"
	@$(PYTHON) -c 'import sys; sys.exit("regretless needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv .venv
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.venv/docs-ready: .venv/ready requirements/docs.txt
	@$(PIP) install --require-hashes -r requirements/docs.txt
	@touch $@

.venv/extras-ready: .venv/ready requirements/extras.txt
	@$(PIP) install -r requirements/extras.txt
	@touch $@

demo: .venv/ready ## play all policies on top-k, print the table, draw the regret curves into demo/
	$(BIN)/regretless run topk --out demo
	@echo "open demo/regret.png for the regret curves"

test: lint ## check style, types and layers, then run every test
	$(BIN)/pytest -n 2 --dist loadfile

extras: .venv/extras-ready ## install the optional dependencies; without them their tests are skipped

lint: .venv/ready ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

mutants: .venv/ready ## break one line at a time and demand that a test fails (some minutes)
	$(BIN)/python tools/mutants.py

soak: .venv/ready ## try to break it: random calls of learners, malformed commands, interrupted runs (about two hours)
	REGRETLESS_INTERLEAVINGS=10000 $(BIN)/pytest tests/live/test_interleavings.py
	$(BIN)/python tools/fuzz_learner.py --calls 10000
	$(BIN)/python tools/fuzz_cli.py --commands 1000
	$(BIN)/python tools/interrupt_runs.py --runs 300

docs: .venv/docs-ready ## build the documentation into site/
	$(BIN)/mkdocs build --strict --quiet

lock: ## pin the requirements anew (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --quiet -o requirements/dev.txt
	uv pip compile pyproject.toml --extra dev --extra docs --universal --python-version 3.11 --generate-hashes --quiet -c requirements/dev.txt -o requirements/docs.txt

clean: ## remove what the targets made
	rm -rf .venv demo site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
