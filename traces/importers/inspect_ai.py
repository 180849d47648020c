"""Import Inspect logs, `.eval` (a zip of JSON) and `.json`, of log versions 2 and 3.

A sample is a run, its epoch the trial, its `messages` the conversation; texts that are
`attachment://...` are looked up. Its first score is the reward: C is 1, I is 0, P (partial) is 0.5,
N (no answer) is 0; a number other than 0 and 1 leaves `passed` unknown. A log that was not finished
has samples without a header. The library that writes these logs is not required.
"""

import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import orjson
import pyarrow as pa

from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
    add_conversation,
)
from traces.importers.shared.conversation_rows import ConversationRows
from traces.importers.shared.file_reader import MAX_WHOLE_FILE, read_file_head, read_unpacked_file

NAME = "Inspect logs (.eval or .json of version 2 or 3)"

type Table = dict[str, object]

MAX_UNPACKED_LOG = 1 << 30
"""Maximum bytes of all samples of a log, decompressed."""
_ZIP = b"PK\x03\x04"
_ATTACHED = "attachment://"
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}


def can_import(path: Path) -> bool:
    """Whether a file begins like a log of either form."""
    start = read_file_head(path)
    if start.startswith(_ZIP):
        return b"_journal/start.json" in start or b"samples/" in start or b"header.json" in start
    return start.lstrip()[:1] == b"{" and all(
        key in start for key in (b'"version"', b'"status"', b'"eval"', b'"task"')
    )


def read_tables(path: Path) -> Mapping[str, pa.Table]:
    """Read the samples as trajectories, steps, tool calls, messages and usage."""
    rows = ConversationRows()
    for header, sample in _read_log_samples(path):
        add_conversation(rows, _to_inspect_conversation(header, sample))
    return rows.to_tables()


def _read_log_samples(path: Path) -> Iterator[tuple[Table, Table]]:
    if not read_file_head(path).startswith(_ZIP):
        log = _parse_log_object(read_unpacked_file(path))
        samples = log.get("samples")
        for each in samples if isinstance(samples, list) else ():
            yield log, _to_log_object(each)
        return
    try:
        with zipfile.ZipFile(path) as packed:
            yield from _read_zipped_samples(packed)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise ValueError(f"its zip cannot be read: {error}") from None


def _read_zipped_samples(packed: zipfile.ZipFile) -> Iterator[tuple[Table, Table]]:
    names = packed.namelist()
    if sum(each.file_size for each in packed.infolist()) > MAX_UNPACKED_LOG:
        raise ValueError(f"it unpacks to more than {MAX_UNPACKED_LOG >> 20} MB")
    header_name = "header.json" if "header.json" in names else "_journal/start.json"
    header = (
        _parse_log_object(_read_zip_member(packed, header_name)) if header_name in names else {}
    )
    for name in sorted(names):
        if name.startswith("samples/") and name.endswith(".json"):
            yield header, _parse_log_object(_read_zip_member(packed, name))


def _read_zip_member(packed: zipfile.ZipFile, name: str) -> bytes:
    with packed.open(name) as file:  # the sizes that a zip declares may be wrong
        data = file.read(MAX_WHOLE_FILE + 1)
    if len(data) > MAX_WHOLE_FILE:
        raise ValueError(f"{name} unpacks to more than {MAX_WHOLE_FILE >> 20} MB")
    return data


def _parse_log_object(data: bytes) -> Table:
    try:
        return _to_log_object(orjson.loads(data))
    except orjson.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error}") from None


def _to_inspect_conversation(header: Table, sample: Table) -> ImportedConversation:
    run = _to_log_object(header.get("eval"))
    reward, scorer = _read_first_score(_to_log_object(sample.get("scores")))
    facts = {
        "agent": run.get("solver") or "inspect",
        "model": run.get("model"),
        "scenario": run.get("task"),
        "task": str(sample.get("id")),
        "trial": sample.get("epoch"),
        "recorded_at": _parse_inspect_time(sample.get("started_at") or run.get("created")),
        "passed": None if reward not in (0.0, 1.0) else reward == 1.0,
        "reward": reward,
        "ended": _read_sample_ending(header, sample),
        "seconds": sample.get("total_time"),
        "verifier": scorer,
    }
    messages = tuple(_read_inspect_messages(sample, str(run.get("model") or "")))
    return ImportedConversation(
        source="inspect", messages=messages, facts=facts, source_data=[run.get("run_id"), sample]
    )


