"""The command line: one module per command. Heavy imports happen when a command runs."""
