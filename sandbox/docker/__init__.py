"""Sandboxes in docker containers."""
