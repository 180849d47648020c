"""The recording proxy: connections, TLS, WebSocket and mitmproxy's layers."""
