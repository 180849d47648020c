"""Import Inspect logs, `.eval` (a zip of JSON) and `.json`, of log versions 2 and 3.

A sample is a run, its epoch the trial, its `messages` the conversation; texts that are
`attachment://...` are looked up. Its score is the reward: C is 1, I is 0, P (partial) is 0.5, N (no
answer) is 0; a number other than 0 and 1 leaves `passed` unknown. Of several scorers those that
give a verdict count, and `passed` is unknown if these disagree. A log that was not finished
has samples without a header. The library that writes these logs is not required.
"""

import math
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import orjson

from traces.dialects.media_parts import list_media
from traces.dialects.types import HostedCall
from traces.importers.inspect_events import (
    find_call_seconds,
    list_agent_requests,
    parse_inspect_time,
    sum_model_usage,
    sum_token_counts,
)
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
    reward, scorer = _read_score(to_object(sample.get("scores")), notes)
    facts = {
        "agent": run.get("solver") or _find_last_solver(header) or "inspect",
        "model": run.get("model"),
        "scenario": run.get("task"),
        "task": str(sample.get("id")),
        "trial": sample.get("epoch"),
        "recorded_at": parse_inspect_time(sample.get("started_at") or run.get("created")),
        "passed": None if reward not in (0.0, 1.0) else reward == 1.0,
        "reward": reward,
        "ended": _read_sample_ending(header, sample),
        "seconds": sample.get("total_time"),
        "verifier": scorer,
        **_sum_agent_usage(sample, run.get("model"), notes),
    }
    messages = tuple(_read_inspect_messages(sample, str(run.get("model") or ""), notes))
    return ImportedConversation(
        source="inspect",
        messages=messages,
        facts=facts,
        # A retried evaluation takes over the finished samples of the first, with their uuid.
        key=sample.get("uuid")
        or [run.get("eval_id") or run.get("run_id"), sample.get("id"), sample.get("epoch")],
    )


def _read_sample_ending(header: Table, sample: Table) -> str | None:
    if sample.get("error"):
        return "crash"
    if sample.get("limit"):
        return "budget"
    return "final" if sample.get("scores") or header.get("status") == "success" else None


def _find_last_solver(header: Table) -> str | None:
    """Return the last step of the plan, which ends the conversation."""
    steps = to_objects(to_object(header.get("plan")).get("steps"))
    return str(steps[-1]["solver"]) if steps and steps[-1].get("solver") else None


def _sum_agent_usage(sample: Table, model: object, notes: ImportNotes) -> dict[str, object]:
    """Return the tokens of the agent: of its requests, else of all of its model."""
    requests = [to_object(each.get("output")) for each in list_agent_requests(sample)]
    usages = [usage for each in requests if (usage := to_object(each.get("usage")))]
    by_model = to_object(sample.get("model_usage"))
    if usages:
        counted = sum(each.get("event") == "model" for each in to_objects(sample.get("events")))
        for _ in range(counted - len(requests)):
            notes.skip("requests to models that are not the agent's, as graders")
        return sum_model_usage(usages)
    if len(by_model) > 1 and model in by_model:
        notes.skip("tokens of models that are not the agent's, as graders")
        by_model = {str(model): by_model[str(model)]}
    return sum_model_usage([to_object(each) for each in by_model.values()])


def _read_score(scores: Table, notes: ImportNotes) -> tuple[float | None, str | None]:
    """Return the reward and its scorers; (None, them) if those that give a verdict disagree."""
    values = {scorer: _read_score_value(each) for scorer, each in scores.items()}
    known = {scorer: value for scorer, value in values.items() if value is not None}
    verdicts = {scorer: value for scorer, value in known.items() if value in (0.0, 1.0)}
    if not verdicts:
        return next(((value, scorer) for scorer, value in known.items()), (None, None))
    scorers = "+".join(verdicts)
    if len(set(verdicts.values())) > 1:
        text = ", ".join(f"{scorer} {value:g}" for scorer, value in sorted(verdicts.items()))
        notes.skip(f"verdicts on which scorers disagree ({text})")
        return None, scorers
    return next(iter(verdicts.values())), scorers


def _read_score_value(score: object) -> float | None:
    value = to_object(score).get("value")
    if isinstance(value, str):
        return _LETTERS.get(value)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _read_inspect_messages(
    sample: Table, model: str, notes: ImportNotes
) -> Iterator[ConversationMessage]:
    attachments = to_object(sample.get("attachments"))
    answers, seconds = _read_answers_by_text(sample), find_call_seconds(sample)
    for each in require_objects(sample.get("messages", []), "messages"):
        role = str(each.get("role"))
        text = _join_inspect_text(each.get("content"), attachments)
        if role == "tool":
            error = to_object(each.get("error"))
            text = text or str(error.get("message") or "")
            call_id = str(each.get("tool_call_id") or "")
            yield ConversationMessage(
                role="tool",
                text=text,
                call_id=call_id,
                is_error=bool(error),
                seconds=seconds.get(call_id),
            )
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
    attachments = to_object(sample.get("attachments"))
    for each in list_agent_requests(sample):
        output = to_object(each.get("output"))
        choices = to_objects(output.get("choices"))
        if choices:
            content = to_object(choices[0].get("message")).get("content")
            answers.setdefault(_join_inspect_text(content, attachments), []).append(output)
    return answers


def _read_usage(usage: Table) -> dict[str, object]:
    if not usage:
        return {}
    cached = usage.get("input_tokens_cache_read")
    return {
        "prompt_tokens": sum_token_counts(
            usage.get("input_tokens"), cached, usage.get("input_tokens_cache_write")
        ),
        "cached_tokens": cached,
        "completion_tokens": usage.get("output_tokens"),
        "reasoning_tokens": usage.get("reasoning_tokens"),
    }


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
