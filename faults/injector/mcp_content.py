"""The copies of a result in an MCP message: text in `content`, JSON in `structuredContent`."""

import json

from msgspec import Struct

from faults.injector.plausibility import is_equivalent_text
from faults.response_body import NoInjectionSite
from traces.dialects import mcp
from traces.model import BodyEdit


class ResultCopies(Struct, frozen=True, kw_only=True):
    """The text shown to the operator, and the copies of the result that contain it."""

    shown: str
    content: bool
    structured: bool
    member: str | None = None
    """The single member of the structured copy that contains it; None if it is the copy."""
    quoted: bool = False
    """Whether the structured copy contains it as a string."""
    lack: str | None = None
    """Why the result cannot be replaced; a sham does not replace it."""

    def to_structured(self, said: str) -> str | None:
        """Return the structured copy of a text; None if the text cannot be one."""
        value = json.dumps(said) if self.quoted else said
        if not is_json_value(value):
            return None
        return value if self.member is None else f"{{{json.dumps(self.member)}: {value}}}"

    def edits(self, body: bytes, said: str, *, declared: bool) -> tuple[BodyEdit, ...]:
        """Return the edits that put another text in its place."""
        if self.lack is not None:
            raise NoInjectionSite(self.lack)
        text = said if self.content else None
        if not self.structured:
            return mcp.replace_mcp_result(body, text=text)
        if (inner := self.to_structured(said)) is not None:
            return mcp.replace_mcp_result(body, text=text, structured=inner)
        if not self.content:
            raise NoInjectionSite("structuredContent can hold nothing that is no JSON")
        without = () if declared else mcp.remove_structured_content(body)
        return tuple(
            sorted((*mcp.replace_mcp_result(body, text=text), *without), key=lambda e: e.start)
        )


def find_result_copies(reply: mcp.McpReply, copy: str) -> ResultCopies:
    """Find the copies of a result that a fault changes; `copy` names one, or `both`."""
    structured = reply.structured
    if copy == "structuredContent" or (copy == "both" and not reply.text):
        lack = f"the result has no {'text' if copy == 'both' else copy}"
        if structured is None:
            return ResultCopies(shown=reply.text, content=True, structured=False, lack=lack)
        return ResultCopies(shown=structured, content=False, structured=True)
    if copy == "content" or structured is None or is_equivalent_text(reply.text, structured):
        both = copy == "both" and structured is not None
        return ResultCopies(shown=reply.text, content=True, structured=both)
    value = json.loads(structured)
    if isinstance(value, dict) and len(value) == 1:  # servers wrap values that are not objects so
        ((member, inner),) = value.items()
        if inner == reply.text or is_equivalent_text(json.dumps(inner), reply.text):
            return ResultCopies(
                shown=reply.text,
                content=True,
                structured=True,
                member=member,
                quoted=isinstance(inner, str) and inner == reply.text,
            )
    return ResultCopies(
        shown=reply.text,
        content=True,
        structured=False,
        lack="content and structuredContent say different things; name the one to bend, as in "
        "digit:copy=content",
    )


def is_json_value(text: str) -> bool:
    """Return whether the text is any JSON value."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
