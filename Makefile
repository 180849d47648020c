# Everything below first makes .venv match the lock, which takes 0.1 s when it does already.
python := .venv/bin/python

# Where it is set, each process of each test compiles all that it imports: three times the work.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup dev demo test test-ci test-all test-clients check lock bench

setup:
	@python3 bootstrap.py

dev:
	@python3 bootstrap.py --dev

demo: setup
	@.venv/bin/stumble demo

# Needs Python and a package registry, nothing else.
test: dev
	@$(python) tests/groups.py quick

# Needs what .ci/run installs: npm, docker, a browser, compilers; as root also namespaces.
test-all: dev
	@$(python) tests/groups.py

# All but the clients that others wrote and the planted mistakes: both have to be seen green as a
# whole again since verdicts and intervals changed, and then belong to CI.
test-ci: dev
	@$(python) tests/groups.py lint format types fast e2e docker selftest thorough statistical alone

# Installs every client of tests/support/clients.py, each pinned, and has it recorded and replayed.
test-clients: dev
	@$(python) tests/groups.py install clients

check: dev
	@$(python) tests/groups.py lint format types

lock:
	@python3 bootstrap.py --lock --dev

bench: dev
	@$(python) -m tests.bench
