"""Import tau-bench runs: a JSON list of conversations with tool results and a final reward.

One step is one message of the system, the user or the agent; every tool call is alone in its
message, as the benchmark runs them. Its environment catches any exception of a tool and returns it
as text, so a call failed if and only if its result begins with `Error`. A run is over when the
simulated user ends it or is transferred to a human; any other end is its cap of 30 steps. A run
that raised has an empty `traj` and reward 0.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from traces.importers.shared.conversation import (
    ConversationCall,
    ConversationMessage,
    ImportedConversation,
    iter_openai_calls,
)
from traces.importers.shared.file_reader import decode_file_name, read_file_head
from traces.importers.shared.json_values import join_text_parts, require_objects, to_object
from traces.importers.shared.jsonl import iter_list_records
from traces.importers.shared.run_reader import ImportNotes, RawRun

HINTS = frozenset({"model", "model_family", "scenario"})
NAME = "tau-bench runs (a JSON list of objects with task_id, reward, traj, trial)"
SPLITS = frozenset(("list",))
"""What of a file are runs of their own: its lines, or the elements of its list."""

type Table = dict[str, object]

_NAMED = re.compile(r"(?P<model>.+)-(?P<domain>airline|retail)\.json")
_WRITTEN = re.compile(r"(tool-calling|act|react|few-shot)-(?P<model>.+)-\d\.\d+_range_")
"""The names that the benchmark's own runner gives, which lack the domain."""
_READERS = ("get_", "search_", "find_", "list_", "calculate", "think")
"""Name prefixes of the tools that change nothing."""
_DOMAIN_TOOLS = {"airline": "reservation", "retail": "order"}
"""A word in the names of tools that only one domain has."""


def can_import(path: Path) -> bool:
    """Whether a file, gzipped or not, begins like a list of runs."""
    start = read_file_head(path)
    return start.lstrip()[:1] == b"[" and all(
        re.search(rb'"%s"\s*:' % key, start) for key in (b"task_id", b"reward")
    )


def read_runs(path: Path) -> Iterator[RawRun]:
    """Yield the runs; the model is known by the file name only."""
    name = decode_file_name(path)
    match = _NAMED.match(name) or _WRITTEN.match(name)
    model = match["model"] if match else None
    domain = match.groupdict().get("domain") if match else None
    for where, run in iter_list_records(path, None):
        yield RawRun(where=where, read=partial(_read_run, run, model, domain))


def _read_run(
    document: object, model: str | None, domain: str | None, notes: ImportNotes
) -> ImportedConversation:
    if isinstance(document, ValueError):
        raise document
    run = to_object(document)
    reward, info = run.get("reward"), to_object(run.get("info"))
    messages = require_objects(run.get("traj"), "messages")
    read = tuple(_read_messages(messages, model, notes))
    domain = _find_domain(read) or domain
    error = info.get("error")
    facts = {
        "agent": "tau-bench",
        "model": model,
        "scenario": f"tau-{domain}" if domain else "tau",
        "task": str(run["task_id"]),
        "trial": run.get("trial"),
        "world": "fresh",
        "passed": reward >= 1 if isinstance(reward, int | float) else None,
        "reward": reward,
        "ended": _read_ending(messages),
        "verifier": "tau-bench reward",
    }
    key = [run["task_id"], run.get("trial"), error if not read else None]
    return ImportedConversation(source="tau", messages=read, facts=facts, key=key)


def _find_domain(messages: tuple[ConversationMessage, ...]) -> str | None:
    """Return the domain that the policy in the system message names, or that the tools are of."""
    policy = " ".join(each.text for each in messages[:1] if each.role == "system").lower()
    tools = [call.tool for each in messages for call in each.calls]
    for domain, word in _DOMAIN_TOOLS.items():
        if f"{domain} agent" in policy or any(word in tool for tool in tools):
            return domain
    return None


def _read_messages(
    messages: list[Table], model: str | None, notes: ImportNotes
) -> Iterator[ConversationMessage]:
    for each in messages:
        role, text = str(each.get("role")), join_text_parts(each.get("content"))
        if role == "tool":
            call_id, failed = str(each.get("tool_call_id")), text.startswith("Error")
            yield ConversationMessage(role=role, text=text, call_id=call_id, is_error=failed)
        elif role in ("system", "user", "assistant"):
            calls = tuple(_with_access(each) for each in iter_openai_calls(each.get("tool_calls")))
            spoken_by = model if role == "assistant" else None
            yield ConversationMessage(role=role, text=text, model=spoken_by, calls=calls)
        else:
            notes.skip(f"messages of role {role}")


def _with_access(call: ConversationCall) -> ConversationCall:
    reads = call.tool.startswith(_READERS)
    return ConversationCall(id=call.id, tool=call.tool, arguments=call.arguments, read_only=reads)


def _read_ending(messages: list[Table]) -> str:
    if not messages:
        return "crash"
    last = messages[-1]
    is_over = "###STOP###" in join_text_parts(last.get("content"))
    is_over = is_over or last.get("name") == "transfer_to_human_agents"
    return "final" if is_over else "budget"
