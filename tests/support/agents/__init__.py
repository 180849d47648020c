"""Agents and clients that tests record, as programs and in-process."""
