"""Runs: recording, replaying and forking an agent, and what they report."""
