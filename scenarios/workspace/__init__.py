"""The folder that an agent works in: kept as it was before a run, and made again for another."""
