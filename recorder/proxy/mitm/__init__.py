"""mitmproxy, for connections that the own server does not speak: HTTP/2, odd TLS, tunnels."""
