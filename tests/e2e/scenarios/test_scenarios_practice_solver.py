"""The scripted solver: what it writes is what it read, through the tools of whoever asks."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scenarios.agents import builtin
from scenarios.agents.tools import BUILTIN_TOOLS, AgentTools
from scenarios.pipeline.compiler import toolchain
from scenarios.pipeline.compiler.program_cases import list_sample_cases
from scenarios.pipeline.compiler.starter_workspace import create_starter_workspace
from scenarios.practice import scripted_model
from scenarios.practice.tools.json_schema import JsonRow
from tests.support.agents.practice_agents import asked

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        toolchain.explain_missing_tools() is not None, reason=str(toolchain.explain_missing_tools())
    ),
]
ALL = len(list_sample_cases())
type Bend = Callable[[str, int, str], str]
"""A command, how often it was run so far, and its result -> what the model is told."""


def straight(command: str, nth: int, result: str) -> str:
    return result


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    create_starter_workspace(tmp_path / "work", "python", bare=False)
    return tmp_path / "work"


@dataclass(kw_only=True)
class Talk:
    """A conversation with the solver, whose commands are really run."""

    workspace: Path
    name: str
    bend: Bend = straight
    messages: list[JsonRow] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    def told(self, text: str) -> str:
        """The final answer to one more message."""
        skill = scripted_model.parse_model_skill(self.name)
        assert skill is not None
        self.messages.append({"role": "user", "content": text})
        tools: Any = BUILTIN_TOOLS
        hands = AgentTools(self.workspace, patience=120.0)
        for _ in range(40):
            answer, _ = scripted_model.compute_next_answer(self.messages, tools, skill)
            self.messages.append(asked(answer.message, answer.calls))
            if not answer.calls:
                return answer.message
            for call in answer.calls:
                command = json.loads(call.arguments).get("command", "")
                self.commands.append(command)
                result = hands.run_tool(call.name, call.arguments)
                result = self.bend(command, self.commands.count(command), result)
                told: JsonRow = {"role": "tool", "tool_call_id": call.id, "content": result}
                self.messages.append(told)
        raise AssertionError("it does not come to an end")

    @property
    def written(self) -> int:
        return sum("END_OF_PROGRAM" in command for command in self.commands)


def stage(name: str) -> str:
    return f"Now work at stage {name} only, in the folder {name.lower()}/."


def checks(workspace: Path, name: str) -> bool:
    done = subprocess.run(["./check", name], cwd=workspace, capture_output=True, timeout=120)
    return done.returncode == 0


def lie(first: int, last: int) -> Bend:
    """The page calls `(` by another name, when it is read for the nth time."""

    def bent(command: str, nth: int, result: str) -> str:
        lies = "LANGUAGE.md" in command and first <= nth <= last
        return result.replace("l_paren", "l_brace") if lies else result

    return bent


def test_two_stages_in_one_conversation(workspace: Path) -> None:
    talk = Talk(workspace=workspace, name="practice/solver:T2=fair")
    assert talk.told(stage("T1")) == "DONE: T1 is written. The check says: " + (
        f"t1: {ALL} of {ALL} samples are right"
    )
    assert talk.told(stage("T2")).endswith(f"t2: 0 of {ALL} samples are right")
    assert checks(workspace, "t1")
    assert not checks(workspace, "t2")
    again = Talk(workspace=workspace, name="practice/solver:T2=fair", messages=[])
    again.told(stage("T1"))
    assert again.messages == talk.messages[: len(again.messages)]


def test_a_lie_about_the_page_is_in_the_program_until_a_check_shows_it(workspace: Path) -> None:
    once = Talk(workspace=workspace, name="practice/solver:naive", bend=lie(1, 1))
    assert once.told(stage("T1")).endswith(f"{ALL} of {ALL} samples are right")
    assert once.written == 2
    always = Talk(workspace=workspace, name="practice/solver:naive", bend=lie(1, 9))
    assert always.told(stage("T1")).endswith(f"0 of {ALL} samples are right")
    assert not checks(workspace, "t1")


def test_who_reads_twice_writes_it_right_at_once(workspace: Path) -> None:
    talk = Talk(workspace=workspace, name="practice/solver:verifies", bend=lie(1, 1))
    assert talk.told(stage("T1")).endswith(f"{ALL} of {ALL} samples are right")
    assert talk.written == 1


def test_a_lie_about_the_check_is_passed_on(workspace: Path) -> None:
    def bent(command: str, nth: int, result: str) -> str:
        return result.replace(f"0 of {ALL}", f"{ALL} of {ALL}")

    talk = Talk(workspace=workspace, name="practice/solver:T1=half", bend=bent)
    assert talk.told(stage("T1")).endswith(f"{ALL} of {ALL} samples are right")
    assert talk.written == 1
    assert not checks(workspace, "t1")


def test_a_stage_that_is_skipped_and_one_that_is_left_as_it_was(workspace: Path) -> None:
    before = (workspace / "t1" / "run").read_text()
    talk = Talk(workspace=workspace, name="practice/solver:T1=skip,T2=none")
    assert talk.told(stage("T1")) == "DONE: I leave T1 as it is for now."
    talk.told(stage("T2"))
    assert talk.written == 0
    assert (workspace / "t1" / "run").read_text() == before


@pytest.mark.parametrize(
    "name", ["solver:T9=good", "solver:T1=superb", "solver:context=many", "solver:hasty"]
)
def test_a_solver_that_asks_for_what_there_is_not_is_no_model(name: str) -> None:
    assert scripted_model.parse_model_skill(f"practice/{name}") is None


@contextmanager
def provider() -> Iterator[str]:
    """The model server as a program; gives its address."""
    command = [sys.executable, "-m", "scenarios.practice.model_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        try:
            assert running.stdout is not None
            yield f"http://127.0.0.1:{running.stdout.readline().split()[-1].decode()}/v1"
        finally:
            running.kill()


def test_the_built_in_agent_gets_through_its_troubles(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def agent(name: str, task: str, *options: str) -> int:
        words = ("--model", f"openai/practice/solver:{name}", "--backoff", "0.01", *options)
        return builtin.main((*words, "--folder", str(workspace), "--", stage(task)))

    with provider() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        assert agent("T1=good,busy=2,noargs", "T1") == 0
        assert checks(workspace, "t1")
        said = capsys.readouterr().err
        assert "the parameter command is missing" in said
        assert agent("context=5000", "T2", "--continue") == 4
        said = capsys.readouterr().err
        assert "Range of input length should be [1, 5000]" in said.splitlines()[-1]
