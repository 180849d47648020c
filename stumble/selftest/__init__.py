"""Self-test: checks the guarantees of replays on this machine."""
