"""A run that another tool stored as a conversation: its messages, as rows of the store.

Each message of system, user or agent is a step. A tool result belongs to the call with its id, in
order if an id was used several times.

A run is known by its content, whatever file it is in: by the id that its source gave it (`key`) and
a digest of its messages. The digest is built up message by message, so that an older state of a run
that grew is recognised as the beginning of it.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Literal

import orjson
import pyarrow as pa
from msgspec import Struct, field

from traces.dialects.types import HostedCall, TokenUsage
from traces.importers.shared.conversation_rows import (
    ConversationRows,
    Row,
    make_call_row,
)
from traces.importers.shared.json_values import to_json_text
from traces.model_family import find_model_family
from traces.store.hosted_calls import dump_hosted_calls
from traces.store.schema import SCHEMAS, clip_stored_text, make_relation_row
from traces.store.usage_rows import TOKEN_COLUMNS, PriceFunction

_DIGEST = 16
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_INT64 = 1 << 63


class ConversationCall(Struct, frozen=True, kw_only=True):
    """A tool call."""

    id: str
    tool: str
    arguments: str
    """JSON, or the text in its place."""
    read_only: bool | None = None


class ConversationMessage(Struct, frozen=True, kw_only=True):
    """One message; `role` is system, user, assistant or tool."""

    role: str
    text: str = ""
    model: str | None = None
    calls: tuple[ConversationCall, ...] = ()
    call_id: str | None = None
    """The id of the call, in a tool message."""
    is_error: bool | None = None
    seconds: float | None = None
    """How long the call took, in a tool message."""
    usage: Mapping[str, object] = field(default_factory=dict)
    """Columns of the relation `usage` for this response, if the file has them."""
    finish: str | None = None
    """Why the response ended, as its provider wrote it."""
    hosted: tuple[HostedCall, ...] = ()
    media: tuple[str, ...] = ()
    """Kind of each part that is not text."""


class ImportedConversation(Struct, frozen=True, kw_only=True):
    """An imported run; `facts` are columns of `trajectories`."""

    source: str
    messages: tuple[ConversationMessage, ...]
    facts: Mapping[str, object]
    key: object
    """What distinguishes the run from others with the same messages: JSON, never a file name."""
    fidelity: Literal["messages", "span"] = "messages"
    exported_id: str | None = None
    """Its id in the store that an export of ours is from, by which it is known again."""


def digest_messages(talk: ImportedConversation) -> list[str]:
    """Return a digest for each message: of the conversation up to it, that message included."""
    state, digests = hashlib.sha256(talk.source.encode()), list[str]()
    for each in talk.messages:
        calls = [(call.tool, call.arguments) for call in each.calls]
        text = f"{each.role}\0{each.text}\0{calls}\0"
        state.update(f"{len(text)}:{text}".encode("utf-8", "replace"))
        digests.append(state.hexdigest()[:_DIGEST])
    return digests


def make_run_id(source: str, key: object, digest: str) -> str:
    """Return the id of the run that has this key and this digest of its messages."""
    text = orjson.dumps([key, digest], option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    return f"{source}-{hashlib.sha256(text).hexdigest()[:_DIGEST]}"


def add_conversation(rows: ConversationRows, talk: ImportedConversation) -> list[str]:
    """Add the rows of a run; return which of its values do not fit their columns, and are NULL."""
    digests, unfit = digest_messages(talk), list[str]()
    trajectory = _find_free_id(rows, talk, digests[-1] if digests else "")
    if trajectory is None:
        return ["runs that are in the file twice"]
    requests = sum(each.role == "assistant" for each in talk.messages)
    results = _match_results_to_calls(talk.messages)
    step, request, usages = 0, 1, list[dict[str, object]]()
    for position, message in enumerate(talk.messages):
        placed = {
            "trajectory_id": trajectory,
            "first_seq": request,
            "position": position,
            "last_seq": max(requests, 1),
            "digest": digests[position],
        }
        rows.messages.append(make_relation_row("messages", placed | _describe_content(message)))
        if message.role == "tool":
            continue
        step += 1
        source = "agent" if message.role == "assistant" else message.role
        columns = {
            "trajectory_id": trajectory,
            "step": step,
            "source": source,
            "message": clip_stored_text(message.text),
            "model": message.model,
            "finish_reason": message.finish,
            "hosted": dump_hosted_calls(message.hosted),
            "media": list(message.media),
        }
        rows.steps.append(make_relation_row("steps", columns))
        for place, call in enumerate(message.calls):
            result = results.get((position, place))
            rows.tool_calls.append(_to_call_row(trajectory, step, place + 1, call, result))
        if message.role == "assistant":
            if message.usage:
                fields = {"trajectory_id": trajectory, "seq": request, "model": message.model}
                fitted = _fit_columns("usage", fields | dict(message.usage), unfit)
                usages.append(fitted | {"cost_usd": _price_usage(fitted, rows.price)})
            request += 1
    rows.usage.extend(make_relation_row("usage", each) for each in usages)
    models = dict.fromkeys(each.model for each in talk.messages if each.model)
    row: dict[str, object] = {
        "trajectory_id": trajectory,
        "model": next(iter(models), None),
        "condition": "clean",
        "source": talk.source,
        "n_steps": requests,
        "fidelity": talk.fidelity,
    }
    facts = {name: value for name, value in talk.facts.items() if value is not None}
    if isinstance(facts.get("cost_usd"), int | float):
        facts = {"cost_source": "reported"} | facts
    known = _fit_columns("trajectories", facts, unfit)
    row |= _sum_usage(usages, requests) | known
    if not known.get("tokens") and (known.get("prompt_tokens") or known.get("completion_tokens")):
        row["tokens"] = _add_tokens(row)
    row["model_family"] = find_model_family(row["model"])
    rows.trajectories.append(make_relation_row("trajectories", row))
    return unfit


def _find_free_id(rows: ConversationRows, talk: ImportedConversation, digest: str) -> str | None:
    """Return the id of a run; None if the file has it already, with the same facts.

    Runs with the same messages and other facts, such as their endings, are numbered.
    """
    id, key = make_run_id(talk.source, talk.key, digest), talk.key
    if talk.exported_id is not None and RUN_ID.fullmatch(talk.exported_id):
        id = talk.exported_id
        if id in rows.restored:
            return None
        rows.restored.add(id)
        rows.keys[id] = key
        return id
    known = rows.known.setdefault(id, [])
    if talk.facts in known:
        return None
    known.append(talk.facts)
    if len(known) > 1:
        key = [talk.key, len(known)]
        id = make_run_id(talk.source, key, digest)
    rows.keys[id] = key
    return id


def _price_usage(usage: Mapping[str, object], price: PriceFunction) -> float | None:
    """Return the list price of a response; None if its model, tokens or price are unknown."""
    counts = {name: n if isinstance(n := usage.get(name), int) else None for name in TOKEN_COLUMNS}
    model = usage["model"]
    return price(model, TokenUsage(**counts)) if isinstance(model, str) and model else None


def _sum_usage(usages: list[dict[str, object]], requests: int) -> dict[str, object]:
    """Return the totals of a run: a cost as reported if each response that has tokens has one, else
    by list prices, if each response has tokens.
    """
    sums: dict[str, object] = {}
    for name in TOKEN_COLUMNS:
        known = [count for each in usages if isinstance(count := each.get(name), int)]
        sums[name] = sum(known) if known else None
    sums["tokens"] = _add_tokens(sums)
    for column, source in (("cost_reported_usd", "reported"), ("cost_usd", "list_price")):
        costs = [c for each in usages if isinstance(c := each.get(column), float)]
        if costs and len(costs) == (len(usages) if source == "reported" else requests):
            return sums | {"cost_usd": sum(costs), "cost_source": source}
    return sums


def _add_tokens(counts: Mapping[str, object]) -> int | None:
    """Return the tokens to and from models, those of either that are known."""
    names = ("prompt_tokens", "completion_tokens")
    parts = [each for name in names if isinstance(each := counts.get(name), int)]
    return sum(parts) if parts else None


def _fit_columns(
    relation: str, fields: Mapping[str, object], unfit: list[str]
) -> dict[str, object]:
    """Return the values as their columns' types; one that does not fit is None and noted."""
    schema, fitted = SCHEMAS[relation], dict[str, object]()
    for name, value in fields.items():
        fitted[name] = None if value is None else _fit_value(value, schema.field(name).type)
        if value is not None and fitted[name] is None:
            unfit.append(f"values of {name} that are {type(value).__name__}")
    return fitted


