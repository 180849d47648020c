"""Where programs that nobody vouches for are run: containers, and processes with limits."""
