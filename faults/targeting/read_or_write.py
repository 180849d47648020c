"""Classify a tool as reading or writing: by its MCP server's hints, else by its name.

Only MCP declares it to a proxy, by `readOnlyHint` and `destructiveHint` in the list of tools. For
names the first known word decides: `get_order` and `searchFlights` read, `issue_refund` and
`shop.orders.delete` write, and `bash` is unknown. This is a guess from a word list; a fault that
names its tool does not depend on it.
"""

import re
from typing import Literal, Protocol

type ToolSide = Literal["read", "write"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
READ_WORDS = """
    browse calculate check compare compute convert count describe diff download exists explain
    fetch find get glob grep has inspect is list load lookup ls open peek ping poll preview query
    read recall retrieve scan search show stat status summarize validate verify view wait watch
"""
WRITE_WORDS = """
    accept add adjust allocate append apply approve archive assign book buy cancel charge clear
    close commit confirm copy create credit debit decline delete deploy disable dispatch edit
    enable execute grant insert invite issue kill launch lock merge modify move notify order patch
    pay place post publish purge push put refund register reject release remove rename replace
    reserve reset restart revoke save schedule send set ship start stop store submit subscribe
    terminate transfer unlock unsubscribe update upload upsert withdraw write
"""
_READS, _WRITES = frozenset(READ_WORDS.split()), frozenset(WRITE_WORDS.split())


class HintedCall(Protocol):
    """A call, with its server's hint on the tool."""

    @property
    def tool(self) -> str: ...
    @property
    def read_only(self) -> bool | None: ...


def classify_call_side(call: HintedCall) -> ToolSide | None:
    """Return whether a call reads or writes; None if neither server nor tool name decides."""
    if call.read_only is not None:
        return "read" if call.read_only else "write"
    return classify_tool_side(call.tool)


def classify_tool_side(tool: str) -> ToolSide | None:
    """Return whether a tool of this name reads or writes; None if the name does not decide."""
    name = tool.rsplit("__", 1)[-1]
    for word in (match.lower() for match in _WORD.findall(name)):
        if word in _READS:
            return "read"
        if word in _WRITES:
            return "write"
    return None
