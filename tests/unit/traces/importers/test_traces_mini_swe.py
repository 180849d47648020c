"""mini-swe-agent runs come in with the counts of their source, and odd ones with the reason."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    one,
)
from traces.importers import mini_swe_agent, read_format_tables, read_run_tables
from traces.importers.run_merge import import_to_store
from traces.store.trace_store import TraceStore

pytestmark = pytest.mark.gate

NAN = float("nan")
ASK = {"role": "user", "content": "fix it"}


def says(text: str, **more: object) -> dict[str, object]:
    return {"role": "assistant", "content": f"THOUGHT: so.\n\n{text}"} | more


def runs(command: str) -> dict[str, object]:
    return says(f"```bash\n{command}\n```")


def heard(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def line(*said: dict[str, object], **more: object) -> dict[str, object]:
    usual = {"instance_id": "a__b-1", "resolved": True, "exit_status": "Submitted", "cost": 0.5}
    return usual | {"messages": [ASK, *said]} | more


@pytest.fixture
def store(tmp_path: Path) -> TraceStore:
    return TraceStore(tmp_path / ".stumble")


@pytest.fixture(scope="module")
def real(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sql]:
    """A store of all runs on SWE-bench."""
    store = TraceStore(tmp_path_factory.mktemp("coding") / ".stumble")
    import_to_store(store, shared / "coding" / "mini_swe_gemini3pro_500.jsonl.gz")
    with store.connect() as connection:
        yield connection


def test_the_counts_of_the_source_come_out(real: Sql) -> None:
    assert one(
        real,
        """SELECT count(*) AS runs, count(*) FILTER (passed) AS resolved, sum(n_steps) AS steps,
        min(n_steps) AS fewest, max(n_steps) AS most FROM trajectories""",
    ) == {"runs": 500, "resolved": 371, "steps": 20163, "fewest": 13, "most": 145}
    assert one(
        real,
        r"""SELECT count(*) AS returned, count(*) FILTER (is_error) AS failed FROM tool_calls
        WHERE regexp_matches(result, '^\s*<returncode>')""",
    ) == {"returned": 18953, "failed": 1438}


def test_a_command_that_ran_out_of_time_failed(real: Sql) -> None:
    timed_out = """SELECT DISTINCT is_error FROM tool_calls
        WHERE starts_with(result, 'The last command') AND contains(result, 'timed out')"""
    assert one(real, timed_out) == {"is_error": True}


def test_what_the_provider_charged_is_kept_and_is_unknown_where_it_did_not_say(real: Sql) -> None:
    spent = """SELECT count(*) FILTER (abs(t.cost_usd - u.cost) < 1e-9) AS same,
        count(*) FILTER (u.cost IS NULL) AS unsaid FROM trajectories AS t
        JOIN (SELECT trajectory_id, sum(cost_reported_usd) AS cost FROM usage GROUP BY 1) AS u
        USING (trajectory_id)"""
    assert one(real, spent) == {"same": 484, "unsaid": 16}


def test_a_trajectory_file_knows_its_model_and_not_whether_it_was_resolved(
    store: TraceStore, shared: Path
) -> None:
    import_to_store(store, shared / "coding" / "django__django-16560.traj.json.gz")
    with store.connect() as sql:
        assert one(sql, "SELECT model, task, n_steps, passed, ended FROM trajectories") == {
            "model": "google/gemini-3-pro-preview",
            "task": "django__django-16560",
            "n_steps": 145,
            "passed": None,
            "ended": "final",
        }


def test_an_answer_without_exactly_one_block_is_no_call(store: TraceStore, tmp_path: Path) -> None:
    both = says("```bash\nls\n```\n```bash\npwd\n```")
    refused = heard("Please always provide EXACTLY ONE action")
    said = (both, refused, runs("ls"), heard("<returncode>2</returncode>\n"), runs("submit"))
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(line(*said)) + "\n\n" + json.dumps(line(resolved=False)) + "\n")
    import_to_store(store, path)
    with store.connect() as sql:
        calls = answers(sql, "SELECT step, arguments, is_error, result FROM tool_calls")
        steps = answers(sql, "SELECT step, source FROM steps WHERE step > 1 ORDER BY step")
    assert calls == [
        {
            "step": 4,
            "arguments": '{"command":"ls"}',
            "is_error": True,
            "result": "<returncode>2</returncode>\n",
        },
        {"step": 5, "arguments": '{"command":"submit"}', "is_error": None, "result": None},
    ]
    assert [each["source"] for each in steps] == ["agent", "user", "agent", "agent"]


def test_a_status_that_is_no_end_is_a_crash(store: TraceStore, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    ends = ("Submitted", "LimitsExceeded", "RetryError")
    path.write_text("\n".join(json.dumps(line(exit_status=end)) for end in ends))
    import_to_store(store, path)
    with store.connect() as sql:
        found = answers(sql, "SELECT ended FROM trajectories ORDER BY ended")
    assert [each["ended"] for each in found] == ["budget", "crash", "final"]


def test_a_line_that_is_no_json_is_named_and_the_others_come_in(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(line()) + "\n{half\n" + json.dumps(line(cost=NAN)))
    read = read_format_tables(mini_swe_agent, path)
    assert read.tables["trajectories"]["cost_usd"].to_pylist() == [0.5, None]
    assert [each.where for each in read.remarks if each.lost] == ["line 2"]
    assert [each.why for each in read.remarks if not each.lost] == [
        "none of its 1 messages is by a model: it has no step"
    ] * 2


def version_2(*said: Mapping[str, object]) -> dict[str, object]:
    info = {"mini_version": "2.2.4", "exit_status": "Submitted"}
    stats = {"instance_cost": 0.125, "api_calls": 2}
    return {
        "info": info | {"model_stats": stats},
        "messages": [ASK, *said, {"role": "exit", "content": "diff"}],
        "trajectory_format": "mini-swe-agent-1.1",
        "instance_id": "a__b-2",
    }


def asks(*commands: str) -> dict[str, object]:
    calls = [
        {"id": f"c{n}", "function": {"name": "bash", "arguments": json.dumps({"command": each})}}
        for n, each in enumerate(commands)
    ]
    reply = {"model": "m-1", "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    extra = {"actions": [{"command": each} for each in commands], "response": reply, "cost": 0.0625}
    return {"role": "assistant", "content": None, "tool_calls": calls, "extra": extra}


def returns(call: int, **extra: object) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": f"c{call}", "content": "<output>", "extra": extra}


def test_calls_costs_and_errors_of_version_2(tmp_path: Path) -> None:
    timed_out = returns(1, returncode=-1, exception_info="timed out")
    run = version_2(asks("ls", "sleep 99"), returns(0, returncode=2), timed_out, asks("submit"))
    (tmp_path / "a.traj.json").write_text(json.dumps(run))
    tables = read_run_tables(tmp_path / "a.traj.json")
    calls = tables["tool_calls"].to_pylist()
    known = [(c["step"], c["position"], c["is_error"], c["arguments"]) for c in calls]
    assert known == [
        (2, 1, True, '{"command": "ls"}'),
        (2, 2, True, '{"command": "sleep 99"}'),
        (3, 1, None, '{"command": "submit"}'),
    ]
    [found] = tables["trajectories"].to_pylist()
    names = ("model", "cost_usd", "tokens", "prompt_tokens", "n_steps", "ended", "passed")
    assert [found[name] for name in names] == ["m-1", 0.125, 18, 14, 2, "final", None]


def test_version_2_with_the_responses_api_and_a_role_that_nobody_knows(tmp_path: Path) -> None:
    asked = {"type": "function_call", "call_id": "x", "name": "bash", "arguments": "{}"}
    text = {"type": "message", "content": [{"type": "output_text", "text": "so"}]}
    answer = {"object": "response", "model": "m", "output": [text, asked]}
    result = {"type": "function_call_output", "call_id": "x", "output": "done"}
    path = tmp_path / "a.traj.json"
    path.write_text(json.dumps(version_2(answer, result, {"role": "critic", "content": "no"})))
    read = read_format_tables(mini_swe_agent, path)
    [call] = read.tables["tool_calls"].to_pylist()
    assert (call["call_id"], call["result"]) == ("x", "done")
    assert [(each.where, each.why) for each in read.remarks] == [
        ("unread", "1 messages of role critic")
    ]
