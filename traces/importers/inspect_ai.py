"""Import Inspect logs, `.eval` (a zip of JSON) and `.json`, of log versions 2 and 3.

A sample is a run, its epoch the trial, its `messages` the conversation; texts that are
`attachment://...` are looked up. Its first score is the reward: C is 1, I is 0, P (partial) is 0.5,
N (no answer) is 0; a number other than 0 and 1 leaves `passed` unknown. A log that was not finished
has samples without a header. The library that writes these logs is not required.
"""

import zipfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import orjson

from traces.dialects.media_parts import list_media
from traces.dialects.types import HostedCall
from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
)
from traces.importers.shared.file_reader import read_file_head, read_unpacked_file
from traces.importers.shared.finish_reason import find_finish_reason
from traces.importers.shared.json_values import (
    parse_json,
    require_objects,
    to_json_text,
    to_object,
    to_objects,
)
from traces.importers.shared.jsonl import iter_list_records
from traces.importers.shared.run_reader import ImportNotes, RawRun
from traces.importers.shared.zip_members import check_zip_size, read_zip_member

NAME = "Inspect logs (.eval or .json of version 2 or 3)"

type Table = dict[str, object]

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


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the samples of a log; each is a run."""
    if read_file_head(path).startswith(_ZIP):
        yield from _list_zipped_samples(path)
        return
    header = _read_json_header(path)
    if isinstance(header.get("samples"), list):
        for where, sample in iter_list_records(path, "samples"):
            yield RawRun(where=where, read=partial(_read_sample, header, sample))


def _read_json_header(path: Path) -> Table:
    """Return a log without what is in its samples, as far as it is valid."""
    header = to_object(parse_json(read_unpacked_file(path)))
    if isinstance(samples := header.get("samples"), list):
        samples.clear()
    return header


def _list_zipped_samples(path: Path) -> Iterator[RawRun]:
    try:
        with zipfile.ZipFile(path) as packed:
            check_zip_size(packed, path)
            names = packed.namelist()
            header_name = "header.json" if "header.json" in names else "_journal/start.json"
            header = _read_member(packed, header_name) if header_name in names else {}
            for name in sorted(names):
                if name.startswith("samples/") and name.endswith(".json"):
                    yield RawRun(where=name, read=partial(_read_zipped, header, packed, name))
    except zipfile.BadZipFile as error:
        raise ValueError(f"its zip cannot be read: {error}") from None


def _read_zipped(
    header: Table, packed: zipfile.ZipFile, name: str, notes: ImportNotes
) -> ImportedConversation:
    return _read_sample(header, _read_member(packed, name), notes)


def _read_member(packed: zipfile.ZipFile, name: str) -> Table:
    return to_object(parse_json(read_zip_member(packed, name)))


def _read_sample(header: Table, document: object, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    sample, run = to_object(document), to_object(header.get("eval"))
    reward, scorer = _read_first_score(to_object(sample.get("scores")))
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
        **_sum_model_usage(to_object(sample.get("model_usage"))),
    }
    messages = tuple(_read_inspect_messages(sample, str(run.get("model") or ""), notes))
    return ImportedConversation(
        source="inspect",
        messages=messages,
        facts=facts,
        key=[run.get("eval_id") or run.get("run_id"), sample.get("id"), sample.get("epoch")],
    )


def _sum_model_usage(usage_by_model: Table) -> dict[str, object]:
    """Return the totals of a sample, over all models."""
    counts = [to_object(each) for each in usage_by_model.values()]
    cached = _add_counts(each.get("input_tokens_cache_read") for each in counts)
    prompt = _add_counts(
        _sum_token_counts(
            each.get("input_tokens"),
            each.get("input_tokens_cache_read"),
            each.get("input_tokens_cache_write"),
        )
        for each in counts
    )
    completion = _add_counts(each.get("output_tokens") for each in counts)
    costs = [cost for each in counts if isinstance(cost := each.get("total_cost"), int | float)]
    return {
        "prompt_tokens": prompt,
        "cached_tokens": cached,
        "completion_tokens": completion,
        "reasoning_tokens": _add_counts(each.get("reasoning_tokens") for each in counts),
        "tokens": None if prompt is None else prompt + (completion or 0),
        "cost_usd": sum(costs) if costs and len(costs) == len(counts) else None,
    }


def _add_counts(counts: Iterable[object]) -> int | None:
    known = [each for each in counts if isinstance(each, int)]
    return sum(known) if known else None


def _read_sample_ending(header: Table, sample: Table) -> str | None:
    if sample.get("error"):
        return "crash"
    if sample.get("limit"):
        return "budget"
    return "final" if sample.get("scores") or header.get("status") == "success" else None


def _read_first_score(scores: Table) -> tuple[float | None, str | None]:
    for scorer, each in scores.items():
        value = to_object(each).get("value")
        if isinstance(value, str) and value in _LETTERS:
            return _LETTERS[value], scorer
        if isinstance(value, int | float):
            return float(value), scorer
    return None, None


def _read_inspect_messages(
    sample: Table, model: str, notes: ImportNotes
) -> Iterator[ConversationMessage]:
    attachments = to_object(sample.get("attachments"))
    answers = _read_answers_by_text(sample)
    for each in require_objects(sample.get("messages", []), "messages"):
        role = str(each.get("role"))
        text = _join_inspect_text(each.get("content"), attachments)
        if role == "tool":
            error = to_object(each.get("error"))
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
            answer = answers[text].pop(0) if answers.get(text) else {}
            yield ConversationMessage(
                role=role,
                text=text,
                model=message_model,
                calls=tuple(parsed_calls),
                usage=_read_usage(to_object(answer.get("usage"))),
                finish=find_finish_reason(answer),
                hosted=tuple(_read_hosted_calls(each.get("content"))),
            )
        elif role in ("system", "user"):
            media = list_media(each.get("content"))
            yield ConversationMessage(role=role, text=text, media=media)
        else:
            notes.skip(f"messages of role {role}")


def _read_hosted_calls(content: object) -> Iterator[HostedCall]:
    for part in to_objects(content):
        if part.get("type") == "tool_use":
            failed, result = part.get("error"), part.get("result")
            yield HostedCall(
                tool=str(part.get("name") or part.get("tool_type")),
                arguments=to_json_text(part.get("arguments")),
                result=to_json_text(failed or result) if failed or result else None,
                is_error=bool(failed),
            )


def _read_answers_by_text(sample: Table) -> dict[str, list[Table]]:
    """Return the model's responses, in order, by their text, if the log has model events."""
    answers: dict[str, list[Table]] = {}
    attachments, events = to_object(sample.get("attachments")), sample.get("events")
    for each in events if isinstance(events, list) else ():
        output = to_object(to_object(each).get("output"))
        choices = output.get("choices")
        if each.get("event") == "model" and isinstance(choices, list) and choices:
            text = _join_inspect_text(
                to_object(to_object(choices[0]).get("message")).get("content"),
                attachments,
            )
            answers.setdefault(text, []).append(output)
    return answers


def _read_usage(usage: Table) -> dict[str, object]:
    if not usage:
        return {}
    cached = usage.get("input_tokens_cache_read")
    return {
        "prompt_tokens": _sum_token_counts(
            usage.get("input_tokens"), cached, usage.get("input_tokens_cache_write")
        ),
        "cached_tokens": cached,
        "completion_tokens": usage.get("output_tokens"),
        "reasoning_tokens": usage.get("reasoning_tokens"),
    }


def _sum_token_counts(first: object, *more: object) -> int | None:
    if not isinstance(first, int):
        return None
    return first + sum(each for each in more if isinstance(each, int))


def _read_inspect_call(call: object, attached: Table) -> ConversationCall:
    fields = to_object(call)
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
        parts = [to_object(each) for each in content]
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
