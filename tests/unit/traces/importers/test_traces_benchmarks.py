"""Results of tau2-bench, AgentDojo and Who&When, and Harbor's trajectories, in small.

What these importers make of real files is in docs/formats.md, beside an independent parse of each.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from traces.exporters import atif as exporter
from traces.exporters.run_model import ExportedCall, ExportedRun, ExportedStep
from traces.importers import ImportedTables, find_format, read_format_tables

TAU2: dict[str, Any] = {
    "timestamp": "2025-09-29T01:38:24",
    "info": {
        "num_trials": 1,
        "user_info": {"llm": "user-model"},
        "agent_info": {"implementation": "llm_agent", "llm": "gemini/gemini-2.5-flash"},
        "environment_info": {"domain_name": "airline", "policy": 'a "policy" with {braces'},
    },
    "tasks": [{"id": "0", "simulations": []}],
    "simulations": [
        {
            "id": "s1", "task_id": "0", "trial": 0, "duration": 2.5, "agent_cost": 0.25,
            "termination_reason": "user_stop", "reward_info": {"reward": 1.0},
            "messages": [
                {"role": "assistant", "content": "Hi!", "usage": None, "cost": 0.0},
                {"role": "user", "content": "x", "usage": {"prompt_tokens": 9}, "cost": 3.0,
                 "tool_calls": [{"id": "u", "name": "reboot", "requestor": "user"}]},
                {"role": "tool", "id": "u", "content": "done", "requestor": "user"},
                {"role": "assistant", "content": None, "cost": 0.25,
                 "usage": {"prompt_tokens": 5, "completion_tokens": 2},
                 "tool_calls": [{"id": "c", "name": "cancel", "arguments": {"n": 1}}]},
                {"role": "tool", "id": "c", "content": "no", "error": True,
                 "requestor": "assistant"},
                {"role": "critic", "content": "?"},
            ],
        },
        {"id": "s2", "task_id": "0", "termination_reason": "max_steps", "messages": "none"},
    ],
}  # fmt: skip
ATIF: dict[str, Any] = {
    "schema_version": "ATIF-v1.6",
    "session_id": "s",
    "agent": {"name": "terminus", "version": "2", "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "go", "timestamp": "2025-01-01T00:00:00Z"},
        {"step_id": 2, "source": "agent", "message": "", "timestamp": "2025-01-01T00:00:02Z",
         "tool_calls": [{"function_name": "ls", "arguments": {}},
                        {"tool_call_id": "b", "function_name": "cat", "arguments": {"f": 1}}],
         "observation": {"results": [{"content": "of no call"},
                                     {"source_call_id": "b", "content": [{"text": "42"}]}]},
         "metrics": {"prompt_tokens": 3, "completion_tokens": 1, "cost_usd": 0.5}},
        {"step_id": 3, "source": "narrator", "message": "?"},
    ],
    "final_metrics": {"total_cost_usd": 0.5},
}  # fmt: skip
DOJO: dict[str, Any] = {
    "suite_name": "banking", "pipeline_name": "gpt-x", "user_task_id": "user_task_1",
    "injection_task_id": "injection_task_2", "attack_type": "direct", "utility": False,
    "security": True, "error": None, "duration": 1.5,
    "messages": [
        {"role": "system", "content": [{"type": "text", "content": "rules"}]},
        {"role": "user", "content": "pay"},
        {"role": "assistant", "content": None,
         "tool_calls": [{"function": "read", "args": {"f": "a"}, "id": None},
                        {"function": "send", "args": {}, "id": "s"}]},
        {"role": "tool", "content": "text", "tool_call_id": None, "error": None},
        {"role": "tool", "content": "", "tool_call_id": "s", "error": "ValueError: no"},
        {"role": "assistant", "content": "done", "tool_calls": None},
    ],
}  # fmt: skip
MISTAKE: dict[str, Any] = {
    "question_ID": "q1", "mistake_step": "1", "mistake_agent": "WebSurfer",
    "history": [{"role": "human", "content": "task"},
                {"role": "WebSurfer", "content": "a"}, {"role": "Orchestrator", "content": "b"}],
}  # fmt: skip


def read(folder: Path, document: object) -> ImportedTables:
    path = folder / "results.json"
    path.write_text(json.dumps(document))
    format = find_format(path)
    assert format is not None
    return read_format_tables(format, path)


def run_of(read: ImportedTables) -> dict[str, Any]:
    [run] = read.tables["trajectories"].to_pylist()
    return dict(run)


def calls_of(read: ImportedTables) -> list[tuple[object, ...]]:
    names = ("tool", "arguments", "result", "is_error")
    return [tuple(row[name] for name in names) for row in read.tables["tool_calls"].to_pylist()]


def notes_of(read: ImportedTables) -> set[str]:
    return {remark.why for remark in read.remarks}


def test_tau2_has_the_agents_model_cost_and_calls_without_those_of_the_simulated_user(
    tmp_path: Path,
) -> None:
    found = read(tmp_path, TAU2)
    run = run_of(found)
    assert (run["model"], run["model_family"]) == ("gemini/gemini-2.5-flash", "gemini-2-5-flash")
    assert (run["scenario"], run["task"], run["passed"], run["ended"]) == (
        "tau2-airline", "0", True, "final",
    )  # fmt: skip
    assert (run["n_steps"], run["tokens"], run["cost_usd"], run["seconds"]) == (2, 7, 0.25, 2.5)
    assert calls_of(found) == [("cancel", '{"n":1}', "no", True)]
    assert notes_of(found) == {
        "it has no list of messages",
        "1 tool calls of the simulated user",
        "1 results of tools that the simulated user called",
        "1 messages of role critic",
    }


def test_harbors_trajectories_have_calls_results_and_costs(tmp_path: Path) -> None:
    found = read(tmp_path, ATIF)
    run = run_of(found)
    assert (run["agent"], run["model"], run["n_steps"], run["seconds"]) == ("terminus", "m", 1, 2.0)
    assert (run["prompt_tokens"], run["completion_tokens"], run["cost_usd"]) == (3, 1, 0.5)
    assert calls_of(found) == [("ls", "{}", None, None), ("cat", '{"f":1}', "42", None)]
    assert notes_of(found) == {"1 observations of no call", "1 steps of source narrator"}


def test_our_own_trajectories_keep_their_id_and_outcome(tmp_path: Path) -> None:
    call = ExportedCall(id="c", tool="f", arguments="{}", result="r", is_error=True)
    step = ExportedStep(source="agent", message="x", model="m", calls=(call,))
    facts = {"task": "7", "passed": False, "ended": "final"}
    run = ExportedRun(id="tau-00ff", steps=(step,), model="m", facts=facts)
    found = read(tmp_path, exporter.to_atif_document(run))
    row = run_of(found)
    assert found.restored == {"tau-00ff"}
    assert (row["trajectory_id"], row["task"], row["passed"]) == ("tau-00ff", "7", False)
    assert calls_of(found) == [("f", "{}", "r", True)]


def test_agentdojo_has_utility_as_its_verdict_and_says_what_of_security_it_left(
    tmp_path: Path,
) -> None:
    found = read(tmp_path, DOJO)
    run = run_of(found)
    assert (run["scenario"], run["task"]) == (
        "agentdojo-banking-direct",
        "user_task_1+injection_task_2",
    )
    assert (run["model"], run["passed"], run["n_steps"]) == ("gpt-x", False, 2)
    assert calls_of(found) == [
        ("read", '{"f":"a"}', "text", False),
        ("send", "{}", "ValueError: no", True),
    ]
    assert notes_of(found) == {"1 verdicts on security that are true"}


def test_a_run_of_who_and_when_is_a_failure_with_a_step_for_each_turn(tmp_path: Path) -> None:
    found = read(tmp_path, MISTAKE)
    run = run_of(found)
    assert (run["task"], run["passed"], run["n_steps"]) == ("q1", False, 2)
    assert notes_of(found) == {"1 dates of the decisive mistake, which no column has"}


@pytest.mark.parametrize(
    "document", [TAU2, ATIF, DOJO, MISTAKE], ids=["tau2", "atif", "dojo", "ww"]
)
def test_another_layout_of_a_file_has_the_same_runs(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    first = read(tmp_path, document).tables
    path = tmp_path / "renamed.txt"
    path.write_text(json.dumps(document, indent=3))
    format = find_format(path)
    assert format is not None
    assert read_format_tables(format, path).tables == first
