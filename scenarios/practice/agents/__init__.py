"""Practice agents: programs that solve the practice tasks."""
