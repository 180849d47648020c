"""The server: its routes and guard, and the processes that it starts."""
