"""Agents that a run can start: the built-in one, and command-line presets for known ones."""
