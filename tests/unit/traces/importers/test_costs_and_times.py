"""Costs, times and finish reasons that the files of others have, and runs in several files."""

import json
from pathlib import Path
from typing import Any

import pytest

from stumble.imports.import_files import import_recordings
from stumble.llm.prices import compute_token_cost
from traces.importers import atif, find_format, read_format_tables
from traces.importers.run_merge import import_to_store
from traces.store.trace_store import TraceStore

MODEL = "gpt-4o-2024-08-06"
COST = 10 * 2.5e-6 + 4 * 1e-5
"""Of 10 tokens to this model and 4 from it."""


def read(folder: Path, document: object, name: str = "a.json") -> dict[str, list[dict[str, Any]]]:
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    format = find_format(path)
    assert format is not None
    found = read_format_tables(format, path, compute_token_cost)
    return {relation: rows.to_pylist() for relation, rows in found.tables.items()}


def make_part(number: int, steps: list[Any], prompt: int, **others: object) -> dict[str, Any]:
    extra = {"continuation_index": number} if number else {}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "t", "version": "1", "model_name": MODEL, "extra": extra},
        "steps": steps,
        "final_metrics": {"total_prompt_tokens": prompt, "total_completion_tokens": 4},
        **others,
    }


def make_step(text: str, **others: object) -> dict[str, Any]:
    return {"source": "agent", "message": text, **others}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_a_continued_trajectory_is_one_run(tmp_path: Path, order: tuple[int, ...]) -> None:
    folder, store = tmp_path / "logs", TraceStore(tmp_path / ".stumble")
    folder.mkdir()
    names = ("trajectory.json", "trajectory.cont-1.json", "trajectory.cont-2.json")
    copied = make_step("one", is_copied_context=True)
    parts = (
        make_part(0, [make_step("one")], 10, continued_trajectory_ref=names[1]),
        make_part(1, [copied, make_step("two")], 30, continued_trajectory_ref=names[2]),
        make_part(2, [copied, make_step("three")], 60),
    )
    for name, part in zip(names, parts, strict=True):
        (folder / name).write_text(json.dumps(part), encoding="utf-8")
    (folder / "other.json").write_text(json.dumps(make_part(0, [make_step("x")], 1)))
    files = [folder / names[number] for number in order]
    states = [each.state for each in import_recordings(store, [*files, folder / "other.json"])]
    assert states == ["new", "known", "known", "new"]
    query = "select n_steps, prompt_tokens from trajectories order by 1"
    with store.connect() as connection:
        assert connection.execute(query).fetchall() == [(1, 1), (3, 60)]
        first = connection.execute("select message from steps order by 1").fetchall()
    assert first == [("one",), ("three",), ("two",), ("x",)]
    assert atif.find_parts(folder / "other.json") == (folder / "other.json",)


def test_a_later_part_alone_is_a_run_of_what_it_has(tmp_path: Path) -> None:
    part = make_part(1, [make_step("one", is_copied_context=True), make_step("two")], 30)
    [run] = read(tmp_path, part)["trajectories"]
    assert (run["n_steps"], run["prompt_tokens"]) == (2, 30)


def make_request(number: int, **others: object) -> dict[str, Any]:
    metrics = {"prompt_tokens": 10, "completion_tokens": 4, **others}
    return make_step(f"answer {number}", metrics=metrics)


def test_a_cost_is_reported_or_of_list_prices_or_unknown(tmp_path: Path) -> None:
    def cost_of(*steps: dict[str, Any]) -> tuple[float | None, str | None, list[float | None]]:
        rows = read(tmp_path, make_part(0, list(steps), 20))
        [run] = rows["trajectories"]
        return run["cost_usd"], run["cost_source"], [row["cost_usd"] for row in rows["usage"]]

    assert cost_of(make_request(1), make_request(2)) == (2 * COST, "list_price", [COST, COST])
    reported = [make_request(n, cost_usd=0.5) for n in range(2)]
    assert cost_of(*reported) == (1.0, "reported", [COST, COST])
    assert cost_of(make_request(1), make_step("no tokens")) == (None, None, [COST])
    assert cost_of({**make_request(1), "model_name": "nobody/knows"}) == (None, None, [None])


