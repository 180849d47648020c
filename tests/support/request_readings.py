"""What a dialect reads in one request body, and edits of all results of a call."""

from traces.dialects.types import ChatMessage, DialectLens, ToolResult
from traces.model import BodyEdit


def read_messages(lens: DialectLens, body: bytes) -> tuple[ChatMessage, ...]:
    """Return the conversation in a request."""
    return tuple(lens.make_dialect_reader()(body).messages)


def read_tool_results(lens: DialectLens, body: bytes) -> tuple[ToolResult, ...]:
    """Return the tool results in a request, in order."""
    return tuple(lens.make_dialect_reader()(body).results)


def replace_call_results(
    lens: DialectLens, body: bytes, call_id: str, text: str
) -> tuple[BodyEdit, ...]:
    """Return the edits that replace each result of a call by `text`."""
    results = (each for each in read_tool_results(lens, body) if each.call_id == call_id)
    edits = (edit for each in results for edit in lens.replace_result(body, each, text))
    return tuple(dict.fromkeys(edits))
