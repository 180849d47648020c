"""MCP sessions outside a recorded run: recording one server, and replaying one."""
