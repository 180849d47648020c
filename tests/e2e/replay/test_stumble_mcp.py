"""An agent that has its tools over MCP, on real processes: recorded, told, asked for, replayed."""

import json
from pathlib import Path

import pytest

from tests.support.practice_shop import shop
from traces.conversation.derived_steps import derive_tape_steps
from traces.dialects import mcp
from traces.model import find_header
from traces.tape.reader import read_tape

VERSIONS = ("2026-07-28", "2025-11-25")


def methods(tape: Path) -> list[str]:
    message = (mcp.read_client_message(x.request) for x in read_tape(tape).exchanges)
    return [each.method for each in message if each is not None]


@pytest.mark.many(1)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_over_mcp_is_told_and_replays_without_its_server(
    tmp_path: Path, version: str
) -> None:
    more = ("--tools", "mcp", "--mcp-version", version)
    with shop(tmp_path, mcp=()) as world:
        said = world.record("a.tape", "practice/retries", *more)
        assert said.code == 0, said.err
        assert world.passed()
        assert "11 tool calls\n" in said.err, "and none of them is without an answer"

        asked = methods(tmp_path / "a.tape")
        assert asked.count("tools/call") == 11
        assert asked.count("tools/list") == 1
        assert ("initialize" in asked, "GET" in asked) == (version == VERSIONS[1],) * 2

        calls = 'select tool, place, "join", is_error from tool_calls order by step'
        rows = world.stumble("sql", "--json", calls).json
        assert len(rows) == 11
        assert {(row["place"], row["join"], row["is_error"]) for row in rows} == {
            ("mcp", "map", False)
        }
        derived_steps = derive_tape_steps(read_tape(tmp_path / "a.tape"))
        lanes = [
            derived_steps.contexts[seq].lane
            for seq in derived_steps.contexts
            if derived_steps.contexts[seq].kind == "tool"
        ]
        assert (lanes.count(0), lanes.count(None)) == (11, len(asked) - 11)
        shown = world.stumble("show", "a.tape", "--exchanges").out
        assert "tools/call issue_refund" in shown

        for name in ("mcp", "shop", "model"):
            world.stop(name)
        again = world.stumble("replay", "a.tape", "--json")
        assert again.code == 0, again.err + again.out
        result = json.loads(again.out)
        assert (result["upstream"], result["diverged"]) == (0, [])
        assert Path(result["agent_output"]).read_text() == said.out


@pytest.mark.thorough
def test_an_old_session_may_be_answered_in_json_too(tmp_path: Path) -> None:
    with shop(tmp_path, mcp=("--json",)) as world:
        more = ("--tools", "mcp", "--mcp-version", "2025-11-25")
        assert world.record("a.tape", "practice/retries", *more).code == 0
        for exchange in read_tape(tmp_path / "a.tape").exchanges:
            message = mcp.read_client_message(exchange.request)
            if message is not None and message.role != "aside":
                assert exchange.response is not None
                assert find_header(exchange.response.headers, "content-type") == "application/json"
        for name in ("mcp", "model"):
            world.stop(name)
        assert world.stumble("replay", "a.tape").code == 0
