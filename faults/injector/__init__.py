"""Inject faults into responses during a replay: HTTP, WebSocket and MCP."""
