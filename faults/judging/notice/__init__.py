"""Signals that an agent noticed a fault, compared with its clean twins."""
