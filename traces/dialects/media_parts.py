"""Shared by the dialects: which parts of a message are no text.

Wire facts: OpenAI, Anthropic, Cohere and Mistral name a part's kind in `type` (`image_url`,
`input_audio`, `document`, `input_file`), Gemini gives a MIME type (`inlineData`, `fileData`),
Bedrock's blocks have a member of the kind's name. Results hold parts of their own.
"""

from collections.abc import Iterable
from itertools import pairwise

from traces.dialects import json_access

_KINDS = {
    "image": "image",
    "audio": "audio",
    "video": "video",
    "document": "document",
    "file": "document",
}
_MIME_PARTS = ("inlineData", "inline_data", "fileData", "file_data")
_NESTED_PARTS = {"toolResult": "content", "functionResponse": "parts"}


def list_media(parts: object) -> tuple[str, ...]:
    """Return the kind of each part that is not text, those within results included."""
    if not isinstance(parts, list):
        return ()
    kinds = (
        _find_media_kind(inner)
        for part in json_access.to_json_objects(parts)
        for inner in _get_inner_parts(part)
    )
    return tuple(kind for kind in kinds if kind is not None)


def join_streamed_media(pieces: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the media of a streamed answer, whose audio comes in pieces one after the other."""
    kinds = [None, *(kind for piece in pieces for kind in piece)]
    return tuple(kind for before, kind in pairwise(kinds) if kind and not before == kind == "audio")


def _get_inner_parts(part: dict[str, object]) -> list[dict[str, object]]:
    """Return the parts of a result; for any other part itself."""
    if part.get("type") == "tool_result":
        return json_access.to_json_objects(part.get("content"))
    for name, key in _NESTED_PARTS.items():
        if name in part:
            return json_access.to_json_objects(json_access.to_json_object(part[name]).get(key))
    return [part]


def _find_media_kind(part: dict[str, object]) -> str | None:
    named = json_access.to_optional_string(part.get("type"))
    if named is not None:
        return next((_KINDS[word] for word in named.split("_") if word in _KINDS), None)
    for name, inner in part.items():
        value = json_access.to_json_object(inner)
        if name in _MIME_PARTS:
            mime = str(value.get("mimeType") or value.get("mime_type"))
            return _KINDS.get(mime.partition("/")[0], "document")
        if name in _KINDS and value:
            return _KINDS[name]
    return None
