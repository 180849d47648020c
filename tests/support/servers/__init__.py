"""Servers and relays that tests start: real sockets, TLS, containers."""
