"""Volatile values of an agent's requests: they differ between runs and carry no meaning.

A short list, as data: for each dialect the place of a value, its volatile part, and the reason.
`remove_volatile_values` removes them on both sides of a comparison, so that a replayed agent gets
its recorded responses; everything else must be equal. Each entry was observed on the wire of the
client that it names, and is as narrow as possible: ids assigned by a model and output of commands
are never on the list. From version 4 on an id is volatile only if its form looks generated (a UUID,
16 hexadecimal digits, a time since the epoch), whatever the name of its field; removed ids are
recorded (`RemovedValues`), since an id that the recording has in another place is a different one.

The results of parallel calls arrive in the order in which the tools ended, which is chance; each
has the id of its call, so sorting them loses nothing.

`VOLATILE_VERSION` increases with each change, and a tape records the version that it is matched by,
so that later entries do not change its replay. Entries are only added, with their `since`.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter

from msgspec import Struct, field

from traces.bodies.canonical_json import dump_canonical_json
from traces.bodies.content_encoding import read_content
from traces.bodies.generated_values import GENERATED_VALUE, IDENTITY_VALUE
from traces.conversation.result_notes import add_notes, cut_notes
from traces.dialects import (
    anthropic_messages,
    bedrock_anthropic,
    cohere_chat,
    gemini,
    openai_chat,
    openai_responses,
)
from traces.dialects.types import DialectLens
from traces.model import Request

VOLATILE_VERSION = 4
TYPED_SINCE_VERSION = 4
"""The version from which on the form of a value counts."""
VOLATILE_TEXT = "VOLATILE"

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DRAWN = r"pyd_ai_([0-9a-f]{32})"


@dataclass(frozen=True, kw_only=True)
class VolatileRule:
    """A rule for one volatile value."""

    where: str
    """Keys from the top of the body, separated by dots; `*` is each item of a list."""
    why: str
    part: str = ""
    """Pattern whose one group is the volatile part of a text; if empty, the complete value is."""
    since: int = 1
    """First version of the list with this rule."""
    moves: bool = False
    """True for a value that changes its place: the number of occurrences still counts."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled."""
        return re.compile(self.part, re.DOTALL)


class VolatileValue(Struct, frozen=True):
    """A volatile value and its place: its rule, its number among the rule's values, its offset."""

    rule: int
    nth: int
    start: int
    value: str

    @property
    def is_identity(self) -> bool:
        """True for an id of one thing; False for a time or a short number."""
        return IDENTITY_VALUE.fullmatch(self.value) is not None


class RemovedValues(Struct):
    """The values removed from a body, in the order of their places."""

    values: list[VolatileValue] = field(default_factory=list)
    moved_values: list[bytes] = field(default_factory=list)

    def encode_places(self) -> bytes:
        """Encode the places of removed values: otherwise a literal VOLATILE would compare equal."""
        return repr([(each.rule, each.nth, each.start) for each in self.values]).encode()


class ResultLocation(Struct, frozen=True, kw_only=True):
    """Place of a dialect's results: neighbours in the list `where` that have both keys."""

    where: str
    id: str
    text: str


_RESULT_LOCATIONS: dict[str, ResultLocation] = {
    anthropic_messages.NAME: ResultLocation(
        where="messages.*.content", id="tool_use_id", text="content"
    ),
    openai_chat.NAME: ResultLocation(where="messages", id="tool_call_id", text="content"),
    openai_responses.NAME: ResultLocation(where="input", id="call_id", text="output"),
}
RESULT_LOCATIONS = _RESULT_LOCATIONS | {
    bedrock_anthropic.NAME: _RESULT_LOCATIONS[anthropic_messages.NAME],
    cohere_chat.NAME: _RESULT_LOCATIONS[openai_chat.NAME],
}

