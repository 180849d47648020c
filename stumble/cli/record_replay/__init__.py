"""Commands that record and replay."""
