"""Inspect logs, `.eval` (a zip of JSON) and `.json`, of the log versions 2 and 3.

A sample is a run, its epoch the trial, its `messages` what was said; texts that stand as
`attachment://...` are looked up. Its first score is its reward: C and I are right and wrong, P and
N half and no answer, a number says nothing about passing unless it is 0 or 1. A log that was not
finished has its samples without a header. The library that writes these logs is not needed.
"""

import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import orjson
import pyarrow as pa

from traces.formats.files import WHOLE, content, head
from traces.formats.rows import Rows
from traces.formats.talk import Asked, Said, Talk, add

NAME = "Inspect logs (.eval or .json of version 2 or 3)"

type Table = dict[str, object]

MOST = 1 << 30
"""Bytes of all samples of a log, unpacked."""
_ZIP = b"PK\x03\x04"
_ATTACHED = "attachment://"
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}


def fits(path: Path) -> bool:
    """Whether a file begins like a log of either form."""
    start = head(path)
    if start.startswith(_ZIP):
        return b"_journal/start.json" in start or b"samples/" in start or b"header.json" in start
    return start.lstrip()[:1] == b"{" and all(
        key in start for key in (b'"version"', b'"status"', b'"eval"', b'"task"')
    )


def tables(path: Path) -> Mapping[str, pa.Table]:
    """The samples as trajectories, steps, tool calls, messages and usage."""
    rows = Rows()
    for header, sample in _samples(path):
        add(rows, _talk(header, sample))
    return rows.tables()


def _samples(path: Path) -> Iterator[tuple[Table, Table]]:
    if not head(path).startswith(_ZIP):
        log = _load(content(path))
        samples = log.get("samples")
        for each in samples if isinstance(samples, list) else ():
            yield log, _table(each)
        return
    try:
        with zipfile.ZipFile(path) as packed:
            yield from _unpacked(packed)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise ValueError(f"its zip cannot be read: {error}") from None


def _unpacked(packed: zipfile.ZipFile) -> Iterator[tuple[Table, Table]]:
    names = packed.namelist()
    if sum(each.file_size for each in packed.infolist()) > MOST:
        raise ValueError(f"it unpacks to more than {MOST >> 20} MB")
    at = "header.json" if "header.json" in names else "_journal/start.json"
    header = _load(_member(packed, at)) if at in names else {}
    for name in sorted(names):
        if name.startswith("samples/") and name.endswith(".json"):
            yield header, _load(_member(packed, name))


def _member(packed: zipfile.ZipFile, name: str) -> bytes:
    with packed.open(name) as file:  # what a zip says of sizes need not be true
        data = file.read(WHOLE + 1)
    if len(data) > WHOLE:
        raise ValueError(f"{name} unpacks to more than {WHOLE >> 20} MB")
    return data


def _load(data: bytes) -> Table:
    try:
        return _table(orjson.loads(data))
    except orjson.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error}") from None


def _talk(header: Table, sample: Table) -> Talk:
    run = _table(header.get("eval"))
    reward, scorer = _score(_table(sample.get("scores")))
    facts = {
        "agent": run.get("solver") or "inspect",
        "model": run.get("model"),
        "scenario": run.get("task"),
        "task": str(sample.get("id")),
        "trial": sample.get("epoch"),
        "recorded_at": _when(sample.get("started_at") or run.get("created")),
        "passed": None if reward not in (0.0, 1.0) else reward == 1.0,
        "reward": reward,
        "ended": _ended(header, sample),
        "seconds": sample.get("total_time"),
        "verifier": scorer,
    }
    said = tuple(_said(sample, str(run.get("model") or "")))
    return Talk(source="inspect", said=said, facts=facts, whole=[run.get("run_id"), sample])


def _ended(header: Table, sample: Table) -> str | None:
    if sample.get("error"):
        return "crash"
    if sample.get("limit"):
        return "budget"
    return "final" if sample.get("scores") or header.get("status") == "success" else None


def _score(scores: Table) -> tuple[float | None, str | None]:
    for scorer, each in scores.items():
        value = _table(each).get("value")
        if isinstance(value, str) and value in _LETTERS:
            return _LETTERS[value], scorer
        if isinstance(value, int | float):
            return float(value), scorer
    return None, None


def _said(sample: Table, model: str) -> Iterator[Said]:
    attached = _table(sample.get("attachments"))
    usage = _usages(sample)
    messages = sample.get("messages")
    for each in messages if isinstance(messages, list) else ():
        role = str(each.get("role"))
        text = _text(each.get("content"), attached)
        if role == "tool":
            error = _table(each.get("error"))
            text = text or str(error.get("message") or "")
            answers = str(each.get("tool_call_id") or "")
            yield Said(role="tool", text=text, answers=answers, is_error=bool(error))
        elif role == "assistant":
            calls = each.get("tool_calls")
            asked = [_asked(one, attached) for one in calls] if isinstance(calls, list) else []
            by = str(each.get("model") or model) or None
            yield Said(role=role, text=text, model=by, calls=tuple(asked), usage=_next(usage, text))
        else:
            yield Said(role=role, text=text)


def _next(usage: dict[str, list[dict[str, object]]], text: str) -> dict[str, object]:
    return usage[text].pop(0) if usage.get(text) else {}


def _usages(sample: Table) -> dict[str, list[dict[str, object]]]:
    """What answers of each text took, in their order, where the model's events tell it."""
    found: dict[str, list[dict[str, object]]] = {}
    attached, events = _table(sample.get("attachments")), sample.get("events")
    for each in events if isinstance(events, list) else ():
        output = _table(_table(each).get("output"))
        usage, choices = _table(output.get("usage")), output.get("choices")
        if each.get("event") == "model" and usage and isinstance(choices, list) and choices:
            text = _text(_table(_table(choices[0]).get("message")).get("content"), attached)
            cached = usage.get("input_tokens_cache_read")
            prompt = _sum(usage.get("input_tokens"), cached, usage.get("input_tokens_cache_write"))
            taken = {
                "prompt_tokens": prompt,
                "cached_tokens": cached,
                "completion_tokens": usage.get("output_tokens"),
                "reasoning_tokens": usage.get("reasoning_tokens"),
            }
            found.setdefault(text, []).append(taken)
    return found


def _sum(first: object, *more: object) -> int | None:
    if not isinstance(first, int):
        return None
    return first + sum(each for each in more if isinstance(each, int))


def _asked(call: object, attached: Table) -> Asked:
    known = _table(call)
    arguments = known.get("arguments")
    said = orjson.dumps(arguments).decode() if not isinstance(arguments, str) else arguments
    return Asked(
        id=str(known.get("id")), tool=str(known.get("function")), arguments=_whole(said, attached)
    )


def _text(content: object, attached: Table) -> str:
    """A text, or the texts of a list of parts; what a model only thought is not said."""
    if isinstance(content, list):
        parts = [_table(each) for each in content]
        return "\n".join(_text(each.get("text"), attached) for each in parts if each.get("text"))
    return _whole(content, attached) if isinstance(content, str) else ""


def _whole(text: str, attached: Table) -> str:
    name = text.removeprefix(_ATTACHED)
    return str(attached.get(name, text)) if name != text else text


def _when(said: object) -> float | None:
    try:
        return datetime.fromisoformat(said).timestamp() if isinstance(said, str) else None
    except ValueError:
        return None


def _table(said: object) -> Table:
    return said if isinstance(said, dict) else {}