_VOLATILE_RULES: dict[str, tuple[VolatileRule, ...]] = {
    anthropic_messages.NAME: (
        VolatileRule(where="metadata.user_id", why="Claude Code: this device and this session"),
        VolatileRule(
            where="messages.*.content.*.cache_control",
            moves=True,
            why="Claude Code: marks the last block, whichever of the results that is",
        ),
        VolatileRule(
            where="system.*.text",
            part=r"\Ax-anthropic-billing-header:.*?\bcch=([0-9a-f]+);",
            why="Claude Code: a checksum of the request, ids included",
        ),
        VolatileRule(
            where="messages.*.content.*.text",
            part=r"\A<system-reminder>.*?Today's date is (\d{4}-\d\d-\d\d)",
            why="Claude Code: the day of the run",
        ),
        VolatileRule(
            where="messages.*.content.*.content.*.text",
            part=r"\AagentId: (\w+) \(use SendMessage with to: ",
            why="Claude Code: the name it gave a helper of its own",
        ),
        VolatileRule(
            where="messages.*.content.*.content.*.text",
            part=r"\AagentId: \w+ \(use SendMessage with to: '(\w+)'",
            why="Claude Code: the same name again",
        ),
        VolatileRule(
            where="messages.*.content.*.content.*.text",
            part=r"\AagentId: .*\n<usage>.*\bduration_ms: (\d+)",
            why="Claude Code: how long a helper of its own took",
        ),
        VolatileRule(
            where="system.*.text",
            part=r"<env>.*?\n  Today's date: (\w{3} \w{3} \d\d \d{4})\n.*</env>",
            why="opencode: the day of the run",
            since=2,
        ),
    ),
    gemini.NAME: (
        VolatileRule(
            where="contents.*.parts.*.functionResponse.response.output",
            part=r"\nProcess Group PGID: (\d+)\n</untrusted_context>\Z",
            why="Gemini CLI: the number of the process that ran a command",
            since=3,
        ),
    ),
    openai_chat.NAME: (
        VolatileRule(
            where="prompt_cache_key", why="OpenHands: the id of this conversation", since=2
        ),
        VolatileRule(
            where="messages.*.content.*.text",
            part=r"<CURRENT_DATETIME>\s.*? is: ([\d:.T-]+)\s*</CURRENT_DATETIME>",
            why="OpenHands: when the conversation began",
            since=3,
        ),
        VolatileRule(where="metadata.sessionId", why="qwen-code: the id of this session", since=2),
        VolatileRule(
            where="messages.*.tool_calls.*.id",
            part=rf"\A{_DRAWN}\Z",
            why="pydantic-ai: the id it gives to a call that came without one",
            since=2,
        ),
        VolatileRule(
            where="messages.*.tool_call_id",
            part=rf"\A{_DRAWN}\Z",
            why="pydantic-ai: the same id, of the result",
            since=2,
        ),
    ),
    openai_responses.NAME: (
        VolatileRule(where="prompt_cache_key", why="Codex: the id of this thread"),
        VolatileRule(
            where="client_metadata", why="Codex: this installation, session, thread and turn"
        ),
        VolatileRule(
            where="input.*.id",
            part=rf"\A[a-z]+_({_UUID})\Z",
            why="Codex: ids that it gives to what it says itself",
        ),
        VolatileRule(
            where="input.*.internal_chat_message_metadata_passthrough",
            why="Codex: the id of this turn and the second it began",
        ),
        VolatileRule(
            where="input.*.content.*.text",
            part=r"<environment_context>.*<current_date>([\d-]+)</current_date>",
            why="Codex: the day of the run",
        ),
        VolatileRule(
            where="input.*.output",
            part=r"\AChunk ID: ([0-9a-f]+)\n",
            why="Codex: a number drawn for each piece of output",
        ),
        VolatileRule(
            where="input.*.output",
            part=r"\A(?:Chunk ID: \w+\n)?Wall time: (\d+(?:\.\d+)?) seconds\n",
            why="Codex: how long a command took",
        ),
    ),
}
VOLATILE_RULES = _VOLATILE_RULES | {
    bedrock_anthropic.NAME: _VOLATILE_RULES[anthropic_messages.NAME]
}
"""The rules of each dialect; a client sends the same through whichever provider."""


_SHOWN = re.compile(r"\A(?:Chunk ID: \w+\n)?Wall time: \d+(?:\.\d+)? seconds\n(?:.+\n)*?Output:\n")


def find_output_start(result: str) -> int:
    """Return the offset of a command's own output, after the client's header lines (Codex)."""
    match = _SHOWN.match(result)
    return match.end() if match else 0


def remove_volatile_values(
    dialect: DialectLens | None,
    body: object,
    exact: Collection[str] = (),
    version: int = VOLATILE_VERSION,
    taken: RemovedValues | None = None,
) -> object:
    """Remove the volatile values of a parsed body, except at the places in `exact`.

    The body is changed in place. Each message is processed independently of the others, except for
    the order of neighbouring results (`sort_adjacent_results`).
    """
    if dialect is None:
        return body
    taken = RemovedValues() if taken is None else taken
    for number, rule in enumerate(VOLATILE_RULES.get(dialect.NAME, ())):
        *path, key = rule.where.split(".")
        counts = rule.where in exact or rule.since > version
        for holder in collect_at_path([body], path) if not counts else ():
            if isinstance(holder, dict) and key in holder:
                _apply_volatile_rule(
                    holder,
                    key,
                    _RuleApplication(
                        number, rule, taken, checks_form=version >= TYPED_SINCE_VERSION
                    ),
                )
    sort_results(dialect, body)
    return body


