"""One small module per command. Nothing heavy is imported before a command really runs."""
