"""The proxy: connections, HTTP/1.1, TLS, WebSocket, upstream; mitmproxy for the rest."""
