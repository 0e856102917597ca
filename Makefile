# The first command after `git clone` is `make demo` or `make test`: both make the environment they need.
# `make PYTHON=python3.13 test` uses an environment of its own, so versions do not overwrite one another.
PYTHON ?= python3
VENV   := .venv$(if $(filter-out python3,$(PYTHON)),-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
BIN    := $(VENV)/bin
LOCK   := requirements
# An environment of a moved clone or of a removed Python is made anew.
$(shell grep -qsF '$(abspath $(VENV))' $(BIN)/activate && test -x $(BIN)/python || rm -f $(VENV)/.made)
PIP     := $(BIN)/python -m pip --disable-pip-version-check --no-input
INSTALL := $(PIP) install -qq --no-user --require-hashes
# Four processes, on two cores too: much of what tests do is to wait.
PYTEST := -m pytest -n 4
SCALE  ?= 20
# Tests of leases and outages race the clock, and a machine may stand still meanwhile. What fails is tried once more by
# itself, and said so; what fails twice has failed, and so has a run that fails without a failed test.
AGAIN   = || { test $$? = 1 || exit 1; echo "Tried once more, with nothing beside it:"; $(run) python -m pytest --lf --lfnf none; }
# A part of the suite (make test ARGS="-k lease") is not held against the numbers of the whole.
COUNTS := $(if $(ARGS),,--contract-counts check)
# The contract on each driver once takes minutes; EVERYWHERE=1, and CI, run it on every server and topology.
export TENURE_EVERYWHERE := $(EVERYWHERE)

# Without cached bytecode each pytest start rewrites every plugin: two seconds a run.
unexport PYTHONDONTWRITEBYTECODE
# pyright looks for its Python, and tests look for `tenure`, on the PATH.
run = PATH="$(CURDIR)/$(BIN):$$PATH"

.DELETE_ON_ERROR:
.PHONY: demo test suite other test-newest check bench bench-peers bench-compare bench-all soak torture docs lock clean

# Make runs in parallel only what it is told to: the steps of one environment follow one another.
.NOTPARALLEL:

demo: $(VENV)/.run
	@$(BIN)/tenure demo $(if $(CONNECTION),--connection $(CONNECTION))

# Everything that is required to pass, and nothing more is asked of a change: the suite on this Python, measured, with
# the checkers inside; then the other end of the supported range, where that is installed.
test: $(VENV)/.check
	@tools/servers.sh
	@rm -f .coverage .coverage.*
	@$(run) coverage run $(PYTEST) $(COUNTS) $(ARGS) $(AGAIN)
	@$(run) coverage combine -q && $(run) coverage report $(if $(ARGS),|| true,&& $(run) python tools/coverage_floor.py 95)
	@other="$$($(BIN)/python tools/other_python.py)" || exit 0; $(MAKE) --no-print-directory PYTHON="$$other" other

# The suite alone: not measured, without the checkers, which say the same on every Python.
suite: $(VENV)/.test
	@tools/servers.sh
	@echo "The suite once more, on $$($(BIN)/python -V)"
	@$(run) python $(PYTEST) $(COUNTS) --ignore tests/quality/test_checkers.py $(ARGS)

# What depends on the interpreter, on another one: the servers, the project's files and the commands' output do not.
other: $(VENV)/.test
	@echo "What depends on the interpreter once more, on $$($(BIN)/python -V)"
	@$(run) python $(PYTEST) tests/unit tests/worker $(ARGS) $(AGAIN)
	@$(run) python $(PYTEST) tests/contract/test_contract.py -k "memory or sqlite or valkey" $(AGAIN)

# The suite against the newest releases of all dependencies instead of the locked ones.
test-newest: $(VENV)/.made
	@$(PYTHON) -m venv --clear $(VENV)-newest
	@$(VENV)-newest/bin/python tools/newest.py
	@PATH="$(CURDIR)/$(VENV)-newest/bin:$$PATH" python $(PYTEST) --ignore tests/quality/test_checkers.py $(ARGS)

check: $(VENV)/.check
	@$(run) ruff check .
	@$(run) ruff format --check .
	@$(run) lint-imports
	@$(run) mypy
	@$(run) pyright
	@$(run) pyright --verifytypes tenure --ignoreexternal
	@$(MAKE) --no-print-directory docs

bench: $(VENV)/.test
	@tools/servers.sh
	@$(run) python -m benchmarks --contender tenure $(ARGS)

# Other libraries, each in an environment of its own from what is pinned for it; npm's only where there is npm.
PINNED := benchmarks/peers/requirements
PEERS  := $(patsubst $(PINNED)/%.txt,%,$(wildcard $(PINNED)/*.txt)) $(if $(shell command -v npm),$(patsubst $(PINNED)/%.json,%,$(wildcard $(PINNED)/*.json)))
bench-peers: $(PEERS:%=.venv-bench/%/.made)

.venv-bench/%/.made: $(PINNED)/%.txt
	@echo "Installing $* into .venv-bench/$* (once)"
	@$(PYTHON) -m venv --clear .venv-bench/$*
	@.venv-bench/$*/bin/python -m pip --disable-pip-version-check --no-input install -qq --no-user -r $<
	@touch $@

.venv-bench/%/.made: $(PINNED)/%.json
	@echo "Installing $* into .venv-bench/$* (once)"
	@mkdir -p .venv-bench/$* && cp $< .venv-bench/$*/package.json
	@cd .venv-bench/$* && npm install --silent --no-audit --no-fund --no-package-lock
	@touch $@

# All libraries beside one another: how fast they push and work, and what they lose when a worker is killed.
bench-compare: bench-peers $(VENV)/.test
	@tools/servers.sh
	@$(run) python -m benchmarks.everything --only compare $(ARGS)

# Every figure of docs/benchmarks.md anew, and the page with them.
bench-all: bench-peers $(VENV)/.test
	@tools/servers.sh
	@$(run) python -m benchmarks.everything $(ARGS)

# A worker at its full rate: MINUTES=10 unless they, or HOURS, are given.
soak: $(VENV)/.test
	@tools/servers.sh
	@$(run) python -m benchmarks.soak $(if $(HOURS),--hours $(HOURS),--minutes $(or $(MINUTES),10)) $(ARGS)

# The fault tests, SCALE times as long, and the recorded runs of a TIER (change, night, release). With a DRIVER or a SEED
# those runs alone, one after another: a seed plays its run again.
torture: export TENURE_PROOF_TIER = $(or $(TIER),$(if $(DRIVER)$(SEED),change,night))
torture: export TENURE_PROOF_DRIVER = $(DRIVER)
torture: export TENURE_PROOF_SEED = $(SEED)
torture: $(VENV)/.test
	@tools/servers.sh
	@TENURE_TORTURE_SCALE=$(SCALE) $(run) python $(if $(TIER)$(DRIVER)$(SEED),-m pytest -rA tests/torture/proof/test_runs.py,$(PYTEST)) -m torture $(ARGS)

docs: $(VENV)/.check
	@$(run) python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# One environment, four stamps: the interpreter, what the demo needs, the tests' packages, the checkers.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tenure needs Python 3.11 or newer as $(PYTHON); try: make PYTHON=python3.12"; exit 1; }
	@if [ -n "$$PIP_TARGET$$PIP_PREFIX" ]; then echo "PIP_TARGET and PIP_PREFIX would install elsewhere than in $(VENV): unset them"; exit 1; fi
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || tools/apt.sh python3-venv
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.run: $(LOCK)/run.txt pyproject.toml $(VENV)/.made
	@echo "Installing tenure into $(VENV) (once)"
	@$(INSTALL) -r $(LOCK)/run.txt
	@$(PIP) --isolated install -qq --no-index --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.test: $(LOCK)/test.txt $(LOCK)/redis62.txt $(VENV)/.run
	@echo "Installing the tests' packages into $(VENV) (once)"
	@$(INSTALL) -r $(LOCK)/test.txt
	@$(INSTALL) -r $(LOCK)/redis62.txt --target $(VENV)/redis62 --upgrade --no-deps --only-binary :all: --implementation cp --python-version 3.12 --platform manylinux2014_x86_64 || echo "No Redis 6.2 for this platform: its tests will not run"
	@touch $@

$(VENV)/.check: $(LOCK)/check.txt $(VENV)/.test
	@echo "Installing the checkers into $(VENV) (once)"
	@$(INSTALL) -r $(LOCK)/check.txt
	@touch $@

UVC := uv pip compile -q --universal --generate-hashes --python-version 3.11 --custom-compile-command "make lock" pyproject.toml
lock:
	$(UVC) --all-extras --group test --group check --group docs --group build -o $(LOCK)/check.txt
	$(UVC) --all-extras --group test --group build -c $(LOCK)/check.txt -o $(LOCK)/test.txt
	$(UVC) --extra redis --extra embedded --group build -c $(LOCK)/check.txt -o $(LOCK)/run.txt

clean:
	rm -rf .venv .venv-* .coverage .coverage.* docs/_build
