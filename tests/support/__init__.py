"""Helpers that tests share: servers, clients, worlds."""
