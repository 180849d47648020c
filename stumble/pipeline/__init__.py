"""The compiler pipeline: an agent driven through stages, graded outside its workspace."""
