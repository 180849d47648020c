"""The tools of the practice shop and their registry."""
