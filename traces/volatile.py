"""What an agent's request holds that differs from one run to the next and says nothing.

A short list, kept as data: for each dialect, where a value stands, which part of it is volatile,
and why. `settled` takes it out on both sides of a comparison, so that a replayed agent finds its
answers; whatever is not on the list must be the same. Each entry was seen on the wire of the
client named beside it, and is as narrow as it can be: an id that a model gave, or what a command
printed, is never on it. Headers are not either, since they never count.

The results of calls that were made together come in the order in which the tools ended, which
is chance; each has the id of its call, so nothing is lost where they are put in order.

`VERSION` goes up with each change, and a tape says by which list it is matched: what a replay of
it is told does not change because we know more. Entries are only added, with their `since`.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter

from traces.dialects import anthropic_messages, gemini, openai_chat, openai_responses
from traces.encoding import plain
from traces.model import Request
from traces.step import Lens

VERSION = 3
SETTLED = "VOLATILE"

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DRAWN = r"pyd_ai_([0-9a-f]{32})"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One volatile value."""

    where: str
    """Keys from the top of the body, with dots between; `*` is each item of a list."""
    why: str
    part: str = ""
    """Of a text, only what the one group of this pattern matches; the whole value if empty."""
    since: int = 1
    """The version of the list that first had it."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled."""
        return re.compile(self.part, re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Where a dialect keeps results: neighbours in the list `where` that have both keys."""

    where: str
    id: str
    text: str


RESULTS: Mapping[str, Results] = {
    anthropic_messages.NAME: Results(where="messages.*.content", id="tool_use_id", text="content"),
    openai_chat.NAME: Results(where="messages", id="tool_call_id", text="content"),
    openai_responses.NAME: Results(where="input", id="call_id", text="output"),
}

RULES: Mapping[str, tuple[Rule, ...]] = {
    anthropic_messages.NAME: (
        Rule(where="metadata.user_id", why="Claude Code: this device and this session"),
        Rule(
            where="messages.*.content.*.cache_control",
            why="Claude Code: marks the last block, whichever of the results that is",
        ),
        Rule(
            where="system.*.text",
            part=r"\Ax-anthropic-billing-header:.*?\bcch=([0-9a-f]+);",
            why="Claude Code: a checksum of the request, ids included",
        ),
        Rule(
            where="messages.*.content.*.text",
            part=r"\A<system-reminder>.*?Today's date is (\d{4}-\d\d-\d\d)",
            why="Claude Code: the day of the run",
        ),
        Rule(
            where="messages.*.content.*.content.*.text",
            part=r"\AagentId: (\w+) \(use SendMessage with to: ",
            why="Claude Code: the name it gave a helper of its own",
        ),
        Rule(
            where="messages.*.content.*.content.*.text",
            part=r"\AagentId: \w+ \(use SendMessage with to: '(\w+)'",
            why="Claude Code: the same name again",
        ),
        Rule(
            where="messages.*.content.*.content.*.text",
            part=r"\AagentId: .*\n<usage>.*\bduration_ms: (\d+)",
            why="Claude Code: how long a helper of its own took",
        ),
        Rule(
            where="system.*.text",
            part=r"<env>.*?\n  Today's date: (\w{3} \w{3} \d\d \d{4})\n.*</env>",
            why="opencode: the day of the run",
            since=2,
        ),
    ),
    gemini.NAME: (
        Rule(
            where="contents.*.parts.*.functionResponse.response.output",
            part=r"\nProcess Group PGID: (\d+)\n</untrusted_context>\Z",
            why="Gemini CLI: the number of the process that ran a command",
            since=3,
        ),
    ),
    openai_chat.NAME: (
        Rule(where="prompt_cache_key", why="OpenHands: the id of this conversation", since=2),
        Rule(
            where="messages.*.content.*.text",
            part=r"<CURRENT_DATETIME>\s.*? is: ([\d:.T-]+)\s*</CURRENT_DATETIME>",
            why="OpenHands: when the conversation began",
            since=3,
        ),
        Rule(where="metadata.sessionId", why="qwen-code: the id of this session", since=2),
        Rule(
            where="messages.*.tool_calls.*.id",
            part=rf"\A{_DRAWN}\Z",
            why="pydantic-ai: the id it gives to a call that came without one",
            since=2,
        ),
        Rule(
            where="messages.*.tool_call_id",
            part=rf"\A{_DRAWN}\Z",
            why="pydantic-ai: the same id, of the result",
            since=2,
        ),
    ),
    openai_responses.NAME: (
        Rule(where="prompt_cache_key", why="Codex: the id of this thread"),
        Rule(where="client_metadata", why="Codex: this installation, session, thread and turn"),
        Rule(
            where="input.*.id",
            part=rf"\A[a-z]+_({_UUID})\Z",
            why="Codex: ids that it gives to what it says itself",
        ),
        Rule(
            where="input.*.internal_chat_message_metadata_passthrough",
            why="Codex: the id of this turn and the second it began",
        ),
        Rule(
            where="input.*.content.*.text",
            part=r"<environment_context>.*<current_date>([\d-]+)</current_date>",
            why="Codex: the day of the run",
        ),
        Rule(
            where="input.*.output",
            part=r"\AChunk ID: ([0-9a-f]+)\n",
            why="Codex: a number drawn for each piece of output",
        ),
        Rule(
            where="input.*.output",
            part=r"\A(?:Chunk ID: \w+\n)?Wall time: ([\d.]+) seconds\n",
            why="Codex: how long a command took",
        ),
    ),
}


_SHOWN = re.compile(r"\A(?:Chunk ID: \w+\n)?Wall time: [\d.]+ seconds\n(?:.+\n)*?Output:\n")


def printed(result: str) -> int:
    """Where a command's own output begins, behind what the client says about it (Codex)."""
    found = _SHOWN.match(result)
    return found.end() if found else 0


def settled(
    dialect: Lens | None, body: object, exact: Collection[str] = (), version: int = VERSION
) -> object:
    """A parsed body without its volatile values, but for those at places in `exact`.

    The body is changed in place. What becomes of a message depends on no other one, but for the
    order of results that are neighbours (`in_order`).
    """
    if dialect is None:
        return body
    for rule in RULES.get(dialect.NAME, ()):
        *path, key = rule.where.split(".")
        counts = rule.where in exact or rule.since > version
        for holder in reached([body], path) if not counts else ():
            if isinstance(holder, dict) and key in holder:
                _settle(holder, key, rule)
    if (kept := RESULTS.get(dialect.NAME)) is not None:
        for found in reached([body], kept.where.split(".")):
            if isinstance(found, list):
                found[:] = in_order(found, partial(_result, kept))
    return body


def parsed(request: Request) -> object:
    """The body of a request as JSON; None where it is none, or too deep."""
    try:
        return json.loads(plain(request.headers, request.body) or b"")
    except (ValueError, RecursionError):
        return None


def reached(values: list[object], path: list[str]) -> list[object]:
    """What stands at the end of a path, in each of these values."""
    for key in path:
        if key == "*":
            values = [item for value in values if isinstance(value, list) for item in value]
        else:
            values = [v[key] for v in values if isinstance(v, dict) and key in v]
    return values


def _settle(holder: dict[str, object], key: str, rule: Rule) -> None:
    value = holder[key]
    if not rule.part:
        del holder[key]
    elif isinstance(value, str) and (found := rule.pattern.search(value)):
        start, stop = found.span(1)
        holder[key] = value[:start] + SETTLED + value[stop:]


def result_id(dialect: Lens, item: object) -> str | None:
    """The id that an item of the conversation is put in order by; None for what is no result."""
    kept = RESULTS.get(dialect.NAME)
    whole = kept is not None and kept.where == dialect.LIST
    return _result(kept, item) if kept is not None and whole else None


def _result(kept: Results, item: object) -> str | None:
    if isinstance(item, dict) and kept.id in item and kept.text in item:
        id = str(item[kept.id])
        # One that the client drew says nothing of the order, which is then that of the calls.
        return "" if re.fullmatch(_DRAWN, id) else id
    return None


def in_order[T](items: Iterable[T], id: Callable[[T], str | None]) -> Iterator[T]:
    """The items, each run of neighbouring results by their ids."""
    run = list[tuple[str, T]]()
    for item in items:
        if (key := id(item)) is not None:
            run.append((key, item))
            continue
        if run:
            yield from (each for _, each in sorted(run, key=itemgetter(0)))
            run = []
        yield item
    yield from (each for _, each in sorted(run, key=itemgetter(0)))
