"""`stumble mcp-store` with the SDK's own client over stdio."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from stumble.mcp.store_server import MAX_RESULT_CHARS, shorten_result
from tests.support.stores.judged_fork import make_judged_fork
from traces.store.trace_store import TraceStore

TOOLS = {"list_runs", "list_steps", "explain_verdict", "list_questions", "run_sql", "report"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TraceStore:
    return make_judged_fork(tmp_path_factory.mktemp("kept") / "store")


async def ask(
    store: TraceStore, *calls: tuple[str, Mapping[str, object]]
) -> tuple[set[str], list[tuple[bool, str]]]:
    """Names of the tools, and whether each call failed with the text of its result."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "stumble", "mcp-store", "--store", str(store.root)],
        env=dict(os.environ),
    )
    answers = []
    async with Client(server, read_timeout_seconds=100) as client:
        listed = (await client.list_tools()).tools
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in listed)
        for name, arguments in calls:
            result = await client.call_tool(name, dict(arguments))
            text = "".join(part.text for part in result.content if part.type == "text")
            answers.append((bool(result.is_error), text))
    return {tool.name for tool in listed}, answers


@pytest.mark.thorough
def test_an_agent_finds_why_a_run_was_silently_wrong(store: TraceStore) -> None:
    async def debug() -> None:
        tools, [(failed, runs)] = await ask(store, ("list_runs", {"limit": 10}))
        assert tools == TOOLS
        assert not failed
        wrong = [row for row in json.loads(runs) if row["outcome"] == "silent_wrong"]
        assert {row["run"] for row in wrong} == {"lied-1", "lied-2"}
        _, answers = await ask(
            store,
            ("explain_verdict", {"injection": wrong[0]["injection"]}),
            ("list_steps", {"run": wrong[0]["run"], "step": 3}),
            ("run_sql", {"query": "silent"}),
            ("run_sql", {"query": "select count(*) as n from trajectories"}),
            ("report", {}),
        )
        assert not any(failed for failed, _ in answers)
        explained, steps, silent, counted, report = (text for _, text in answers)
        assert "total: 1250.4 -> 1259.4" in explained
        assert "issue_refund" in steps
        assert json.loads(silent)
        assert json.loads(counted) == [{"n": 5}]
        assert "silent" in report

    asyncio.run(debug())


def test_nothing_can_be_written_or_read_beside_the_store(store: TraceStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside.tape"
    asyncio.run(ask(store, ("list_runs", {})))  # the first question seals the tapes
    before = {path: path.read_bytes() for path in store.tapes.iterdir()}
    calls = (
        ("run_sql", {"query": f"copy (select 1) to '{outside}'"}),
        ("run_sql", {"query": "select * from read_text('/etc/passwd')"}),
        ("run_sql", {"query": "--rebuild"}),
        ("list_steps", {"run": "../../etc/passwd"}),
        ("list_steps", {"run": "lied-1", "step": 99}),
        ("list_steps", {"run": "gone"}),
        ("explain_verdict", {"injection": "--help"}),
    )
    _, answers = asyncio.run(ask(store, *calls))
    assert all(failed for failed, _ in answers)
    texts = [text for _, text in answers]
    assert "only reads" in texts[0]
    assert "root:" not in "".join(texts)
    assert "list_runs lists the ids" in texts[3]
    assert "no step 99" in texts[4]
    assert not outside.exists()
    assert {path: path.read_bytes() for path in store.tapes.iterdir()} == before


def test_a_long_result_is_cut_and_says_so() -> None:
    assert shorten_result("short") == "short"
    text = shorten_result("x" * (MAX_RESULT_CHARS + 1234))
    assert "1,234 of 61,234 characters are missing" in text
