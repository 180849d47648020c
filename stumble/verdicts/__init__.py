"""Explanation of verdicts, and exclusion from rates."""
