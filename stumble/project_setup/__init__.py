"""A project looked at from outside: language, entry point, provider, tests; and its first files."""
