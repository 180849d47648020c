"""Taint: trace an injected value from its source to the calls and answers that use it."""
