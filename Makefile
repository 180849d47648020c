# Everything below first makes .venv match the lock, which takes 0.1 s when it does already.
python := .venv/bin/python

# Where it is set, each process of each test compiles all that it imports: three times the work.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup dev demo docs fuzz gate mutants pipeline test test-all test-clients test-clients-latest test-spark test-real check lock bench

setup:
	@python3 bootstrap.py

dev:
	@python3 bootstrap.py --dev

demo: setup
	@.venv/bin/stumble demo

# A scripted model through all stages of the compiler pipeline, in about two minutes.
pipeline: dev
	@.venv/bin/stumble pipeline doctor
	@.venv/bin/stumble pipeline demo

# Needs Python and a package registry, nothing else.
test: dev
	@$(python) -m tests.runner test

# Needs what .ci/run installs: npm, docker, a browser, compilers; as root also namespaces.
gate: dev
	@$(python) -m tests.runner gate

# Every case of every test. SHARD=2/4 runs the second of four parts.
test-all: dev
	@$(python) -m tests.runner all --shard $(or $(SHARD),1/1)

# Random search by Hypothesis for MINUTES; prints examples to paste beside the property.
fuzz: dev
	@$(python) -m tests.runner.fuzz $(or $(MINUTES),10)

mutants: dev
	@STUMBLE_TESTS=all $(python) tests/mutation/run.py

# Installs every client of the tables in tests/support/agents, each pinned, and has it recorded and replayed.
test-clients: dev
	@STUMBLE_CLIENTS=$${STUMBLE_CLIENTS:-all} STUMBLE_TESTS=all $(python) -m tests.runner install clients

# The same with the newest release of each client instead of the pinned one, and what changed.
test-clients-latest: dev
	@STUMBLE_CLIENTS=latest STUMBLE_TESTS=all $(python) -m tests.runner install clients; status=$$?; \
	$(python) -m tests.support.agents.client_rows .cache/agents/latest.jsonl; exit $$status

# Needs Java 17 and fetches pyspark (430 MB), so it is no part of test-all.
test-spark: dev
	@$(python) -m tests.runner spark

# A fresh environment with the extra `real` (130 MB to fetch) runs `stumble demo --real` twice, and
# Phoenix (620 MB installed) takes exported spans.
test-real: dev
	@$(python) -m tests.runner real

check: dev
	@$(python) -m tests.runner lint format types

# Builds docs/ into site/, in an environment of its own. A broken link fails.
docs:
	@python3 bootstrap.py --docs
	@NO_MKDOCS_2_WARNING=1 .cache/docs/bin/python -m mkdocs --quiet build --strict

lock:
	@python3 bootstrap.py --lock --dev

bench: dev
	@$(python) -m tests.bench
