"""Conversations that other tools kept: their steps, calls and results come out with real counts."""

import json
import zipfile
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from traces.importers import openhands, otel, read_format_tables, read_run_tables


def rows(path: Path, relation: str) -> list[dict[str, Any]]:
    found = read_run_tables(path)
    return found[relation].to_pylist() if relation in found else []


def written(path: Path, *documents: object) -> Path:
    path.write_text("\n".join(json.dumps(each) for each in documents))
    return path


def test_openhands_runs_have_the_actions_of_their_files(shared: Path) -> None:
    for path in sorted((shared / "openhands").iterdir()):
        text = path.read_text()
        lines = text.splitlines() if path.suffix == ".jsonl" else [text]
        documents = [json.loads(line) for line in lines]
        runs = [each if isinstance(each, list) else each["history"] for each in documents]
        asked = sum("action" in event and event["action"] != "message" for r in runs for event in r)
        heard = sum("observation" in event for run in runs for event in run)
        calls = rows(path, "tool_calls")
        ends = sum(event.get("action") == "finish" for run in runs for event in run)
        # Old files have no call of `finish`; in new ones it is one.
        assert len(calls) in (asked, asked - ends)
        assert sum(each["result"] is not None for each in calls) == heard
        assert len(rows(path, "trajectories")) == len(runs)


def test_a_resolved_issue_passed(shared: Path) -> None:
    runs = rows(shared / "openhands" / "output.jsonl", "trajectories")
    assert [(run["task"], run["passed"], run["ended"]) for run in runs][0] == (
        "neubig/pr-viewer#5",
        True,
        "final",
    )
    assert runs[0]["cost_usd"] == pytest.approx(0.070713)


def test_parallel_actions_of_one_answer_are_one_step(tmp_path: Path) -> None:
    def event(name: str, id: str, **more: object) -> dict[str, object]:
        answer = {"id": "a1", "model": "m", "choices": [{"message": {"content": "both"}}]}
        told = {"function_name": "bash", "tool_call_id": id, "model_response": answer}
        known = {"source": "agent", "args": {"command": id}, "tool_call_metadata": told}
        return known | {name: "run"} | more

    events = [
        {"source": "user", "action": "message", "args": {"content": "do"}},
        event("action", "c1"),
        event("action", "c2"),
        event("observation", "c2", content="two", extras={"metadata": {"exit_code": 1}}),
        event("observation", "c1", content="one", extras={"metadata": {"exit_code": 0}}),
    ]
    path = written(tmp_path / "events.json", events)
    calls = [
        (c["step"], c["call_id"], c["result"], c["is_error"]) for c in rows(path, "tool_calls")
    ]
    assert calls == [(2, "c1", "one", False), (2, "c2", "two", True)]


def test_inspect_logs_have_the_samples_and_calls_of_their_files(shared: Path) -> None:
    found = Counter[str]()
    for path in sorted((shared / "inspect").iterdir()):
        runs = rows(path, "trajectories")
        found["runs"] += len(runs)
        found["passed"] += sum(run["passed"] is True for run in runs)
        found["calls"] += len(rows(path, "tool_calls"))
        found["results"] += sum(c["result"] is not None for c in rows(path, "tool_calls"))
    assert found == {"runs": 38, "passed": 20, "calls": 9, "results": 9}


def test_usage_of_an_inspect_log_is_what_its_events_say(shared: Path) -> None:
    [path] = (shared / "inspect").glob("*browser*")
    used = rows(path, "usage")
    assert len(used) == 5
    assert all(each["prompt_tokens"] > 0 for each in used)


def archive(path: Path, **members: object) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, value in members.items():
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            packed.writestr(name.replace("__", "/") + ".json", data)
    return path


SAMPLE = {"id": 1, "epoch": 2, "messages": [{"role": "user", "content": "attachment://a"}]}


def test_a_log_that_was_not_finished_has_its_samples(tmp_path: Path) -> None:
    sample = SAMPLE | {"attachments": {"a": "hello"}, "error": {"message": "gone"}}
    start = {"version": 2, "eval": {"task": "t", "model": "m"}}
    path = archive(tmp_path / "a.eval", _journal__start=start, samples__1=sample)
    [run] = rows(path, "trajectories")
    assert (run["scenario"], run["trial"], run["passed"], run["ended"]) == ("t", 2, None, "crash")
    assert [each["message"] for each in rows(path, "steps")] == ["hello"]


def test_a_log_that_was_cut_or_unfolds_too_far_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.eval", _journal__start={}, samples__1=SAMPLE)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="its zip cannot be read"):
        read_run_tables(path)
    bomb = archive(tmp_path / "b.eval", header={}, samples__1=b" " * (65 << 20))
    with pytest.raises(ValueError, match=r"samples/1\.json unpacks to more than 200 times its"):
        read_run_tables(bomb)
    lying = archive(tmp_path / "c.eval", header={}, samples__1=b"[" * 100)
    with pytest.raises(ValueError, match="it is no JSON"):
        read_run_tables(lying)


