# Everything runs out of .venv in this folder; no step needs root, and every path is relative, so that the folder may be anywhere.
#
#   make PYTHON=python3.13 env     another Python than `python3`
#   make PIP_FLAGS=--no-index …    further options for pip
#   make HISTORIES=2000 test-histories
#   make LONG="crash secrets" test-long
#   make FUZZ_SECONDS=60 FUZZ_TARGETS="html robots" fuzz

PYTHON ?= python3
UV ?= uv
PIP_FLAGS ?=
FUZZ_SECONDS ?= 300
FUZZ_TARGETS ?=
HISTORIES ?= 100
LONG ?=
SERVE ?=

RUN := .venv/bin/python
INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --require-hashes $(PIP_FLAGS)

# Else each of the hundreds of processes that the tests start would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help env env-dev browser demo test test-full style types-of-product test-histories test-long test-servers test-browser screenshots docs lint compiled bench fuzz dist licences lock clean python broken

help:
	@echo "make env     build .venv with what crawlspace needs to run"
	@echo "make demo    build .venv, then crawl a small intranet on this machine (SERVE=1: and serve the console over it)"
	@echo "make test    build .venv with the developers' tools; lint, types of the product, and the tests"
	@echo "make test-full"
	@echo "             the same, with the types of tests and benchmarks, each row on each store, and all drawn examples"
	@echo "make test-histories"
	@echo "             live through more random histories than make test does (HISTORIES=2000: so many over SQLite, a quarter of it over Redis, as many with a search server)"
	@echo "make test-long"
	@echo "             what takes too long for make test: kills, outages, faults of a search server, bounds of memory (LONG='crash secrets': these alone)"
	@echo "make test-servers"
	@echo "             the tests of the sinks on a real OpenSearch, Elasticsearch and Solr, of proxies on a Squid, of log-ins on nginx and by Kerberos, and of metrics in Prometheus, which they start (needs a JDK, 17 or newer, Maven, squid, nginx, prometheus, a KDC and Apache: CONTRIBUTING.md)"
	@echo "make browser add to .venv what renders pages in a browser (Chromium itself is not in it)"
	@echo "make test-browser"
	@echo "             the tests of rendering, in a real Chromium (its path in CRAWLSPACE_BROWSER, if it is not found by itself)"
	@echo "make screenshots"
	@echo "             take the pictures of docs/console.md again (needs a Chromium)"
	@echo "make docs    build the documentation as a site with search, into build/docs"
	@echo "make lint    style and types only"
	@echo "make bench   measure speed against other crawlers on this machine"
	@echo "make fuzz    feed each parser with inputs made to break it, 5 minutes each (FUZZ_SECONDS=60: one minute)"
	@echo "make dist    build the wheel and the sdist in the folder dist"
	@echo "make licences"
	@echo "             write docs/licences.md again: the licences of all that is installed with crawlspace (after make lock)"
	@echo "make lock    pin the newest versions that pyproject.toml allows (needs uv)"
	@echo "make clean   remove .venv, .venv-fuzz, caches, and what the demo, make fuzz and make dist have written"

env: .venv/.env
env-dev: .venv/.env-dev

# A stamp is younger than what it was made from: the requirements, and the environment they were installed into.
.venv/.env: requirements.txt .venv/.created
	@echo "Installing requirements.txt into .venv ..."
	@$(INSTALL) -r requirements.txt
	@touch $@

.venv/.env-dev: requirements-dev.txt requirements.txt .venv/.created
	@echo "Installing requirements-dev.txt into .venv ..."
	@$(INSTALL) -r requirements-dev.txt
	@touch $@ .venv/.env

browser: .venv/.browser

# Beside what is in .venv already: the versions of both files are the same where they have the same package.
.venv/.browser: requirements-browser.txt requirements.txt .venv/.created
	@$(MAKE) --no-print-directory env
	@echo "Installing requirements-browser.txt into .venv ..."
	@$(INSTALL) -r requirements-browser.txt
	@touch $@

# The second folder has what Sphinx has read: pages that have not changed are not read again.
docs: .venv/.docs
	@$(RUN) -m sphinx --fail-on-warning --keep-going --quiet --doctree-dir build/doctrees docs build/docs
	@echo "build/docs/index.html is ready"

.venv/.docs: requirements-docs.txt requirements.txt .venv/.created
	@$(MAKE) --no-print-directory env
	@echo "Installing requirements-docs.txt into .venv ..."
	@$(INSTALL) -r requirements-docs.txt
	@touch $@

# An environment whose Python has been removed since is built again.
.venv/.created: $(shell test -x $(RUN) || echo broken)
	@$(MAKE) --no-print-directory python
	@echo "Creating .venv ..."
	@"$(PYTHON)" -m venv --clear .venv
	@touch $@

broken:

