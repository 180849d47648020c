"""The agent's process: its environment, isolation, supervision and adapters."""
