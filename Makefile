# Everything below first makes .venv match the lock, which takes 0.1 s when it does already.
python := .venv/bin/python

# Where it is set, each process of each test compiles all that it imports: three times the work.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup dev demo test check lock bench

setup:
	@python3 bootstrap.py

dev:
	@python3 bootstrap.py --dev

demo: setup
	@.venv/bin/stumble demo

test: dev
	@$(python) tests/groups.py

check: dev
	@$(python) tests/groups.py lint format types

lock:
	@python3 bootstrap.py --lock --dev

bench: dev
	@$(python) -m tests.bench
