"""Converters from other model APIs and agent formats to chat completions, for the practice
model.
"""
