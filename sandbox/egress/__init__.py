"""Restrict a sandboxed program's network access: an allowlist, and the proxy that enforces it."""
