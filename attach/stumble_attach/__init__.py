"""What of `stumble` runs inside a process of the user's; it imports none of `stumble` itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stumble_attach.command import Answer, Stumble

if TYPE_CHECKING:
    from stumble_attach.recording import Unseen, record

__all__ = ["Answer", "Stumble", "Unseen", "record"]


def __getattr__(name: str) -> Any:
    """What needs vcrpy is imported when it is asked for: the pytest plugin does not."""
    if name not in ("Unseen", "record"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stumble_attach import recording

    return getattr(recording, name)
