"""Data of the user: paths, known secrets, ports."""
