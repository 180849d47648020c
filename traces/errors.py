"""The error that ends a run when its tape cannot be written; this module imports nothing."""


class TapeWriteError(Exception):
    """The tape can no longer be written; the run stops rather than record falsely."""
