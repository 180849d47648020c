"""Limits on rates, and whether the evidence meets them."""
