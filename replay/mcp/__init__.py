"""Answer MCP requests that a recording does not contain, and serve MCP on stdio."""
