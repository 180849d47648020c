"""Bodies on the wire: content encodings, JSON offsets, deltas, SSE and WebSocket frames."""
