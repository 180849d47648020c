"""Three instrumentations of the OpenAI SDK, and OpenTelemetry's exporters, before a collector."""

import json
import subprocess
from pathlib import Path

import pytest

from scenarios.practice.tasks.registry import ALL_TASKS
from tests.agents import LOCKS, environment
from tests.integration.stumble.test_collect import SECRET, collecting
from tests.support.practice_shop import TASK, shop
from traces.store.trace_store import TraceStore

pytestmark = pytest.mark.thorough

KINDS = {
    "openllmetry": {},
    "openinference": {},
    "otel": {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"},
}
"""The instrumentations, and the variables by which each reports what was said."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("transport", "kinds"), [("http", tuple(KINDS)), ("grpc", ("otel",))])
def test_what_each_instrumentation_reports_is_the_run_as_the_agent_had_it(
    transport: str, kinds: tuple[str, ...], tmp_path: Path
) -> None:
    wanted = []
    (tmp_path / "shop").mkdir()
    with (
        shop(tmp_path / "shop", TASK) as world,
        collecting(tmp_path, "--grpc", "0") as collector,
    ):
        hosts = dict(name.split("=", 1) for name in world.hosts)
        port = collector.ports[transport == "http"]
        for kind in kinds:
            world.reset()
            command = [str(environment("tracing")), str(LOCKS / "traced_agent.py")]
            command += [kind, transport, "practice/retries"]
            given = world.environment() | KINDS[kind] | {
                "NO_PROXY": "*",
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
                "OPENAI_BASE_URL": f"http://{hosts['model.practice']}/v1",
                "TOOLS_URL": f"http://{hosts['shop.practice']}",
            }  # fmt: skip
            done = subprocess.run(
                [*command, ALL_TASKS[TASK].prompt, SECRET],
                env=given, capture_output=True, text=True, timeout=100,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            wanted.append(calls_in(json.loads(done.stdout)))
        status, out, err = collector.end()
    assert (status, err) == (0, ""), out
    assert out.endswith(f"; {len(kinds)} run{'s' * (len(kinds) > 1)}\n")
    query = """select trajectory_id, list((tool, arguments, result) order by step, position)
        from tool_calls join trajectories using (trajectory_id)
        where model_family in ('retries', 'practice-retries') group by 1"""
    with TraceStore(collector.root).connect() as connection:
        rows = connection.execute(query).fetchall()
        found = [[(tool, plain(given), result) for tool, given, result in row[1]] for row in rows]
        counts = connection.execute("select n_steps, fidelity from trajectories").fetchall()
        [(known,)] = connection.execute(
            "select count(*) from messages where contains(content, 'its key is')"
            " or contains(content, 'Its key is')"
        ).fetchall()
    assert sorted(found) == sorted(wanted)
    assert all(len(calls) >= 5 for calls in wanted)
    assert {count for _, count in counts} == {"span"}
    assert [count for count, _ in counts] == [len(wanted[0]) + 1] * len(kinds)
    assert known == len(kinds)
    assert SECRET.encode() not in b"".join(
        path.read_bytes() for path in collector.root.rglob("*") if path.is_file()
    )


def calls_in(messages: list[dict[str, object]]) -> list[tuple[str, str, str]]:
    """The tool, arguments and result of each call, in their order."""
    results = {str(m["tool_call_id"]): str(m["content"]) for m in messages if m["role"] == "tool"}
    return [
        (call["function"]["name"], plain(call["function"]["arguments"]), results[call["id"]])
        for message in messages
        for call in message.get("tool_calls") or ()  # type: ignore[attr-defined]
    ]


def plain(arguments: str) -> str:
    """JSON without its spaces, as OpenLLMetry parses arguments and others keep their text."""
    return json.dumps(json.loads(arguments), separators=(",", ":"))
