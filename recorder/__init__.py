"""Record a running agent's traffic: proxy, MCP tee, the agent's environment and process."""
