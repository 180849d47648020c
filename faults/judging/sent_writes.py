"""Writes that a run sent and that were, or would have been, carried out.

A fault that answers in place of a tool keeps the write from it; one that takes the answer of a
write away does not. A request that a replay refuses as it is on no tape was sent all the same.
"""

from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

from faults.judging.client_retries import JudgedRun, reaches_tool
from faults.judging.command_names import list_commands
from faults.judging.value_tokens import extract_tokens
from faults.targeting.read_or_write import classify_call_side
from traces.conversation.classify import classify_request
from traces.conversation.derived_steps import ToolUse
from traces.dialects import mcp
from traces.model import Exchange, Request, find_header

SAFE_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
"""Methods of requests that change nothing (RFC 9110, 9.2.1)."""
IDEMPOTENCY_KEY = "idempotency-key"
"""The header by which a server knows a request that is sent again."""


def is_write_request(request: Request, *, read_only: bool | None = None) -> bool:
    """Return whether a request to a tool may change something: by its method, or as an MCP call.

    `read_only` is what the tool's MCP server declares.
    """
    if read_only or classify_request(request) != "tool":
        return False
    if (message := mcp.read_client_message(request)) is not None:
        return message.role == "call"
    return request.method not in SAFE_METHODS


def is_outside_write(exchange: Exchange, *, read_only: bool | None = None) -> bool:
    """Return whether an exchange may change something that no copy of a folder holds."""
    return exchange.transport != "stdio" and is_write_request(exchange.request, read_only=read_only)


def count_sent_writes(run: JudgedRun) -> Counter[str]:
    """Count the writes of a run by tool, or by method and address if no call made the request.

    A write that its server knows again counts once: by an equal Idempotency-Key, or by an equal
    answer with an id that the request did not have.
    """
    joined = {seq for use in run.story.tool_uses for seq in use.seqs}
    by_seq = {exchange.seq: exchange for exchange in run.tape.exchanges}
    operators = {each.seq: each.op for each in run.tape.injections if not each.sham}
    counts = Counter[str]()
    for use in run.story.tool_uses:
        if not _is_write(use, by_seq):
            continue
        sent = [by_seq[seq] for seq in use.seqs if is_write_request(by_seq[seq].request)]
        made = [each for each in sent if _is_sent(each, operators.get(each.seq))]
        counts.update(_name_write(use, each.request) for each in made)
        if not sent and use.result is not None and not use.is_error:
            counts[use.tool] += 1
    for each in run.tape.exchanges:
        if each.seq not in joined and is_outside_write(each) and _is_sent(each, None):
            counts[name_request(each.request)] += 1
    for name, times in Counter(_list_known_again(run, by_seq)).items():
        counts[name] -= times
    return counts


def find_repeated_writes(run: JudgedRun, twins: tuple[JudgedRun, ...]) -> tuple[str, ...]:
    """Return the writes that a run sent more often than each of its clean twins; () without any."""
    if not twins:
        return ()
    clean = [count_sent_writes(twin) for twin in twins]
    own = count_sent_writes(run)
    return tuple(name for name in own if 0 < max(each[name] for each in clean) < own[name])


def find_missing_writes(run: JudgedRun, twins: tuple[JudgedRun, ...]) -> tuple[str, ...]:
    """Return the writes that a run sent less often than each of its clean twins."""
    clean = [count_sent_writes(twin) for twin in twins]
    own = count_sent_writes(run)
    return tuple(name for name in clean[0] if own[name] < min(each[name] for each in clean))


def name_request(request: Request) -> str:
    """Format a request as `POST host/path`."""
    url = urlsplit(request.url)
    return f"{request.method} {url.netloc}{url.path}"


def _is_write(use: ToolUse, by_seq: dict[int, Exchange]) -> bool:
    side = classify_call_side(use)
    if side is not None:
        return side == "write"
    methods = {by_seq[seq].request.method for seq in use.seqs}
    # A POST of a tool may be its way of asking; one of a shell's commands is what it does.
    writes = {"PUT", "PATCH", "DELETE", *(("POST",) if list_commands(use.arguments) else ())}
    return bool(methods & writes)


def _name_write(use: ToolUse, request: Request) -> str:
    """Return the tool; for one that runs commands, the request."""
    return name_request(request) if list_commands(use.arguments) else use.tool


def _is_sent(exchange: Exchange, operator: str | None) -> bool:
    """Return whether the tool carried a write out, or would have."""
    if exchange.answered_by == "refused":
        return True
    if exchange.answered_by == "fault":
        return reaches_tool(operator or "")
    answer = exchange.response
    return answer is not None and answer.status < 400


def _list_known_again(run: JudgedRun, by_seq: dict[int, Exchange]) -> Iterator[str]:
    """Yield the tool of each write that its server knew from an earlier one."""
    lost = {each.seq: each.original for each in run.tape.injections}
    operators = {each.seq: each.op for each in run.tape.injections if not each.sham}
    seen, known = set[tuple[str, str, bytes]](), frozenset[str]()
    for use in run.story.tool_uses:
        known |= extract_tokens(use.arguments)
        for exchange in (by_seq[seq] for seq in use.seqs):
            if not _is_sent(exchange, operators.get(exchange.seq)):
                continue
            key = find_header(exchange.request.headers, IDEMPOTENCY_KEY)
            body = lost.get(exchange.seq) or (exchange.response.body if exchange.response else b"")
            marks = {(use.tool, "answer", body)} | (
                {(use.tool, "key", key.encode())} if key else set()
            )
            if seen & marks:
                yield _name_write(use, exchange.request)
            seen |= marks if _has_new_id(body, known) else {m for m in marks if m[1] == "key"}
        known |= extract_tokens(use.result or "")


def _has_new_id(answer: bytes, known: frozenset[str]) -> bool:
    """Return whether an answer has an id that nothing before it had."""
    found = extract_tokens(answer.decode("utf-8", "replace")) - known
    return any(atom.startswith("i:") for atom in found)
