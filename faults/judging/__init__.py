"""Judging: consumption, notice, taint, claim and end state of a run with an injection."""
