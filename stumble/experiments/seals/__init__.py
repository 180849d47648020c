"""Sealed plans: contents, digest and checks of a seal."""