def sort_results(dialect: DialectLens | None, body: object) -> None:
    """Sort neighbouring results of a parsed body by their ids, in place: calls end in any order."""
    location = None if dialect is None else RESULT_LOCATIONS.get(dialect.NAME)
    if location is not None:
        for items in collect_at_path([body], location.where.split(".")):
            if isinstance(items, list):
                read_id = partial(_read_result_id, location)
                notes = cut_notes(
                    items, [read_id(item) is not None for item in items], location.text
                )
                items[:] = sort_adjacent_results(items, read_id)
                add_notes(items, notes, location.text)


def iter_result_groups(dialect: DialectLens, body: object) -> Iterator[list[tuple[str, object]]]:
    """Yield each run of neighbouring results of a parsed body, as the id and text of each."""
    if (location := RESULT_LOCATIONS.get(dialect.NAME)) is None:
        return
    for items in collect_at_path([body], location.where.split(".")):
        group = list[tuple[str, object]]()
        for item in (*items, None) if isinstance(items, list) else ():
            if (id := _read_result_id(location, item)) is not None:
                group.append((id, item[location.text]))
            elif group:
                yield group
                group = []


def parse_json_body(request: Request) -> object:
    """Parse the body of a request as JSON; None if it is not JSON, or nested too deep."""
    try:
        return json.loads(read_content(request))
    except (ValueError, RecursionError):
        return None


def collect_at_path(values: list[object], path: list[str]) -> list[object]:
    """Collect the values at the end of a path, in each of these values."""
    for key in path:
        if key == "*":
            values = [item for value in values if isinstance(value, list) for item in value]
        else:
            values = [v[key] for v in values if isinstance(v, dict) and key in v]
    return values


class _RuleApplication(Struct, frozen=True):
    """The application of one rule to one body."""

    number: int
    rule: VolatileRule
    taken: RemovedValues
    checks_form: bool

    def remove_value(self, start: int, value: str) -> None:
        nth = sum(each.rule == self.number for each in self.taken.values)
        self.taken.values.append(VolatileValue(self.number, nth, start, value))

    def without_generated(self, value: object) -> object:
        """Return a value without generated parts; keys sorted, since some clients shuffle
        theirs."""
        match value:
            case str():
                for match in GENERATED_VALUE.finditer(value):
                    self.remove_value(match.start(), match[0])
                return GENERATED_VALUE.sub(VOLATILE_TEXT, value)
            case dict():
                return {key: self.without_generated(value[key]) for key in sorted(value)}
            case list():
                return [self.without_generated(each) for each in value]
            case int() | bytes():
                text = value.decode() if isinstance(value, bytes) else str(value)
                if GENERATED_VALUE.fullmatch(text):
                    self.remove_value(0, text)
                    return VOLATILE_TEXT
        return value


def _apply_volatile_rule(holder: dict[str, object], key: str, taking: _RuleApplication) -> None:
    value, rule = holder[key], taking.rule
    if rule.moves:
        taking.taken.moved_values.append(dump_canonical_json(holder.pop(key)))
    elif not rule.part and taking.checks_form:
        holder[key] = taking.without_generated(value)
    elif not rule.part:
        del holder[key]
    elif isinstance(value, str) and (match := rule.pattern.search(value)):
        start, stop = match.span(1)
        taking.remove_value(start, value[start:stop])
        holder[key] = value[:start] + VOLATILE_TEXT + value[stop:]


def find_result_order_id(dialect: DialectLens, item: object) -> str | None:
    """Return the sort key of a result in the conversation; None for any other item."""
    location = RESULT_LOCATIONS.get(dialect.NAME)
    is_message_list = location is not None and location.where == dialect.MESSAGES_KEY
    return _read_result_id(location, item) if location is not None and is_message_list else None


def _read_result_id(kept: ResultLocation, item: object) -> str | None:
    if isinstance(item, dict) and kept.id in item and kept.text in item:
        id = str(item[kept.id])
        # A client-generated id implies no order; the order of the calls remains.
        return "" if re.fullmatch(_DRAWN, id) else id
    return None


def sort_adjacent_results[T](items: Iterable[T], id: Callable[[T], str | None]) -> Iterator[T]:
    """Yield the items, with each run of neighbouring results sorted by their ids."""
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
