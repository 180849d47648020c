"""Checks that an agent's traffic would be recorded."""
