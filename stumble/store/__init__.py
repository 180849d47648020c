"""Selecting, indexing, querying and scanning a store of recordings."""
