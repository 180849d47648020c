"""Import results of Terminal-Bench: a trial, or a document with a list `results` of trials.

Results have the verdict, the tokens and the times of a trial, and no message: agents write their
logs in forms of their own. So a run of this format has no step, which a remark says.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from traces.importers.shared.conversation import ImportedConversation
from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.json_values import to_object
from traces.importers.shared.jsonl import iter_json_records, iter_list_records
from traces.importers.shared.run_reader import ImportNotes, RawRun

NAME = "Terminal-Bench results (a JSON document of a trial, or with results of trials)"
_ENDINGS = {
    "unset": None,
    "none": None,
    "agent_timeout": "budget",
    "context_length_exceeded": "budget",
    "fatal_llm_parse_error": "crash",
    "unknown_agent_error": "crash",
    "agent_installation_failed": "harness",
    "test_timeout": "harness",
    "parse_error": "harness",
    "unknown": None,
}
"""How a trial ended, by Terminal-Bench's FailureMode."""

type Table = dict[str, object]


def can_import(path: Path) -> bool:
    """Whether a file begins like results of Terminal-Bench."""
    start = read_file_head(path)
    names = (b'"task_id"', b'"is_resolved"', b'"failure_mode"')
    return start.lstrip()[:1] == b"{" and all(name in start for name in names)


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the trials."""
    start = read_file_head(path)
    has_list = b'"results"' in start[: start.index(b'"task_id"')]
    records = iter_list_records(path, "results") if has_list else iter_json_records(path)
    for where, trial in records:
        yield RawRun(where=where, read=partial(_read_trial, trial))


def _read_trial(document: object, notes: ImportNotes) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    trial = to_object(document)
    mode, resolved = trial.get("failure_mode"), trial.get("is_resolved")
    if mode not in _ENDINGS and mode is not None:
        notes.skip(f"endings of kind {mode}")
    began = _parse_time(trial.get("agent_started_at"))
    ended = _parse_time(trial.get("agent_ended_at"))
    facts = {
        "scenario": "terminal-bench",
        "task": str(trial["task_id"]),
        "world": "fresh",
        "recorded_at": began,
        "seconds": ended - began if began is not None and ended is not None else None,
        "passed": resolved if isinstance(resolved, bool) else None,
        "ended": _ENDINGS.get(str(mode)),
        "prompt_tokens": trial.get("total_input_tokens"),
        "completion_tokens": trial.get("total_output_tokens"),
        "tokens": _add(trial.get("total_input_tokens"), trial.get("total_output_tokens")),
        "verifier": "Terminal-Bench tests",
    }
    id = trial.get("id") or trial.get("uuid")
    key = [str(id) if id else None, trial["task_id"], trial.get("trial_name")]
    return ImportedConversation(source="terminal-bench", messages=(), facts=facts, key=key)


def _add(one: object, other: object) -> int | None:
    return one + other if isinstance(one, int) and isinstance(other, int) else None


def _parse_time(text: object) -> float | None:
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