def test_a_reported_cost_stays_though_another_file_has_none(tmp_path: Path) -> None:
    store, path = TraceStore(tmp_path / ".stumble"), tmp_path / "a.json"
    for more in ({"cost_usd": 0.5}, {}):
        path.write_text(json.dumps(make_part(0, [make_request(1, **more)], 10)))
        format = find_format(path)
        assert format is not None
        import_to_store(store, path, read_format_tables(format, path, compute_token_cost))
    with store.connect() as connection:
        query = "select cost_usd, cost_source from trajectories"
        assert connection.execute(query).fetchall() == [(0.5, "reported")]


def make_tau_message(role: str, at: str, **others: object) -> dict[str, Any]:
    return {"role": role, "content": "x", "timestamp": f"2026-05-31T11:41:{at}", **others}


def test_tau2_has_times_and_finish_reasons(tmp_path: Path) -> None:
    calls = [{"id": "c", "name": "f", "arguments": {}}, {"id": "d", "name": "g", "arguments": {}}]
    raw = {"created": 1780252871, "choices": [{"finish_reason": "tool_calls"}]}
    messages = [
        make_tau_message("assistant", "11.0", tool_calls=calls, raw_data=raw),
        make_tau_message("tool", "11.5", id="c", requestor="assistant", error=False),
        make_tau_message("tool", "13.5", id="d", requestor="assistant", error=False),
        make_tau_message("assistant", "14.0", raw_data={"finish_reason": "stop"}),
    ]
    run = {"id": "r", "task_id": "1", "messages": messages, "start_time": "2026-05-31T11:41:10"}
    info = {"num_trials": 1, "user_info": {}, "agent_info": {"llm": MODEL}}
    rows = read(tmp_path, {"info": info, "tasks": [], "simulations": [run]})
    assert [row["duration"] for row in rows["tool_calls"]] == [0.5, 2.0]
    assert [row["finish_reason"] for row in rows["steps"]] == ["tool_calls", "stop"]
    [found] = rows["trajectories"]
    assert found["recorded_at"].isoformat() == "2026-05-31T18:41:10", "7 hours behind UTC"


def test_openhands_swe_agent_and_mini_swe_agent_have_durations(tmp_path: Path) -> None:
    events = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "x"},
         "timestamp": "2026-01-01T10:00:00"},
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"},
         "timestamp": "2026-01-01T10:00:01"},
        {"id": 2, "source": "agent", "observation": "run", "cause": 1, "content": "a",
         "timestamp": "2026-01-01T10:00:03.5"},
    ]  # fmt: skip
    [call] = read(tmp_path, events)["tool_calls"]
    assert call["duration"] == 2.5
    step = {"action": "ls", "observation": "a", "response": "r", "execution_time": 0.25}
    trajectory = {"environment": "e", "trajectory": [step], "history": [], "info": {}}
    [call] = read(tmp_path, trajectory, "a.traj")["tool_calls"]
    assert call["duration"] == 0.25
    asked = {"id": "c", "function": {"name": "bash", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "y", "tool_calls": [asked], "extra": {"timestamp": 5.0}},
        {"role": "tool", "content": "z", "tool_call_id": "c", "extra": {"timestamp": 6.5}},
    ]
    document = {
        "trajectory_format": "mini-swe-agent-1.1",
        "info": {"mini_version": "2"},
        "messages": messages,
    }
    [call] = read(tmp_path, document, "b.traj.json")["tool_calls"]
    assert call["duration"] == 1.5


@pytest.mark.parametrize(
    "output",
    [
        {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "a"}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "a"}], "stop_reason": "stop"},
        {"generations": [[{"text": "a", "generation_info": {"finish_reason": "stop"}, "message": {
            "lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"],
            "kwargs": {"content": "a"}}}]]},
        {"candidates": [{"finishReason": "stop", "content": {"role": "model", "parts": [
            {"text": "a"}]}}]},
    ],
    ids=["openai", "anthropic", "langchain", "gemini"],
)  # fmt: skip
def test_values_of_spans_have_finish_reasons(tmp_path: Path, output: object) -> None:
    span = {
        "name": "x",
        "trace_id": "1" * 32,
        "span_id": "2" * 16,
        "start_time": "2026-11-01T10:00:00Z",
        "attributes": {
            "openinference.span.kind": "LLM",
            "input.value": "hi",
            "output.value": json.dumps(output),
        },
    }
    steps = read(tmp_path, [span])["steps"]
    assert [(row["source"], row["message"], row["finish_reason"]) for row in steps] == [
        ("user", "hi", None),
        ("agent", "a", "stop"),
    ]
