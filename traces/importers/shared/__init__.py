"""Shared parts of the importers: HTTP traffic, conversations, JSON streams."""
