"""Recording and answering MCP servers on standard input and output."""
