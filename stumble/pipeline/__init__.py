"""The compiler pipeline: an agent driven through its stages, graded outside of its workspace."""
