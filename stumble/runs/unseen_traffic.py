"""What a recording or a trial run of an agent did not see, who has it, and the way out."""

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from recorder.agent.blocked_connections import BlockedConnection
from recorder.agent.process_table import RunningProcess
from recorder.agent.tcp_table import find_listener
from traces.agent_name import name_agent_command
from traces.conversation.classify import classify_request
from traces.conversation.derived_steps import DerivedSteps
from traces.model import Request

_LOCALHOST = "localhost"


def describe_connections(attempts: Mapping[BlockedConnection, int]) -> Iterator[str]:
    """Yield a line for each address that was reached, or tried, past the proxy."""
    for attempt, count in attempts.items():
        times = f", {count} times" if count > 1 else ""
        yield f"past the proxy: {attempt}{times}{_suggest_route(attempt)}"


def _suggest_route(attempt: BlockedConnection) -> str:
    if attempt.port is None or attempt.protocol != "tcp":
        return ""
    if not ip_address(attempt.address).is_loopback:
        return "; --upstream URL serves a URL under a base URL of this machine"
    owner = find_listener(attempt.port)
    served = f", served by {owner}" if owner is not None else ""
    address = f"[{attempt.address}]" if ":" in attempt.address else attempt.address
    return (
        f"{served}; the client leaves loopback out of its proxy: give it the base URL "
        f"http://model.test (with the same path), and record with --host "
        f"model.test={address}:{attempt.port}"
    )


def describe_earlier_servers(
    requests: Iterable[Request], command: Sequence[str] = ()
) -> Iterator[str]:
    """Yield a line for each local server that was asked, but not as a model, and still runs.

    It ran before the agent, since no process that an agent starts survives it. With a `command`,
    only servers of the same program count: other ones may be the agent's tools.
    """
    ports = {
        parts.port: parts.netloc
        for request in requests
        if classify_request(request) != "model"
        and _is_loopback((parts := urlsplit(request.url)).hostname)
        and parts.port is not None
    }
    for port, authority in ports.items():
        owner = find_listener(port)
        if owner is None or owner.pid == os.getpid():
            continue
        if not command or _is_same_program(owner, command):
            yield (
                f"{authority} is served by {owner}, which ran before: what it asks a model is not "
                f"seen; stop it first (kill {owner.pid})"
            )


def _is_loopback(host: str | None) -> bool:
    if host is None or host == _LOCALHOST:
        return host is not None
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_same_program(owner: RunningProcess, command: Sequence[str]) -> bool:
    """Whether a process runs the agent's program, whose title may be one word with spaces."""
    name = name_agent_command(command)
    words = " ".join(owner.command).split()
    return any(word.rpartition("/")[2] == name for word in words)


def describe_unteed_servers(
    servers: Iterable[Sequence[str]], derived_steps: DerivedSteps | None = None
) -> Iterator[str]:
    """Yield a line for each MCP server over stdio without a tee, and what mends it.

    `told` are the steps of the recording, whose calls without an exchange are counted.
    """
    calls = sum(not use.seqs for use in derived_steps.tool_uses) if derived_steps is not None else 0
    missed = f"; {calls} tool call{'s have' if calls != 1 else ' has'} no exchange" if calls else ""
    for command in servers:
        line = shlex.join(command)
        yield (
            f"not seen: `{line}`, which looks like an MCP server over stdio{missed}; start it with "
            f"`stumble mcp -- {line}`"
        )
