"""Where an agent runs: workspace copies, worlds and base URLs."""
