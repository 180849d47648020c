"""Agents that a run can start: one of our own, and how the known ones are started."""
