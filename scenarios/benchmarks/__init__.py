"""Readers for benchmark tasks (Harbor, tau2-bench): instruction, world and verifier."""
