# Everything runs in .venv, which the first target that needs it creates from pinned, hashed requirements.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.PHONY: help demo check fast test pytest extras lint docs lowest pages soak lock wheel clean
help: ## show the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

PROJECTS := . papers/dfhpg

.venv/ready: requirements/dev.txt pyproject.toml papers/dfhpg/pyproject.toml
	@echo "setting up .venv (once; some minutes on a slow network)"
	@$(PYTHON) -c 'import sys; sys.exit("regretless needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv .venv
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation $(addprefix --editable ./,$(PROJECTS))
	@touch $@

.venv/docs-ready: .venv/ready requirements/docs.txt
	@$(PIP) install --require-hashes -r requirements/docs.txt
	@touch $@

# torch: its CPU build where pip finds one, else the build of the default index with the CUDA libraries that it asks for.
.venv/extras-ready: .venv/ready requirements/extras.txt requirements/torch.txt requirements/torch-cpu.txt
	@$(PIP) install --no-deps --require-hashes -r requirements/torch-cpu.txt >/dev/null 2>&1 \
		|| $(PIP) install --require-hashes -r requirements/torch.txt
	@$(PIP) install --require-hashes -r requirements/extras.txt
	@touch $@

demo: .venv/ready ## play all policies on top-k, print the table, draw the regret curves into demo/
	$(BIN)/regretless run topk --out demo
	@echo "open demo/regret.png for the regret curves"

test: .venv/docs-ready ## check style, types and layers, and run every test, those of the pages too
	@$(MAKE) --no-print-directory -j 2 lint pytest

pytest: .venv/docs-ready
	$(BIN)/pytest -n 2 --dist loadfile

extras: .venv/extras-ready ## install the optional dependencies; without them their tests are skipped

lint: .venv/ready ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: .venv/ready ## style, types, layers and the fast tests (two minutes)
	@$(MAKE) --no-print-directory -j 2 lint fast

fast: .venv/ready
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow and not soak"

lowest: requirements/lowest.txt ## the fast tests with the lowest versions of all dependencies, in .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip --disable-pip-version-check --quiet install --require-hashes -r requirements/lowest.txt
	.venv-lowest/bin/pip --disable-pip-version-check --quiet install --no-deps --no-build-isolation $(addprefix --editable ./,$(PROJECTS))
	.venv-lowest/bin/pytest -n 2 --dist loadfile -m "not slow and not soak"

wheel: .venv/ready ## build the distributions into dist/ and test the wheel in an empty environment
	for project in $(PROJECTS); do (cd $$project && $(CURDIR)/$(BIN)/python -m hatchling build -d $(CURDIR)/dist); done
	$(BIN)/pytest -n 0 tests/packaging

soak: .venv/ready ## random calls, kills, damage and interrupts at length, and the coverage of intervals (two hours)
	REGRETLESS_TEST_COMPILATION=optimized REGRETLESS_INTERLEAVINGS=10000 \
	REGRETLESS_SOAK_CALLS=10000 REGRETLESS_SOAK_KILLS=100 REGRETLESS_SOAK_DAMAGE=300 \
	REGRETLESS_SOAK_SIMULATION_KILLS=20 REGRETLESS_SOAK_STALL_CALLS=10000 REGRETLESS_SOAK_LOGS=500 \
	REGRETLESS_SOAK_COMMANDS=1000 REGRETLESS_SOAK_INTERRUPTS=300 REGRETLESS_SOAK_SEED=0 \
	REGRETLESS_SOAK_CALL_INTERRUPTS=2000 REGRETLESS_SOAK_RESTARTS=100 REGRETLESS_SOAK_CAMPAIGN_KILLS=20 REGRETLESS_SOAK_RAY_KILLS=4 \
	$(BIN)/pytest -m "soak or not soak" tests/soak tests/live/test_interleavings.py

docs: .venv/docs-ready ## build the documentation into site/, offline
	PYTHONPATH=tools $(BIN)/zensical build --strict --clean
	$(BIN)/python tools/page_sources.py site

STORE ?= results
pages: .venv/ready ## write tables and pictures of the pages, from the results in STORE (default: results)
	$(BIN)/python tools/pages.py $(STORE)

LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --quiet
lock: ## pin the requirements again (needs uv)
	$(LOCK) pyproject.toml --extra dev -o requirements/dev.txt
	$(LOCK) pyproject.toml -c requirements/dev.txt -o requirements/core.txt
	$(LOCK) pyproject.toml --extra test --resolution lowest-direct -o requirements/lowest.txt
	$(LOCK) pyproject.toml --extra dev --extra docs -c requirements/dev.txt -o requirements/docs.txt
	echo torch | $(LOCK) - -c requirements/dev.txt -o requirements/torch.txt
	$(LOCK) pyproject.toml --extra dev --extra ortools --extra peers --extra pyepo --extra ray -c requirements/dev.txt -c requirements/torch.txt \
		--no-header --no-emit-package torch $$(sed -n 's/^\([^=]*\)==.*linux.*/--no-emit-package \1/p' requirements/torch.txt) \
		-o requirements/extras.txt

clean: ## remove what the targets made
	rm -rf .venv .venv-lowest .cache demo dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
