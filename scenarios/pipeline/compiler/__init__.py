"""The compiler pipeline: six consecutive stages, each graded on the output of the previous one."""
