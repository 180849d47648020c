"""The one error of a tape that ends a run, where nothing else need be imported to catch it."""


class Unrecordable(Exception):
    """Better to stop than to record a lie: the tape can no longer be written."""