def _read_sample_ending(header: Table, sample: Table) -> str | None:
    if sample.get("error"):
        return "crash"
    if sample.get("limit"):
        return "budget"
    return "final" if sample.get("scores") or header.get("status") == "success" else None


def _read_first_score(scores: Table) -> tuple[float | None, str | None]:
    for scorer, each in scores.items():
        value = _to_log_object(each).get("value")
        if isinstance(value, str) and value in _LETTERS:
            return _LETTERS[value], scorer
        if isinstance(value, int | float):
            return float(value), scorer
    return None, None


def _read_inspect_messages(sample: Table, model: str) -> Iterator[ConversationMessage]:
    attachments = _to_log_object(sample.get("attachments"))
    usage = _read_usage_by_text(sample)
    messages = sample.get("messages")
    for each in messages if isinstance(messages, list) else ():
        role = str(each.get("role"))
        text = _join_inspect_text(each.get("content"), attachments)
        if role == "tool":
            error = _to_log_object(each.get("error"))
            text = text or str(error.get("message") or "")
            call_id = str(each.get("tool_call_id") or "")
            yield ConversationMessage(role="tool", text=text, call_id=call_id, is_error=bool(error))
        elif role == "assistant":
            calls = each.get("tool_calls")
            parsed_calls = (
                [_read_inspect_call(one, attachments) for one in calls]
                if isinstance(calls, list)
                else []
            )
            message_model = str(each.get("model") or model) or None
            yield ConversationMessage(
                role=role,
                text=text,
                model=message_model,
                calls=tuple(parsed_calls),
                usage=_take_next_usage(usage, text),
            )
        else:
            yield ConversationMessage(role=role, text=text)


def _take_next_usage(usage: dict[str, list[dict[str, object]]], text: str) -> dict[str, object]:
    return usage[text].pop(0) if usage.get(text) else {}


def _read_usage_by_text(sample: Table) -> dict[str, list[dict[str, object]]]:
    """Return the token usage of responses, in order, by their text, if model events have it."""
    usage_by_text: dict[str, list[dict[str, object]]] = {}
    attachments, events = _to_log_object(sample.get("attachments")), sample.get("events")
    for each in events if isinstance(events, list) else ():
        output = _to_log_object(_to_log_object(each).get("output"))
        usage, choices = _to_log_object(output.get("usage")), output.get("choices")
        if each.get("event") == "model" and usage and isinstance(choices, list) and choices:
            text = _join_inspect_text(
                _to_log_object(_to_log_object(choices[0]).get("message")).get("content"),
                attachments,
            )
            cached = usage.get("input_tokens_cache_read")
            prompt = _sum_token_counts(
                usage.get("input_tokens"), cached, usage.get("input_tokens_cache_write")
            )
            counts = {
                "prompt_tokens": prompt,
                "cached_tokens": cached,
                "completion_tokens": usage.get("output_tokens"),
                "reasoning_tokens": usage.get("reasoning_tokens"),
            }
            usage_by_text.setdefault(text, []).append(counts)
    return usage_by_text


def _sum_token_counts(first: object, *more: object) -> int | None:
    if not isinstance(first, int):
        return None
    return first + sum(each for each in more if isinstance(each, int))


def _read_inspect_call(call: object, attached: Table) -> ConversationCall:
    fields = _to_log_object(call)
    arguments = fields.get("arguments")
    text = orjson.dumps(arguments).decode() if not isinstance(arguments, str) else arguments
    return ConversationCall(
        id=str(fields.get("id")),
        tool=str(fields.get("function")),
        arguments=_resolve_attachment(text, attached),
    )


def _join_inspect_text(content: object, attached: Table) -> str:
    """Return a text, or the joined texts of a list of parts, without reasoning."""
    if isinstance(content, list):
        parts = [_to_log_object(each) for each in content]
        return "\n".join(
            _join_inspect_text(each.get("text"), attached) for each in parts if each.get("text")
        )
    return _resolve_attachment(content, attached) if isinstance(content, str) else ""


def _resolve_attachment(text: str, attached: Table) -> str:
    name = text.removeprefix(_ATTACHED)
    return str(attached.get(name, text)) if name != text else text


def _parse_inspect_time(said: object) -> float | None:
    try:
        return datetime.fromisoformat(said).timestamp() if isinstance(said, str) else None
    except ValueError:
        return None


def _to_log_object(said: object) -> Table:
    return said if isinstance(said, dict) else {}
