"""How a run is judged: what the agent claims of its own result, and what that claim rests on."""
