# Everything a person or CI runs. Each target does its own set-up; on another Python: make test PYTHON=python3.13 VENV=build/3.13
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
EXTRAS := postgres pandas polars neural signed excel
# One thread for linear algebra, and compiled modules that all processes of the tests share.
QUICK := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help install install-dev demo docs quick tests map test test-slow test-processors test-oldest test-wheel wheel fuzz check format bench bench-peers bench-speed bench-growth bench-useful experiments clean

help:            ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

install: $(STAMP) ## make .venv with the command .venv/bin/kamino

install-dev: $(DEV_STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "kamino needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12"; exit 2; }
	@echo "Setting up $(VENV) (about a minute) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade 'pip>=25.1'
	@$(PIP) --editable .
	@touch $(STAMP)

$(DEV_STAMP): $(STAMP)
	@echo "Adding what the tests need (a minute or two) ..."
	@$(PIP) --editable . --group dev
	@touch $(DEV_STAMP)

demo: install    ## run the main job on built-in data
	@$(BIN)/kamino demo

quick: install-dev   ## pass the tests that take a moment, with a twentieth of the examples (a minute on two cores)
	$(QUICK) $(BIN)/python -m pytest -q -m "not slow and not process and not long" --hypothesis-profile quick \
	  -n auto --maxprocesses 8 --dist worksteal

tests: install-dev   ## pass the tests that reach a file: FILE=src/kamino/schema/codec.py, or FILE="one two"
	$(QUICK) $(BIN)/python -m pytest -q -m "not slow" $$($(BIN)/python -m tests.measured $(FILE))

map: install-dev     ## measure again which tests reach a file, and what each costs (half an hour)
	rm -rf build/map && mkdir -p build/map
	TESTS_MEASURED=build/map/lines $(QUICK) $(BIN)/python -m coverage run --branch --source=src/kamino \
	  --data-file=build/map/coverage -m pytest -q -m "not slow" --hypothesis-profile quick -p tests.measured
	$(BIN)/python -m tests.measured --write build/map/lines build/map/coverage

test: install-dev   ## pass the tests on all cores (about ten minutes on two)
	$(QUICK) $(BIN)/python -m pytest -q -m "not slow" -n auto --maxprocesses 8 --dist loadfile

test-slow: install-dev ## pass the slow statistical tests, and try examples that nobody tried before
	$(QUICK) $(BIN)/python -m pytest -q -m slow
	$(QUICK) $(BIN)/python -m pytest -q -m "hypothesis and not slow" --hypothesis-profile exploring -n auto --maxprocesses 8

fuzz: install-dev    ## read COUNT=1000000 fuzzed inputs with SEED=1 (half an hour), and replay commands on PAIRS=20000 pairs of files
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz --count $(or $(COUNT),1000000) --seed $(or $(SEED),1)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz.commands --count $(or $(PAIRS),20000) --seed $(or $(SEED),1)

test-processors: install-dev ## pass the quick tests as five other processors would, or KINDS=1, or TESTS="tests/model ..." (an hour)
	$(QUICK) $(BIN)/python -m tests.processors $(if $(KINDS),--kinds $(KINDS)) $(TESTS)

test-oldest: install-dev ## pass the tests (but the one against mbi, which needs a newer jax) with the lowest versions that pyproject.toml allows
	@$(PIP) uv
	@rm -rf build/oldest && mkdir -p build
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --python $(BIN)/python $(EXTRAS:%=--extra %) pyproject.toml -o build/oldest.txt
	$(BIN)/uv venv --quiet --python $(BIN)/python build/oldest
	VIRTUAL_ENV=build/oldest $(BIN)/uv pip install --quiet -r build/oldest.txt --group test --editable .
	$(QUICK) build/oldest/bin/python -m pytest -q -m "not slow" -n auto --maxprocesses 8 --dist loadfile \
	  --ignore tests/model/test_against_mbi.py -W default::DeprecationWarning -W default::FutureWarning

wheel: install-dev   ## build the wheel and the sdist into dist/
	rm -rf dist
	$(BIN)/python -m build --quiet .
	@ls -l dist

test-wheel: install-dev ## build the wheel, install it into empty environments of every Python here, and run it there
	$(BIN)/python -m pytest -q -m slow tests/house/test_wheel.py

check: install-dev   ## lint, format check, types, workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/zizmor --quiet --offline .github/workflows

format: install-dev  ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install-dev   ## run the benchmarks on built-in data
	$(BIN)/python bench/check.py
	$(BIN)/python -m bench.synth --runs 1

bench-peers: install-dev ## compare with other synthesizers on DATA=FOLDER (hours; each in its own environment)
	$(BIN)/python -m bench.peers.run $(if $(DATA),--data $(DATA))

bench-speed: install-dev ## compare the cost with an earlier commit, also on DATA=FOLDER (an hour)
	$(BIN)/python -m bench.speed $(if $(DATA),--data $(DATA)) --write docs/speed.md

bench-growth: install-dev ## measure how costs grow, beside BEFORE=COMMIT (hours; SMALL=1: what CI runs)
	$(BIN)/python -m bench.growth $(if $(SMALL),--small) $(if $(BEFORE),--before $(BEFORE)) --write docs/speed.md

bench-useful: install-dev ## measure usefulness on FOLDERS="..." with the outside judge JUDGE=FILE (an hour)
	$(BIN)/python -m bench.useful $(FOLDERS) $(if $(JUDGE),--judge $(JUDGE)) --parity --write docs/useful.md

experiments: install-dev ## run the paper's experiments on DATA=FOLDER (hours)
	$(BIN)/python -m bench.paper.all $(if $(DATA),--data $(DATA))

docs: install-dev    ## build the site into build/site; a link that leads nowhere is an error
	$(BIN)/python -m mkdocs build --quiet --strict
	@echo "Open build/site/index.html; to search in it, serve it: $(BIN)/python -m http.server -d build/site"

clean:           ## remove the virtual environment and caches
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
