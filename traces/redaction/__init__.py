"""Removing secrets from exchanges before they are written."""
