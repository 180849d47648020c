"""Comparing a candidate with a baseline by a margin, with early stopping."""
