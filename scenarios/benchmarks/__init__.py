"""Tasks that benchmarks bring: what they ask for, their world, and their verifier."""
