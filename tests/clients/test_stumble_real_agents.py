"""Agents that others wrote, unchanged, in environments of their own."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from scenarios.practice.tasks.shell import SHELL_TASKS, verify_shell_task
from tests.agents import environment
from tests.support.practice_shop import (
    Said,
    Shop,
    shop,
)
from tests.support.request_readings import read_tool_results
from traces.dialects import openai_chat
from traces.tape.reader import read_tape

LIMIT = 300.0
"""Seconds for a fork of an agent that takes 5 s to start, on a busy machine."""

ENV = {
    "OPENAI_BASE_URL": "http://model.practice/v1",
    "OPENAI_API_BASE": "http://model.practice/v1",
    "MSWEA_CONFIGURED": "true",
    "MSWEA_COST_TRACKING": "ignore_errors",
    "MSWEA_SILENT_STARTUP": "1",
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Shop]:
    with shop(tmp_path) as open_shop:
        yield open_shop


def mini(skill: str) -> tuple[str, ...]:
    program = environment("sdks-httpx").with_name("mini")
    task = SHELL_TASKS["shell-sum"].prompt
    options = ("-y", "--exit-immediately", "-o", "trajectory.json")
    return (str(program), "-m", f"openai/practice/{skill}", "-t", task, *options)


def stumble(world: Shop, *arguments: str) -> Said:
    return world.stumble(*arguments, env=ENV, timeout=LIMIT)


@pytest.mark.timeout(LIMIT * 2)
def test_a_lie_about_a_local_command_reaches_the_model_and_stays_told(world: Shop) -> None:
    agent = mini("naive")
    recorded = stumble(world, "record", "-o", "mini.tape", *world.host_options(), "--", *agent)
    assert recorded.code == 0, recorded.err
    logged = len(world.asked())
    tape = read_tape(world.folder / "mini.tape")
    assert len([x for x in tape.exchanges if x.request.url.endswith("completions")]) == logged

    steps = stumble(world, "show", "mini.tape", "--json").json
    calls = [call for step in steps for call in step["tool_calls"]]
    assert {(call["tool"], call["place"]) for call in calls} == {("bash", "local")}
    nth = next(n for n, call in enumerate(calls, 1) if '"cat ' in call["arguments"])

    script = Path(__file__).parents[1] / "support" / "agents" / "clean_folder.py"
    clean = f"{sys.executable} {script} {world.folder}"
    completed = stumble(
        world, "fork", "mini.tape", "--fault", "digit", "--where", "tool=bash", "--nth", str(nth),
        "--twins", "3", "--reset", clean, "--keep-workspace", *world.host_options(), "--json", "--",
        *agent,
    )  # fmt: skip
    assert completed.code == 5, "no verifier was named, so the end state cannot be judged"
    result = json.loads(completed.out.splitlines()[-1])
    assert (result["fired"], result["consumed"]) == (1, True)

    faulted = read_tape(Path(result["tape"]))
    (injection,) = faulted.injections
    assert (injection.place, injection.tool) == ("model-boundary", "bash")
    assert injection.original is not None
    assert injection.mutated is not None
    told = [
        found.text.encode()
        for x in faulted.exchanges
        if x.seq >= injection.seq and x.request.url.endswith("completions")
        for found in read_tool_results(openai_chat, x.forwarded.body)
        if found.call_id == injection.call_id
    ]
    assert len(told) >= 3
    assert set(told) == {injection.mutated}
    held = [
        found.text.encode()
        for x in faulted.exchanges
        if x.seq >= injection.seq and x.request.url.endswith("completions")
        for found in read_tool_results(openai_chat, x.request.body)
        if found.call_id == injection.call_id
    ]
    assert set(held) == {injection.original}
    *_, copy = result["kept_workspaces"]
    end = verify_shell_task(Path(copy), SHELL_TASKS["shell-sum"])
    assert end.passed is False, "the last run was told a lie and believed it"
    for kept in result["kept_workspaces"]:
        rmtree(Path(kept).parent)


ASKS = """
import openai, sys
assert openai.__version__.startswith("3."), openai.__version__
client = openai.OpenAI()
messages = [{"role": "user", "content": "task: refund-1"}]
whole = client.chat.completions.create(model="practice/naive", messages=messages)
streamed = client.chat.completions.create(model="practice/naive", messages=messages, stream=True)
pieces = "".join(c.choices[0].delta.content or "" for c in streamed if c.choices)
assert pieces == (whole.choices[0].message.content or "")
print(whole.model)
"""


@pytest.mark.thorough
@pytest.mark.timeout(LIMIT)
def test_a_program_on_openai_3_is_recorded_and_replayed(world: Shop) -> None:
    agent = (str(environment("sdks")), "-c", ASKS)
    recorded = stumble(world, "record", "-o", "o3.tape", *world.host_options(), "--", *agent)
    assert (recorded.code, recorded.out) == (0, "practice/naive\n"), recorded.err
    assert "2 exchanges (2 model)" in recorded.err

    world.stop("model")
    again = stumble(world, "replay", "o3.tape", "--", *agent)
    assert (again.code, again.out) == (0, "practice/naive\n"), again.err
    assert "2 answered from the tape, 0 upstream, 0 diverged" in again.err
