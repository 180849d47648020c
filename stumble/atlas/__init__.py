"""The recovery atlas: rows derived from published agent runs, and the numbers they give."""
