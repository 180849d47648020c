"""The copies of a result in a message of MCP: text in `content`, JSON in `structuredContent`."""

import json
from dataclasses import dataclass

from faults.body import NoSite
from faults.validity import same
from traces.dialects import mcp
from traces.model import Edit


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """What is shown to the operator, and which copies of the result say it."""

    shown: str
    content: bool
    structured: bool
    member: str | None = None
    """The one member of the structured copy in which it stands; None where it is the whole."""
    quoted: bool = False
    """Whether it stands there as a text."""
    lack: str | None = None
    """Why nothing can be put in its place; a sham does not ask for it."""

    def inner(self, said: str) -> str | None:
        """The structured copy of a text; None where it can have none."""
        value = json.dumps(said) if self.quoted else said
        if not is_json(value):
            return None
        return value if self.member is None else f"{{{json.dumps(self.member)}: {value}}}"

    def edits(self, body: bytes, said: str, *, declared: bool) -> tuple[Edit, ...]:
        """The edits that put another text in its place."""
        if self.lack is not None:
            raise NoSite(self.lack)
        text = said if self.content else None
        if not self.structured:
            return mcp.replace(body, text=text)
        if (inner := self.inner(said)) is not None:
            return mcp.replace(body, text=text, structured=inner)
        if not self.content:
            raise NoSite("structuredContent can hold nothing that is no JSON")
        without = () if declared else mcp.unstructured(body)
        return tuple(sorted((*mcp.replace(body, text=text), *without), key=lambda e: e.start))


def copies_of(reply: mcp.Reply, copy: str) -> Copies:
    """Which copies of a result a fault is to bend; `copy` names one, or `both`."""
    structured = reply.structured
    if copy == "structuredContent" or (copy == "both" and not reply.text):
        lack = f"the result has no {'text' if copy == 'both' else copy}"
        if structured is None:
            return Copies(shown=reply.text, content=True, structured=False, lack=lack)
        return Copies(shown=structured, content=False, structured=True)
    if copy == "content" or structured is None or same(reply.text, structured):
        both = copy == "both" and structured is not None
        return Copies(shown=reply.text, content=True, structured=both)
    value = json.loads(structured)
    if isinstance(value, dict) and len(value) == 1:  # as servers do with what is no object
        ((member, inner),) = value.items()
        if inner == reply.text or same(json.dumps(inner), reply.text):
            return Copies(
                shown=reply.text,
                content=True,
                structured=True,
                member=member,
                quoted=isinstance(inner, str) and inner == reply.text,
            )
    return Copies(
        shown=reply.text,
        content=True,
        structured=False,
        lack="content and structuredContent say different things; name the one to bend, as in "
        "digit:copy=content",
    )


def is_json(text: str) -> bool:
    """True for the text of any JSON value."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