@pytest.mark.parametrize(
    ("name", "steps", "calls", "agent"),
    [
        ("openinference-anthropic", 3, 3, None),
        ("openinference-openai", 3, 3, None),
        ("openllmetry-anthropic", 3, 3, None),
        ("pydantic-ai", 3, 3, "a"),
    ],
)
def test_spans_of_four_instrumentations_tell_the_same_run(
    shared: Path, name: str, steps: int, calls: int, agent: str | None
) -> None:
    path = shared / "otel" / f"{name}.jsonl"
    [run] = rows(path, "trajectories")
    assert (run["n_steps"], run["agent"]) == (steps, agent)
    found = rows(path, "tool_calls")
    assert len(found) == calls
    assert {each["tool"] for each in found} == {"get_weather"}
    assert all(each["result"] for each in found)
    assert len(rows(path, "usage")) == steps


def typed(value: object) -> dict[str, object]:
    """A value as OTLP says it in JSON."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [typed(each) for each in value]}}
    return {"stringValue": value}


def nanoseconds(when: str) -> str:
    return str(round(datetime.fromisoformat(when).timestamp() * 1e6) * 1000)


def collected(span: dict[str, Any]) -> dict[str, Any]:
    """A span as a collector writes it."""
    found = {
        "traceId": span["context"]["trace_id"].removeprefix("0x"),
        "spanId": span["context"]["span_id"].removeprefix("0x"),
        "name": span["name"],
        "startTimeUnixNano": nanoseconds(span["start_time"]),
        "endTimeUnixNano": nanoseconds(span["end_time"]),
        "attributes": [{"key": key, "value": typed(v)} for key, v in span["attributes"].items()],
        "status": {"code": 2 if span["status"]["status_code"] == "ERROR" else 0},
    }
    return {"resourceSpans": [{"scopeSpans": [{"scope": {}, "spans": [found]}]}]}


@pytest.mark.parametrize("name", ["openinference-openai", "pydantic-ai"])
def test_what_a_collector_wrote_tells_the_same_run(shared: Path, tmp_path: Path, name: str) -> None:
    path = shared / "otel" / f"{name}.jsonl"
    spans = [json.loads(line) for line in path.read_text().splitlines()]
    own = written(tmp_path / "collected.json", *map(collected, spans))
    for relation in ("trajectories", "steps", "tool_calls", "usage"):
        there, here = rows(path, relation), rows(own, relation)
        assert there
        for each in (*there, *here):
            del each["trajectory_id"]
        assert here == there


def test_a_trajectory_of_swe_agent(tmp_path: Path) -> None:
    step = {
        "thought": "look",
        "response": "look\n```ls```",
        "action": "ls\n",
        "observation": "a.py",
    }
    run = {
        "environment": "swe_main",
        "trajectory": [step | {"execution_time": 0.5}, {"response": "done", "action": ""}],
        "history": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [{"type": "text", "text": "fix it"}]},
            {"role": "assistant", "content": "look"},
        ],
        "info": {
            "exit_status": "submitted",
            "model_stats": {"instance_cost": 0.25, "tokens_sent": 10, "tokens_received": 2},
        },
    }
    path = written(tmp_path / "django__django-1.traj", run)
    [found] = rows(path, "trajectories")
    known = [found[name] for name in ("agent", "task", "ended", "cost_usd", "tokens", "seconds")]
    assert known == ["swe-agent", "django__django-1", "final", 0.25, 12, None]
    assert found["n_steps"] == 2
    steps = [(each["source"], each["message"]) for each in rows(path, "steps")]
    assert steps[:2] == [("system", "be good"), ("user", "fix it")]
    [call] = rows(path, "tool_calls")
    assert (call["arguments"], call["result"], call["is_error"]) == (
        '{"command":"ls"}',
        "a.py",
        None,
    )


@pytest.mark.parametrize(
    ("status", "ended"),
    [("submitted (exit_cost)", "budget"), ("exit_format", "crash"), (None, None)],
)
def test_how_a_run_of_swe_agent_ended(tmp_path: Path, status: str, ended: str) -> None:
    run = {"trajectory": [{"observation": ""}], "info": {"exit_status": status}}
    [found] = rows(written(tmp_path / "a.traj", run), "trajectories")
    assert found["ended"] == ended


def test_a_line_that_is_cut_is_named(tmp_path: Path) -> None:
    span = {"history": [{"action": "message"}], "git_patch": "", "instance_id": "a"}
    path = written(tmp_path / "spans.jsonl", span, span)
    path.write_text(path.read_text()[:-9])
    read = read_format_tables(openhands, path)
    assert read.tables["trajectories"].num_rows == 1
    assert [each.where for each in read.remarks if each.lost] == ["line 2"]


def test_an_id_that_is_used_twice_has_two_results(tmp_path: Path) -> None:
    call = {"id": "same", "function": "f", "arguments": {}}
    asked = {"role": "assistant", "content": "", "tool_calls": [call]}
    said = [{"role": "tool", "tool_call_id": "same", "content": text} for text in ("one", "two")]
    sample = {"id": 1, "messages": [asked, said[0], asked, said[1]]}
    path = archive(tmp_path / "a.eval", header={}, samples__1=sample)
    assert [each["result"] for each in rows(path, "tool_calls")] == ["one", "two"]


def chat(trace: str, **more: object) -> dict[str, object]:
    said = [{"role": "user", "parts": [{"type": "text", "content": f"ask {trace}"}]}]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "so"}]}]
    known = {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": f"model-{trace}",
        "gen_ai.input.messages": json.dumps(said),
        "gen_ai.output.messages": json.dumps(answer),
    }
    return {"trace_id": trace, "span_id": f"s{trace}", "name": "chat", "attributes": known} | more


def tool(trace: str, **known: object) -> dict[str, object]:
    name = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    return {"traceId": trace, "spanId": "t", "name": "tool", "attributes": name | known}


@pytest.mark.parametrize("layout", ["lines", "list", "wrapped", "by trace"])
def test_each_trace_of_a_file_is_a_run_whatever_holds_the_spans(
    tmp_path: Path, layout: str
) -> None:
    spans = [chat("a"), chat("b"), chat("c")]
    path = tmp_path / "spans.json"
    match layout:
        case "lines":
            written(path, *spans)
        case "list":
            written(path, spans)
        case "wrapped":
            written(path, {"spans": spans})
        case "by trace":
            written(path, {"data": [{"traceID": "x", "spans": [each]} for each in spans]})
    models = [run["model"] for run in rows(path, "trajectories")]
    assert models == ["model-a", "model-b", "model-c"]


def test_messages_in_an_event_and_calls_that_only_tool_spans_have(tmp_path: Path) -> None:
    span = chat("a")
    known = dict(span["attributes"])  # type: ignore[call-overload]
    held = {key: known.pop(key) for key in ("gen_ai.input.messages", "gen_ai.output.messages")}
    event = {"name": "gen_ai.client.inference.operation.details", "attributes": held}
    call = {"gen_ai.tool.call.arguments": '{"q": 1}', "gen_ai.tool.call.result": "none"}
    broken = tool("a", **call) | {"status": {"code": "STATUS_CODE_ERROR"}}
    path = written(tmp_path / "a.jsonl", span | {"attributes": known, "events": [event]}, broken)
    [found] = rows(path, "tool_calls")
    names = ("step", "tool", "arguments", "result", "is_error")
    assert [found[name] for name in names] == [2, "look", '{"q": 1}', "none", True]


def test_the_attributes_before_the_conventions_and_those_of_the_vercel_sdk(tmp_path: Path) -> None:
    legacy = {
        "llm.request.type": "chat",
        "gen_ai.request.model": "old",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "hi",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "look",
        "gen_ai.completion.0.tool_calls.0.arguments": "{}",
    }
    asked = [{"toolCallId": "c2", "toolName": "look", "input": {"q": 2}}]
    vercel = {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.model.id": "new",
        "ai.prompt.messages": json.dumps([{"role": "user", "content": "hi"}]),
        "ai.response.toolCalls": json.dumps(asked),
    }
    spans = [chat("a", attributes=legacy), chat("b", attributes=vercel)]
    path = written(tmp_path / "a.jsonl", *spans)
    calls = [(each["call_id"], each["tool"]) for each in rows(path, "tool_calls")]
    assert calls == [("c1", "look"), ("c2", "look")]
    assert [run["model"] for run in rows(path, "trajectories")] == ["old", "new"]


def test_spans_without_an_agent_are_refused_and_those_without_content_noted(
    tmp_path: Path,
) -> None:
    bare = chat("a", attributes={"http.method": "GET"})
    with pytest.raises(ValueError, match="none of its 1 traces has a model request"):
        read_run_tables(written(tmp_path / "a.jsonl", bare))
    silent = chat("b", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
    read = read_format_tables(otel, written(tmp_path / "b.jsonl", silent))
    [remark] = read.remarks
    assert "1 model requests without content" in remark.why


def test_a_count_in_a_text_and_half_a_character_stop_nothing(tmp_path: Path) -> None:
    span = chat("a")
    known = dict(span["attributes"]) | {"gen_ai.usage.input_tokens": "12"}  # type: ignore[call-overload]
    path = written(tmp_path / "a.jsonl", span | {"attributes": known})
    text = path.read_text().replace("so", "so \\\\ud83d").replace("ask a", "ask \\\\udc00")
    path.write_text(text + "\n" + json.dumps(chat("b") | {"score": float("nan")}))
    assert [each["prompt_tokens"] for each in rows(path, "usage")] == [12]
    assert len(rows(path, "trajectories")) == 2
