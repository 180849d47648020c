"""Whether a tool reads or writes: as its MCP server says, else as far as its name does.

Only MCP tells a proxy, by `readOnlyHint` and `destructiveHint` in its list of tools. Of a name the
first word that is known decides: `get_order` and `searchFlights` read, `issue_refund` and
`shop.orders.delete` write, and of `bash` nothing is known. That is a guess from a list, which a
fault that names its tool does not need.
"""

import re
from typing import Literal, Protocol

type Side = Literal["read", "write"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
READS = """
    browse calculate check compare compute convert count describe diff download exists explain
    fetch find get glob grep has inspect is list load lookup ls open peek ping poll preview query
    read recall retrieve scan search show stat status summarize validate verify view wait watch
"""
WRITES = """
    accept add adjust allocate append apply approve archive assign book buy cancel charge clear
    close commit confirm copy create credit debit decline delete deploy disable dispatch edit
    enable execute grant insert invite issue kill launch lock merge modify move notify order patch
    pay place post publish purge push put refund register reject release remove rename replace
    reserve reset restart revoke save schedule send set ship start stop store submit subscribe
    terminate transfer unlock unsubscribe update upload upsert withdraw write
"""
_READS, _WRITES = frozenset(READS.split()), frozenset(WRITES.split())


class Told(Protocol):
    """A call, and what its server says of the tool."""

    @property
    def tool(self) -> str: ...
    @property
    def read_only(self) -> bool | None: ...


def acts(call: Told) -> Side | None:
    """What a call does; None where neither its server nor its tool's name says."""
    if call.read_only is not None:
        return "read" if call.read_only else "write"
    return side(call.tool)


def side(tool: str) -> Side | None:
    """What a tool of this name does; None where its name does not say."""
    name = tool.rsplit("__", 1)[-1]
    for word in (found.lower() for found in _WORD.findall(name)):
        if word in _READS:
            return "read"
        if word in _WRITES:
            return "write"
    return None
