"""Meaning across exchanges: conversations, steps and tool calls."""
