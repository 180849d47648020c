"""Runs groups of checks in stages, tries a lone failure once more, and counts."""
