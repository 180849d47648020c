"""Differences of later runs and of live services from a recording."""
