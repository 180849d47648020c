"""The practice tasks, one module a family."""