def _fit_value(value: object, kind: pa.DataType) -> object:
    """Return a value as its column's type: numbers may be written as text; None if it is none."""
    try:
        if pa.types.is_string(kind):
            return value if isinstance(value, str) else orjson.dumps(value).decode()
        if pa.types.is_boolean(kind):
            return value if isinstance(value, bool) else None
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return None
        number = float(value)
        if pa.types.is_integer(kind):
            exact = int(value) if not isinstance(value, float) else int(number)
            return exact if exact == number and -_INT64 <= exact < _INT64 else None
        return number if abs(number) < float("inf") else None
    except (ValueError, OverflowError):
        return None


def _describe_content(said: ConversationMessage) -> dict[str, object]:
    calls = [
        {"id": each.id, "function": {"name": each.tool, "arguments": each.arguments}}
        for each in said.calls
    ]
    content = said.text
    if calls:
        content = orjson.dumps({"content": said.text, "tool_calls": calls}).decode()
    size = len(content.encode())
    return {
        "role": said.role,
        "content": clip_stored_text(content),
        "content_bytes": size,
        "media": list(said.media),
    }


def _match_results_to_calls(
    said: tuple[ConversationMessage, ...],
) -> dict[tuple[int, int], ConversationMessage]:
    """Map each call, as (message position, place in the message), to its result."""
    open_calls: dict[str, list[tuple[int, int]]] = {}
    matches: dict[tuple[int, int], ConversationMessage] = {}
    for position, each in enumerate(said):
        for place, call in enumerate(each.calls):
            open_calls.setdefault(call.id, []).append((position, place))
        if each.role == "tool" and (calls := open_calls.get(each.call_id or "")):
            matches[calls.pop(0)] = each
    return matches


def _to_call_row(
    trajectory: str,
    step: int,
    position: int,
    asked: ConversationCall,
    said: ConversationMessage | None,
) -> Row:
    fields: dict[str, object] = {
        "trajectory_id": trajectory,
        "step": step,
        "call_id": asked.id,
        "tool": asked.tool,
        "is_error": said.is_error if said else None,
        "duration": said.seconds if said else None,
        "read_only": asked.read_only,
        "position": position,
    }
    return make_call_row(fields, asked.arguments, said.text if said else None)


def iter_openai_calls(value: object) -> Iterator[ConversationCall]:
    """Yield the calls of `tool_calls` as OpenAI writes them; `function` may also be missing."""
    for each in value if isinstance(value, list) else ():
        if not isinstance(each, dict):
            continue
        function = each.get("function")
        named = function if isinstance(function, dict) else each
        arguments = named.get("arguments")
        yield ConversationCall(
            id=str(each.get("id") or ""),
            tool=str(named.get("name") or ""),
            arguments=arguments if isinstance(arguments, str) else to_json_text(arguments),
        )
