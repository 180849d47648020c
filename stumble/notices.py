"""Lines for the user on standard error, from any part of a command."""

import sys


def print_notice(line: str) -> None:
    """Print a line to standard error, if it is open."""
    if sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)


def print_warning(why: str) -> None:
    """Print a warning to standard error."""
    print_notice(f"warning: {why}")
