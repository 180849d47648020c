"""The server that answers from a recording: HTTP/1.1, TLS, streams and WebSocket."""