python:
	@command -v "$(PYTHON)" >/dev/null || { \
	  echo "crawlspace needs Python 3.11 or newer, and there is no $(PYTHON): install it, or name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "crawlspace needs Python 3.11 or newer, and $(PYTHON) is $$("$(PYTHON)" -V 2>&1): name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "crawlspace needs the venv module, which $(PYTHON) lacks: install it (Debian and Ubuntu: apt install python3-venv), or name another Python: make PYTHON=python3.12 ..." >&2; exit 1; }

demo: env
	@$(RUN) -m examples.intranet.demo $(if $(SERVE),--serve)

lint: style
	$(RUN) -m mypy

style: env-dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types-of-product: env-dev
	$(RUN) -m mypy crawlspace spiders middlewares pipelines examples

# The hash seed decides in which order a set of texts is walked, and so what the random histories do: each run has the same.
test:
	@$(MAKE) --no-print-directory -j2 style types-of-product compiled
	QUICK_TESTS=1 PYTHONHASHSEED=0 $(RUN) -m pytest -n auto --dist loadfile --no-loadscope-reorder

test-full:
	@$(MAKE) --no-print-directory -j2 lint compiled
	PYTHONHASHSEED=0 $(RUN) -m pytest -n auto --dist loadfile --no-loadscope-reorder

# In a new checkout, beside mypy: else each process of the tests would compile all of them. What cannot be collected pytest reports itself.
compiled: env-dev
	@test -d tests/unit/__pycache__ || $(RUN) -m pytest --collect-only -p no:xdist >/dev/null 2>&1 || true

# Of the seeds that make test has not.
test-histories: env-dev
	@PYTHONHASHSEED=0 $(RUN) -m tests.long.histories --first 1000 --count "$(HISTORIES)"
	@PYTHONHASHSEED=0 $(RUN) -m tests.long.histories --first 2000 --count "$$(( $(HISTORIES) / 4 ))" --store redis
	@PYTHONHASHSEED=0 $(RUN) -m tests.long.histories --first 3000 --count "$$(( $(HISTORIES) / 4 ))" --sink opensearch

test-long: env-dev
	@PYTHONHASHSEED=0 $(RUN) -m tests.long.run $(LONG)

test-servers: env-dev
	@$(RUN) -m tests.real_servers.run

screenshots: env browser
	@$(RUN) -m examples.intranet.screenshots

test-browser: env-dev browser
	@$(RUN) -m tests.browser.run

bench: env
	@$(RUN) -m benchmarks.run

fuzz: .venv-fuzz/.env
	@.venv-fuzz/bin/python -m tests.fuzz run --seconds "$(FUZZ_SECONDS)" $(FUZZ_TARGETS)

# An environment of its own: the fuzzer has wheels for few machines, and nothing else needs it.
.venv-fuzz/.env: requirements-fuzz.txt
	@$(MAKE) --no-print-directory python
	@"$(PYTHON)" -c 'import platform, sys; sys.exit(not ((3, 11) <= sys.version_info < (3, 15) and sys.platform == "linux" and platform.machine() == "x86_64"))' || { \
	  echo "make fuzz needs Python 3.11 to 3.14 on Linux on x86_64, for which atheris has wheels, and $(PYTHON) is $$("$(PYTHON)" -V 2>&1) on $$(uname -sm): name another one: make PYTHON=python3.11 fuzz" >&2; exit 1; }
	@echo "Installing requirements-fuzz.txt into .venv-fuzz ..."
	@"$(PYTHON)" -m venv --clear .venv-fuzz
	@.venv-fuzz/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: $(PIP_FLAGS) -r requirements-fuzz.txt || { \
	  echo "make fuzz could not install requirements-fuzz.txt into .venv-fuzz; the lines above say why" >&2; exit 1; }
	@touch $@

# Of one commit always the same bytes: the build takes neither times nor modes from the files.
dist: env-dev
	@rm -rf dist
	@$(RUN) -m hatchling build -d dist

licences: env-dev browser
	@$(RUN) -m tests.licences

# The files hold versions and hashes and no address, so that any package index serves. Each of the others is the first and its extra.
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" pyproject.toml

lock:
	@command -v "$(UV)" >/dev/null || { echo "make lock needs uv: pip install uv, or name it: make UV=path/to/uv lock" >&2; exit 1; }
	$(COMPILE) --output-file requirements.txt
	$(COMPILE) --extra dev --constraint requirements.txt --output-file requirements-dev.txt
	$(COMPILE) --extra docs --constraint requirements-dev.txt --output-file requirements-docs.txt
	$(COMPILE) --extra browser --constraint requirements.txt --output-file requirements-browser.txt
	$(COMPILE) --extra fuzz --constraint requirements.txt --output-file requirements-fuzz.txt

clean:
	rm -rf .venv .venv-fuzz .mypy_cache .pytest_cache .ruff_cache build dist ./*.egg-info examples/intranet/data
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
