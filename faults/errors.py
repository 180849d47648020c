"""The exception of an operator that finds nothing to change."""


class NoInjectionSite(Exception):
    """The fault finds nothing to change here: a fact about the site, not an error."""
