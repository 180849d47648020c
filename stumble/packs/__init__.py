"""Packs: recordings with all that a replay needs from their folder, each in one file."""
