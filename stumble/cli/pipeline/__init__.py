"""Commands of the compiler pipeline."""
