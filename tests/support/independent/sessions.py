"""Counts of sessions that coding agents keep on disk."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.independent.counts import Counts, read_all, read_lines

_CODEX_CALLS = ("function_call", "custom_tool_call", "local_shell_call")


def count_claude(paths: Sequence[Path]) -> Counts:
    """An answer has a line for each of its parts; the last has all of its tokens."""
    found = Counts()
    for path in paths:
        found.runs += 1
        answers, calls = dict[str, Any](), set[str]()
        for line in (line for line in read_lines(path) if isinstance(line, dict)):
            message = line["message"] if isinstance(line.get("message"), dict) else {}
            content = message.get("content")
            blocks = (
                [x for x in content if isinstance(x, dict)] if isinstance(content, list) else []
            )
            if line.get("type") == "assistant":
                answers[message.get("id") or line["uuid"]] = message.get("usage") or {}
                calls |= {each["id"] for each in blocks if each["type"] == "tool_use"}
            elif line.get("type") == "user":
                found.errors += sum(
                    each["type"] == "tool_result" and each.get("is_error") is True
                    for each in blocks
                )
        found.steps += len(answers)
        found.calls += len(calls)
        for usage in answers.values():
            names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
            found.add_tokens(*(usage.get(name) for name in (*names, "output_tokens")))
    return found


def count_codex(paths: Sequence[Path]) -> Counts:
    """A response ends with a count of its tokens; the same count may be written twice."""
    found = Counts(lacks=("errors",))
    for path in paths:
        found.runs += 1
        total: dict[str, int] = {}
        for line in read_lines(path):
            payload = line.get("payload") or {}
            if line["type"] == "response_item":
                found.calls += payload["type"] in _CODEX_CALLS
            elif line["type"] == "event_msg" and payload["type"] == "token_count":
                now = (payload["info"] or {}).get("total_token_usage") or total
                found.steps += now != total
                total = now
        found.add_tokens(total.get("input_tokens"), total.get("output_tokens"))
    return found


def count_aider(paths: Sequence[Path]) -> Counts:
    """A response ends with a line of its tokens."""
    found = Counts(lacks=("calls", "errors"))
    for path in paths:
        text = path.read_text(encoding="utf-8")
        found.runs += len(re.findall(r"^# aider chat started at", text, re.MULTILINE))
        for sent, received in re.findall(
            r"^> Tokens: ([\d.,]+k?) sent.*? ([\d.,]+k?) received", text, re.MULTILINE
        ):
            found.steps += 1
            for count in (sent, received):
                number = float(count.rstrip("k").replace(",", ""))
                found.add_tokens(round(number * (1000 if count.endswith("k") else 1)))
        for cost in re.findall(r"Cost: \$([\d.]+) message", text):
            found.add_cost(float(cost))
    return found


def count_openhands(paths: Sequence[Path]) -> Counts:
    found = Counts()
    for path in paths:
        runs = list(read_lines(path)) if path.suffix == ".jsonl" else list(read_all([path]))
        for run in runs:
            found.runs += 1
            if isinstance(run, dict):
                found.add_cost((run.get("metrics") or {}).get("accumulated_cost"))
            _add_openhands_events(found, run if isinstance(run, list) else run["history"])
    return found


def _add_openhands_events(found: Counts, history: Sequence[Any]) -> None:
    answers = set[str]()
    events = [x for each in history for x in (each if isinstance(each, list) else [each])]
    for number, event in enumerate(events):
        action = event.get("action")
        if action is None or action in ("null", "system", "recall", "change_agent_state"):
            continue
        if action == "message" and (event.get("source", "user" if number == 0 else "") == "user"):
            continue
        called = event.get("tool_call_metadata") or {}
        response = called.get("model_response") or {}
        if response.get("id") not in answers:
            found.steps += 1
            usage = response.get("usage") or {}
            found.add_tokens(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        if response.get("id"):
            answers.add(response["id"])
        found.calls += bool(called) or action not in ("message", "think", "finish")
