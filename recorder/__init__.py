"""How exchanges leave a living process: a proxy that records, the agent's environment, its end."""
