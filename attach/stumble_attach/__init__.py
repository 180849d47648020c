"""The part of `stumble` that runs inside a user's process; it does not import `stumble`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stumble_attach.command import StumbleCommand, StumbleResult

if TYPE_CHECKING:
    from stumble_attach.intake import RecordingLostError
    from stumble_attach.recording import UnseenLibraryError, record

__all__ = ["StumbleResult", "StumbleCommand", "RecordingLostError", "UnseenLibraryError", "record"]


def __getattr__(name: str) -> Any:
    """Import on first access the names that need vcrpy, which the pytest plugin does not."""
    if name not in ("RecordingLostError", "UnseenLibraryError", "record"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from stumble_attach import recording

    return getattr(recording, name)
