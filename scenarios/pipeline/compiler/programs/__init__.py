"""Graded programs: written by a grammar from the seed of a run, none of them in the package."""
