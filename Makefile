# Two commands do everything from a fresh checkout (they need Python 3.11 and make):
#   make reproduce   set up, run the small-scale study, write a page: out/reproduce/report.html
#   make test        set up, run the fast test suite
# Other targets: make reproduce-locked (with the versions of requirements.lock), make lock (renew
# them), make docs (into out/docs), make lint, make test-slow, make test-package (every extra),
# make test-adapters (other libraries), make lock-adapters (renew their versions), make test-cuda (on a
# GPU), make faults (minutes) and make faults-full (hours), make bench, make format, make clean.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STUDY := $(VENV)/.study-installed
DEV := $(VENV)/.dev-installed
DOCS := $(VENV)/.docs-installed
LOCKED := .venv-locked
ADAPTERS := .venv-adapters
INSTALL = $(@D)/bin/python -m pip install --quiet --disable-pip-version-check
ADAPTER_TESTS := torch==2.13.0 pytest pytest-timeout pytest-xdist
SHARED := '.[sb3,torchrl,tianshou,pfrl,jax,gymnasium]' $(ADAPTER_TESTS)
RLLIB := '.[rllib]' $(ADAPTER_TESTS)

# numba's cache does not notice changes in functions of other files, so each state of the sources
# has its own cache.
SOURCES := $(shell find src -name '*.py' | LC_ALL=C sort)
export NUMBA_CACHE_DIR := $(CURDIR)/$(VENV)/numba/$(shell cat $(SOURCES) | cksum | cut -d' ' -f1)

.PHONY: help reproduce reproduce-locked lock docs test test-slow test-core test-package install-adapters test-adapters lock-adapters test-cuda faults faults-full lint format bench clean
help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; pass PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(STUDY): $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[study]'
	@touch $@

$(DEV): $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(STUDY)

$(DOCS): $(DEV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

reproduce: $(STUDY)
	$(BIN)/ezgreedy reproduce --resume --out out/reproduce
	$(BIN)/ezgreedy report out/reproduce

# An environment with exactly the versions of the lock file; pip refuses a version that it cannot get.
$(LOCKED)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv --clear $(LOCKED)
	$(LOCKED)/bin/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[study]'
	@touch $@

reproduce-locked: $(LOCKED)/.installed
	$(LOCKED)/bin/ezgreedy reproduce --resume --out out/reproduce-locked
	$(LOCKED)/bin/ezgreedy report out/reproduce-locked

# The newest versions that pyproject.toml allows, as pip finds them. Builds of torch share a version.
lock:
	$(PYTHON) -m venv --clear .venv-lock
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check -e '.[study,deep,minatar,ray]'
	{ sed -n '/^#/p;/^$$/q' requirements.lock; echo; \
	  .venv-lock/bin/python -m pip freeze --exclude-editable | grep '==' | sed 's/+[a-z0-9.]*$$//'; } > requirements.lock.new
	mv requirements.lock.new requirements.lock
	rm -rf .venv-lock

test: $(DEV)
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: $(DEV)
	$(BIN)/python -m pytest -n 2 -m slow

# Nothing is asked of the network, and a warning is an error.
docs: $(DOCS)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs out/docs
	@echo "wrote out/docs/index.html"

# The core and the small-scale study under another Python: make test-core PYTHON=python3.13. Files that
# need torch, ale-py or the oracles are left out.
CORE_TESTS := tests/exploration tests/envs tests/analysis tests/commands/test_parsing.py \
	tests/test_cli.py tests/test_named_settings.py tests/test_packages.py \
	tests/test_requirements.py tests/test_units.py
NOT_CORE := tests/exploration/test_backends.py tests/exploration/test_first_contact.py \
	tests/envs/test_cartpole.py tests/envs/test_deep_sea.py \
	tests/analysis/test_game_walks.py tests/analysis/test_distinct_actions.py
test-core:
	$(PYTHON) -m venv --clear .venv-core
	.venv-core/bin/python -m pip install --quiet --disable-pip-version-check -e '.[study]' \
		pytest pytest-timeout pytest-xdist hypothesis html5lib colorednoise
	.venv-core/bin/python -m pytest -n 2 -m "not slow" $(CORE_TESTS) $(NOT_CORE:%=--ignore %)

# The wheel and the sdist in new environments, one for each extra. Installs gigabytes.
test-package: $(DEV)
	EZGREEDY_TEST_EXTRAS=all $(BIN)/python -m pytest -m slow tests/repository/test_package.py

# Each adapter is tested with its real library, in environments of their own with the versions of their
# lock files: CONTRIBUTING says why. An installation that fails leaves nothing that counts as installed.
$(ADAPTERS)/%/.created:
	$(PYTHON) -m venv $(@D)
	@touch $@

$(ADAPTERS)/shared/.installed: $(ADAPTERS)/shared/.created pyproject.toml tests/adapters/shared.lock
	$(INSTALL) -c tests/adapters/shared.lock -e $(SHARED)
	@touch $@

$(ADAPTERS)/rllib/.installed: $(ADAPTERS)/rllib/.created pyproject.toml tests/adapters/rllib.lock
	$(INSTALL) -c tests/adapters/rllib.lock -e $(RLLIB)
	@touch $@

install-adapters: $(ADAPTERS)/shared/.installed $(ADAPTERS)/rllib/.installed

test-adapters: install-adapters
	EZGREEDY_REQUIRE_ADAPTERS=1 $(ADAPTERS)/shared/bin/python -m pytest -n 2 tests/adapters --ignore tests/adapters/test_rllib.py
	EZGREEDY_REQUIRE_ADAPTERS=1 $(ADAPTERS)/rllib/bin/python -m pytest tests/adapters/test_rllib.py tests/adapters/test_gymnasium.py

# The newest versions that the extras allow, into new environments.
lock-adapters:
	rm -rf $(ADAPTERS)
	$(PYTHON) -m venv $(ADAPTERS)/shared
	$(PYTHON) -m venv $(ADAPTERS)/rllib
	$(ADAPTERS)/shared/bin/python -m pip install --quiet --disable-pip-version-check -e $(SHARED)
	$(ADAPTERS)/rllib/bin/python -m pip install --quiet --disable-pip-version-check -e $(RLLIB)
	for name in shared rllib; do \
	  { sed -n '/^#/p;/^$$/q' tests/adapters/$$name.lock; echo; \
	    $(ADAPTERS)/$$name/bin/python -m pip freeze --exclude-editable | grep '==' | sed 's/+[a-z0-9.]*$$//'; \
	  } > $(ADAPTERS)/$$name.lock && mv $(ADAPTERS)/$$name.lock tests/adapters/$$name.lock || exit 1; \
	done

test-cuda: $(DEV)
	$(BIN)/python -m pytest -m cuda

# Kills, damage, full disks and other faults, injected into the real commands. Both write a table to
# out/faults, and continue where an interrupted one ended.
faults: $(DEV)
	$(BIN)/python faults/run.py

faults-full: $(DEV)
	$(BIN)/python faults/run.py --full

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(DEV)
	$(BIN)/python benchmarks/exploration.py
	$(BIN)/python benchmarks/small_scale.py
	$(BIN)/python benchmarks/linear.py
	$(BIN)/python benchmarks/cts.py
	$(BIN)/python benchmarks/torso.py
	$(BIN)/python benchmarks/rainbow.py
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/r2d2.py
	$(BIN)/python benchmarks/fleet.py

clean:
	rm -rf $(VENV) $(LOCKED) .venv-core $(ADAPTERS) out .pytest_cache .mypy_cache .ruff_cache .hypothesis
