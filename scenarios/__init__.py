"""Scenarios, their worlds and verifiers, the built-in agent, and the practice world."""
