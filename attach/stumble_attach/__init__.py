"""What of `stumble` runs inside a process of the user's; it imports none of `stumble` itself."""

from stumble_attach.command import Answer, Stumble

__all__ = ["Answer", "Stumble"]
