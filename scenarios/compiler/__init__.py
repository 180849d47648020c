"""The compiler pipeline: six stages in a row, each graded on what the one before it left."""
