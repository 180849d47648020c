"""Reasons why an operator does not support a place, as shown to the user."""

from collections.abc import Mapping

from traces.model import Place

_NO_SESSION = "only an MCP server over HTTP has sessions"
_WHY: Mapping[Place, Mapping[str, str]] = {
    "http": {
        "protocol_error": "plain HTTP has no protocol around the result",
        "session_lost": _NO_SESSION,
    },
    "model-boundary": {
        "session_lost": _NO_SESSION,
        "delay": "a result that is in a model request is not late any more",
        "silent_noop": "a local tool has done its work when its result is seen",
    },
    "model": {
        "session_lost": _NO_SESSION,
        "protocol_error": "a model's answer has no protocol around it",
        "X": "a model changes nothing in the world",
        "S": "a model's answer is no record with rows, fields and marks",
        "V": "a model's answer is no fact that a tool knows; use the tool's result",
    },
}
"""By place, then by the operator's name or family."""


def explain_unsupported_place(name: str, family: str, place: Place) -> str | None:
    """Return the reason; None for third-party operators."""
    reasons = _WHY.get(place, {})
    return reasons.get(name) or reasons.get(family)
