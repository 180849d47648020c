"""What an operator says where it has nothing to bend."""


class NoSite(Exception):
    """The fault has nothing to bend here; a fact about the site, not an error."""
