"""The text form of a fault: syntax, parsing, and checks of its parameters."""
