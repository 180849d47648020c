"""A team's store: tapes and workspaces of several people in one bucket."""
