"""Traces of Langfuse, LangSmith and MLflow, and results of Terminal-Bench.

`tests/data/observed` has what the SDKs of LangSmith 0.15.1 (LangChain 1.8.3, openai 3.57.0) and
MLflow 3.17.2 wrote of small agents that ask for Rome and for a city that does not exist.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traces.importers import ImportedTables, find_format, read_format_tables
from traces.importers.run_merge import import_to_store
from traces.store.trace_store import TraceStore

OBSERVED = Path(__file__).parents[3] / "data" / "observed"
CALL = {"call_id": "c1", "name": "weather", "arguments": '{"city":"Rome"}', "type": "function_call"}


def trace(id: str = "t1") -> dict[str, Any]:
    """A trace as Langfuse's API gives it: an agent on OpenAI's responses."""
    ids = {"traceId": id, "metadata": "{}", "level": "DEFAULT"}
    usage = {"input": 10, "output": 5, "input_cached_tokens": 4}
    started = [f"2025-09-30T09:04:0{n}.000Z" for n in range(4)]
    return {
        "id": id, "name": "Agent workflow", "timestamp": started[0], "bookmarked": False,
        "input": None, "output": None, "sessionId": "s", "totalCost": 0.5,
        "scores": [{"name": "toxicity", "value": 0}],
        "observations": [
            {**ids, "id": f"{id}-3", "type": "GENERATION", "name": "response", "model": "gpt-9",
             "startTime": started[3], "parentObservationId": f"{id}-0", "usageDetails": usage,
             "input": json.dumps([{"role": "user", "content": "Rome?"}, CALL,
                                  {"type": "function_call_output", "call_id": "c1",
                                   "output": "none"}]),
             "output": json.dumps({"output": [{"type": "message", "role": "assistant",
                                               "content": [{"text": "so"}]}]}), "totalCost": 0.2},
            {**ids, "id": f"{id}-2", "type": "TOOL", "name": "weather", "startTime": started[2],
             "parentObservationId": f"{id}-0", "input": '{"city":"Rome"}', "output": "none",
             "level": "ERROR"},
            {**ids, "id": f"{id}-1", "type": "GENERATION", "name": "response", "model": "gpt-9",
             "startTime": started[1], "parentObservationId": f"{id}-0", "usageDetails": usage,
             "input": json.dumps([{"role": "user", "content": "Rome?"}]),
             "output": json.dumps({"instructions": "be kind", "output": [CALL]}),
             "totalCost": 0.3},
            {**ids, "id": f"{id}-0", "type": "AGENT", "name": "agent", "startTime": started[0]},
        ],
    }  # fmt: skip


def trial(id: str = "u1", **known: object) -> dict[str, Any]:
    """A trial as Terminal-Bench writes it."""
    return {
        "id": id, "trial_name": "maze.1-of-5", "task_id": "maze", "instruction": "map it",
        "is_resolved": True, "failure_mode": "agent_timeout", "parser_results": {"t": "passed"},
        "total_input_tokens": 7, "total_output_tokens": 2, **known,
    }  # fmt: skip


def read(path: Path) -> ImportedTables:
    format = find_format(path)
    assert format is not None
    return read_format_tables(format, path)


def counts(found: ImportedTables) -> dict[str, object]:
    runs = found.tables["trajectories"].to_pylist()
    calls = found.tables["tool_calls"].to_pylist()
    return {
        "runs": len(runs),
        "steps": [run["n_steps"] for run in runs],
        "models": {run["model"] for run in runs},
        "ended": {run["ended"] for run in runs},
        "tokens": [(run["prompt_tokens"], run["completion_tokens"]) for run in runs],
        "calls": [(call["tool"], call["is_error"]) for call in calls],
        "without result": sum(call["result"] is None for call in calls),
    }


def test_a_trace_of_langfuse_is_a_run_with_its_calls_tokens_and_cost(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(trace()))
    found = read(path)
    assert counts(found) == {
        "runs": 1,
        "steps": [2],
        "models": {"gpt-9"},
        "ended": {None},
        "tokens": [(20, 10)],
        "calls": [("weather", True)],
        "without result": 0,
    }
    assert found.tables["trajectories"].to_pylist()[0]["cost_usd"] == 0.5
    assert [each.why for each in found.remarks] == ["1 scores named toxicity, which no column has"]


def as_export(table: dict[str, Any]) -> dict[str, Any]:
    """An observation as Langfuse writes it to a bucket: names in snake case."""
    names = {
        "traceId": "trace_id", "startTime": "start_time", "usageDetails": "usage_details",
        "parentObservationId": "parent_observation_id", "totalCost": "total_cost",
        "model": "provided_model_name",
    }  # fmt: skip
    return {names.get(name, name): value for name, value in table.items()}


@pytest.mark.parametrize(
    "layout",
    [
        lambda t: json.dumps({"trace": {**t, "observations": None}, "observations": observed(t)}),
        lambda t: json.dumps({"data": observed(t), "meta": {"page": 1}}),
        lambda t: json.dumps([t]),
        lambda t: "\n".join(json.dumps(each) for each in observed(t)),
        lambda t: "\n".join(json.dumps(as_export(each)) for each in observed(t)),
    ],
    ids=["ui", "api", "list", "lines", "bucket"],
)
def test_every_layout_of_langfuse_is_the_same_run(
    tmp_path: Path, layout: Callable[[dict[str, Any]], str]
) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(trace()))
    id = read(path).tables["trajectories"]["trajectory_id"].to_pylist()
    path.write_text(layout(trace()))
    again = read(path).tables["trajectories"].to_pylist()
    assert ([run["trajectory_id"] for run in again], again[0]["n_steps"]) == (id, 2)


def observed(table: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table["observations"]
    return found


def test_a_trace_without_observations_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{**trace(), "observations": []}]))
    with pytest.raises(ValueError, match="it has no observations: export them too"):
        read(path)


def test_runs_of_langsmith_are_the_calls_that_its_agents_made() -> None:
    found = counts(read(OBSERVED / "langsmith.jsonl"))
    assert found == {
        "runs": 2,
        "steps": [3, 3],
        "models": {"gpt-4o-mini-2024-07-18"},
        "ended": {"final"},
        "tokens": [(33, 9), (33, 9)],
        "calls": [("lookup", False), ("lookup", True), ("lookup", False), ("lookup", False)],
        "without result": 0,
    }


def test_what_an_sdk_of_langsmith_posts_is_a_run_with_what_it_is_completed_with(
    tmp_path: Path,
) -> None:
    """As the SDK for JavaScript posts it: the second part has no id and no type of its own."""
    id, parent = "33c08c32", "01a2"
    order = f"20241013T070535809001Z{parent}.20241013T070535809002Z{id}"
    ids = {"trace_id": parent, "dotted_order": order}
    asked = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "howdy"}]}
    usage = {"input_tokens": 9, "output_tokens": 8, "total_tokens": 17}
    said = {"index": 0, "message": {"role": "assistant", "content": "Howdy!"}}
    started = {"id": id, "parent_run_id": parent, "run_type": "llm", "start_time": 1728803135809}
    completed = {
        "end_time": 1728803136663,
        "outputs": {"model": "gpt-4o-mini-2024", "choices": [said], "usage_metadata": usage},
    }
    path = tmp_path / "posted.json"
    path.write_text(
        json.dumps({"post": [{**started, **ids, "inputs": asked}], "patch": [{**completed, **ids}]})
    )
    found = counts(read(path))
    assert (found["runs"], found["steps"], found["models"]) == (1, [1], {"gpt-4o-mini-2024"})
    assert found["tokens"] == [(9, 8)]


def find_tokens_of_langsmith(run: dict[str, Any]) -> tuple[int, int]:
    """Count the tokens of a request, which LangChain has in its message, and OpenAI beside it."""
    outputs = run["outputs"]
    message = outputs["generations"][0][0]["message"] if "generations" in outputs else outputs
    usage = message.get("kwargs", message)["usage_metadata"]
    return usage["input_tokens"], usage["output_tokens"]


def parse_langsmith(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    models = [row for row in rows if row["run_type"] == "llm"]
    tools = [row for row in rows if row["run_type"] == "tool"]
    tokens = [find_tokens_of_langsmith(row) for row in models]
    return [
        {"run": row["trace_id"], "tokens": each} for row, each in zip(models, tokens, strict=True)
    ] + [{"run": row["trace_id"], "failed": bool(row["error"])} for row in tools]


def parse_mlflow(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for row in rows:
        for span in row["data"]["spans"]:
            known = {name: json.loads(value) for name, value in span["attributes"].items()}
            run: dict[str, Any] = {"run": row["info"]["trace_id"]}
            if known["mlflow.spanType"] == "CHAT_MODEL":
                usage = known["mlflow.chat.tokenUsage"]
                found.append(run | {"tokens": (usage["input_tokens"], usage["output_tokens"])})
            elif known["mlflow.spanType"] == "TOOL":
                found.append(run | {"failed": span["status"]["code"] == "STATUS_CODE_ERROR"})
    return found


@pytest.mark.parametrize(
    ("name", "parse"),
    [("langsmith.jsonl", parse_langsmith), ("mlflow.jsonl", parse_mlflow)],
    ids=["langsmith", "mlflow"],
)
def test_counts_are_those_of_a_plain_parse_of_the_spans(
    name: str, parse: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
) -> None:
    spans = parse([json.loads(line) for line in (OBSERVED / name).read_text().splitlines()])
    found = read(OBSERVED / name)
    runs = found.tables["trajectories"].to_pylist()
    calls = found.tables["tool_calls"].to_pylist()
    requests = [span["tokens"] for span in spans if "tokens" in span]
    assert len(runs) == len({span["run"] for span in spans})
    assert found.tables["usage"].num_rows == sum(run["n_steps"] for run in runs) == len(requests)
    assert len(calls) == sum("failed" in span for span in spans)
    assert sum(call["is_error"] is True for call in calls) == sum(
        span.get("failed", False) for span in spans
    )
    assert sum(run["prompt_tokens"] for run in runs) == sum(sent for sent, _ in requests)
    assert sum(run["completion_tokens"] for run in runs) == sum(got for _, got in requests)


def test_a_root_of_langsmith_without_children_is_refused_by_name(tmp_path: Path) -> None:
    lines = (OBSERVED / "langsmith.jsonl").read_text().splitlines()
    path = tmp_path / "roots.jsonl"
    path.write_text(lines[0])
    with pytest.raises(ValueError, match="none of its 1 runs is of type llm or tool"):
        read(path)


def test_a_trace_of_mlflow_is_a_run(tmp_path: Path) -> None:
    found = counts(read(OBSERVED / "mlflow.jsonl"))
    assert found == {
        "runs": 2,
        "steps": [3, 3],
        "models": {"gpt-4o-mini-2024-07-18"},
        "ended": {"final"},
        "tokens": [(30, 9), (30, 9)],
        "calls": [("lookup", False), ("lookup", True)] * 2,
        "without result": 0,
    }


def test_a_trial_of_terminal_bench_has_its_verdict_and_no_step(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"results": [trial(), trial("u2", failure_mode="unset")]}))
    found = read(path)
    runs = found.tables["trajectories"].to_pylist()
    assert [(run["passed"], run["ended"], run["tokens"], run["n_steps"]) for run in runs] == [
        (True, "budget", 9, 0),
        (True, None, 9, 0),
    ]
    assert {each.why for each in found.remarks} == {"it has no message, so its run has no step"}
    path.write_text(json.dumps(trial()))
    same = read(path).tables["trajectories"].to_pylist()
    assert same == runs[:1]


def test_demonstrations_of_people_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text(json.dumps([{"annotation_id": "a", "confirmed_task": "book", "actions": []}]))
    with pytest.raises(ValueError, match="actions of people in Mind2Web"):
        read(path)


def lines_of(name: str) -> list[Any]:
    return [json.loads(line) for line in (OBSERVED / name).read_text().splitlines()]


@pytest.mark.gate
@pytest.mark.parametrize(
    ("parts", "prefix"),
    [
        ([trace("t1"), trace("t2")], 1),
        (lines_of("langsmith.jsonl"), 6),
        (lines_of("mlflow.jsonl"), 1),
        ([trial("u1"), trial("u2")], 1),
    ],
    ids=["langfuse", "langsmith", "mlflow", "terminal-bench"],
)
def test_five_disguises_of_a_file_are_its_runs_once(
    tmp_path: Path, parts: list[Any], prefix: int
) -> None:
    store = TraceStore(tmp_path / ".stumble")
    is_trial = "failure_mode" in parts[0]

    def write(name: str, some: list[Any], **how: int) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps({"results": some} if is_trial else some, **how))  # type: ignore[arg-type]
        return path

    first = write("a.json", parts[:prefix])
    import_to_store(store, first)
    grown = import_to_store(store, write("grown.json", parts))
    assert (len(grown.new), len(grown.known)) == (1, 1)
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress((tmp_path / "grown.json").read_bytes()))
    disguises = (packed, first, write("indented", parts, indent=3), write("renamed", parts))
    assert [import_to_store(store, each).is_known for each in disguises] == [True] * 4
    with store.connect() as sql:
        ids = [id for (id,) in sql.sql("SELECT trajectory_id FROM trajectories").fetchall()]
    assert len(ids) == len(set(ids)) == 2
