"""Snapshots of the folder that an agent works in, and their restoration for another run."""
