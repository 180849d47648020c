"""What a recorded agent reached: models, servers, local tools, and writes outside of a copy."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from msgspec import Struct

from faults.judging.judge import RunEvidence
from faults.judging.sent_writes import is_outside_write, name_request

MAX_NAMES = 4
"""Most names in a line."""


class AgentTouch(Struct, frozen=True, kw_only=True):
    """The places that runs of an agent reached, by name."""

    models: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    """Hosts that only got requests without an effect."""
    written: tuple[str, ...] = ()
    """Requests that may have changed something outside of the copy, as `POST host/path`."""
    servers: tuple[str, ...] = ()
    """MCP servers that the agent starts: they run in the copy."""
    local: tuple[str, ...] = ()
    """Tools without a request of their own: they run in the copy."""

    @property
    def written_first(self) -> str:
        """The first of the requests that may write, and how many more there are."""
        return _join_first(self.written)

    def describe(self) -> str:
        """Format as one line."""
        parts = (
            ("model", self.models),
            ("reads", self.read),
            ("may write", self.written),
            ("own servers", self.servers),
            ("tools in the copy", self.local),
        )
        named = [f"{what} {_join_first(names)}" for what, names in parts if names]
        return "it reaches: " + ("; ".join(named) or "nothing that is recorded")


def find_touch(runs: Iterable[RunEvidence]) -> AgentTouch:
    """Return what these runs reached."""
    found: dict[str, dict[str, None]] = {name: {} for name in _FIELDS}
    for run in runs:
        only_reads = {seq for use in run.story.tool_uses if use.read_only for seq in use.seqs}
        for exchange in run.tape.exchanges:
            kind, host = (
                run.story.contexts[exchange.seq].kind,
                urlsplit(exchange.request.url).netloc,
            )
            if kind == "model":
                found["models"][host] = None
            elif kind == "tool" and exchange.transport != "stdio":
                if is_outside_write(exchange, read_only=exchange.seq in only_reads):
                    found["written"][name_request(exchange.request)] = None
                else:
                    found["read"][host] = None
        for use in run.story.tool_uses:
            if use.stdio:
                found["servers"][use.server or "over stdio"] = None
            elif use.place == "local":
                found["local"][use.tool] = None
    return AgentTouch(**{name: tuple(names) for name, names in found.items()})


_FIELDS = ("models", "read", "written", "servers", "local")


def _join_first(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more
