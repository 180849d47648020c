"""The built-in agent, as a program, against the practice model or a server that refuses."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from scenarios.agents import builtin
from scenarios.agents.tools import AgentTools
from scenarios.practice.tasks.shell import SHELL_TASKS, verify_shell_task
from tests.support.practice_shop import (
    Said,
    shop,
)

TASK = SHELL_TASKS["shell-sum"]
pytestmark = pytest.mark.timeout(180)


@contextmanager
def model(*answers: tuple[int, Mapping[str, Any]]) -> Iterator[tuple[str, list[Any]]]:
    """A server that gives these answers in turn, the last one for ever; and what it was asked."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            status, said = answers[min(len(asked), len(answers)) - 1]
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def said(text: str | None = None, *calls: tuple[str, str], tokens: int = 10) -> Mapping[str, Any]:
    """A chat completion."""
    made = [
        {"id": f"call_{nth}", "type": "function", "function": {"name": name, "arguments": given}}
        for nth, (name, given) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, "tool_calls": made or None}
    usage = {"prompt_tokens": tokens - 1, "completion_tokens": 1, "total_tokens": tokens}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "m"} | {
        "choices": [choice],
        "usage": usage,
    }


def refused(message: str) -> Mapping[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The agent in this process, since importing litellm takes longer than all the rest."""

    capture: pytest.CaptureFixture[str]

    def __call__(self, url: str, folder: Path, *options: str, task: str = "do it") -> Said:
        words = ("--model", "openai/m", "--backoff", "0.01", "--folder", str(folder), *options)
        with environment(OPENAI_BASE_URL=url, OPENAI_API_KEY="k"):
            code = builtin.main((*words, "--", task))
        out, err = self.capture.readouterr()
        return Said(code=code, out=out, err=err)


@pytest.fixture
def agent(capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(capture=capsys)


@contextmanager
def environment(**variables: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def last(said: Said) -> str:
    return said.err.splitlines()[-1]


def test_a_task_is_done_recorded_and_replayed_strictly(tmp_path: Path) -> None:
    folder, tape = tmp_path / "work", str(tmp_path / "a.tape")
    folder.mkdir()
    with shop(folder) as world:
        command = ("stumble", "agent", "--backoff", "0.01", "--model", "openai/practice/verifies")
        words = (sys.executable, "-m", *command, "--", TASK.prompt)
        env = {"OPENAI_BASE_URL": "http://model.practice/v1"}
        done = world.stumble("record", "-o", tape, *world.host_options(), "--", *words, env=env)
        assert (done.code, done.out) == (0, "DONE: the total is 155534 and the report holds it.\n")
        assert verify_shell_task(folder, TASK).passed
        world.stop("model")
        again = world.stumble("replay", tape, env=env)
        assert (again.code, again.out) == (0, done.out), again.err
        assert "0 upstream, 0 diverged" in again.err


def test_what_passes_is_asked_again_and_a_conversation_goes_on(
    agent: Program, tmp_path: Path
) -> None:
    busy, down = (429, refused("slow down")), (503, refused("down"))
    with model(busy, down, (200, said("first")), (200, said("second"))) as (url, asked):
        first = agent(url, tmp_path, task="one")
        assert (first.code, first.out) == (0, "first\n"), first.err
        second = agent(url, tmp_path, "--continue", task="two")
        assert (second.code, second.out) == (0, "second\n")
        third = agent(url, tmp_path, task="three")
        assert third.code == 0
    assert len(asked) == 5
    texts = [message["content"] for message in asked[3]["messages"][1:]]
    assert texts == ["one", "first", "two"]
    assert [message["content"] for message in asked[4]["messages"][1:]] == ["three"]


def test_a_call_that_was_lost_with_its_agent_is_answered(agent: Program, tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    kept = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    lines = [json.dumps(message) + "\n" for message in kept]
    (tmp_path / builtin.CONVERSATION_FILE).write_text("".join([*lines, '{"role": "to']))
    with model((200, said("done"))) as (url, asked):
        assert agent(url, tmp_path, "--continue", task="two").out == "done\n"
    told = asked[0]["messages"]
    assert [message["role"] for message in told] == ["user", "assistant", "tool", "user"]
    assert told[2]["content"] == builtin.LOST_RESULT


@pytest.mark.parametrize(
    ("status", "message", "code", "word"),
    [
        (400, "Range of input length should be [1, 131072]", 4, "context"),
        (400, "This model's maximum context length is 8192 tokens", 4, "context"),
        (400, "missing parameter x", 5, "provider"),
        (401, "Incorrect API key provided: k", 5, "provider"),
        (429, "you exceeded your current quota", 5, "provider"),
    ],
)
def test_what_does_not_pass_ends_it_with_a_word(
    agent: Program, tmp_path: Path, status: int, message: str, code: int, word: str
) -> None:
    with model((status, refused(message))) as (url, asked):
        ended = agent(url, tmp_path)
    assert ended.code == code, ended.err
    assert last(ended).startswith(f"ended: {word}: ")
    assert message in last(ended)
    assert len(asked) == (6 if status == 429 else 1)


def test_limits_end_it(agent: Program, tmp_path: Path) -> None:
    loops = said(None, ("bash", '{"command": "true"}'), tokens=40)
    with model((200, loops)) as (url, asked):
        calls = agent(url, tmp_path, "--max-calls", "3")
        assert (calls.code, last(calls)) == (3, "ended: budget: spent: 3 model calls")
        assert len(asked) == 3
        tokens = agent(url, tmp_path, "--max-tokens", "100")
        assert (tokens.code, last(tokens)) == (3, "ended: budget: spent: 100 tokens")
        priced = agent(url, tmp_path, "--max-dollars", "1")
        assert priced.code == 3
        assert "the price of this model is not known" in last(priced)


def test_a_model_that_asks_for_nonsense_is_told_so_and_one_that_says_nothing_is_asked_again(
    agent: Program, tmp_path: Path
) -> None:
    nonsense = (
        ("python", "{}"),
        ("bash", "{"),
        ("edit", '{"command": "replace", "path": "a", "old": "x"}'),
        ("edit", '{"command": "create", "path": "../a", "text": "x"}'),
    )
    with model((200, said(None, *nonsense)), (200, said(None))) as (url, asked):
        ended = agent(url, tmp_path)
    assert (ended.code, len(asked)) == (5, 4)
    assert last(ended).endswith("the model said nothing and called no tool, 3 times")
    results = [m["content"] for m in asked[1]["messages"] if m["role"] == "tool"]
    assert [text.partition(":")[0] for text in results] == ["error"] * 4
    assert "there is no tool python" in results[0]
    assert "the parameter new is missing" in results[2]
    assert "outside" in results[3]
    assert not (tmp_path.parent / "a").exists()


@pytest.mark.parametrize(
    ("words", "says"), [(("do it",), "which model?"), (("--model", "m", " "), "task is empty")]
)
def test_no_model_and_no_task_are_wrong_command_lines(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    with environment(STUMBLE_AGENT_MODEL=""), pytest.raises(SystemExit) as ended:
        builtin.main(words)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_hands_end_what_takes_too_long_and_cut_what_is_too_much(tmp_path: Path) -> None:
    hands = AgentTools(tmp_path, patience=1.0)
    slow = json.loads(hands.run_tool("bash", '{"command": "echo a; sleep 60 & sleep 60"}'))
    assert slow == {"returncode": None, "output": "a\n\nended after 1 s"}
    much = json.loads(
        AgentTools(tmp_path, patience=20.0).run_tool("bash", '{"command": "yes | head -c 9M"}')
    )
    assert much["returncode"] == 0
    assert len(much["output"]) < 31_000
    assert "left out" in much["output"]


def test_the_editor_creates_views_and_replaces_what_is_there_once(tmp_path: Path) -> None:
    hands = AgentTools(tmp_path, patience=1.0)

    def edit(command: str, **more: str) -> str:
        return hands.run_tool("edit", json.dumps({"command": command, "path": "a/b.txt", **more}))

    assert edit("view").startswith("error: ")
    assert edit("create", text="one two two\n") == "wrote a/b.txt"
    assert edit("replace", old="two", new="2") == (
        "error: the old text occurs 2 times in b.txt, not once"
    )
    assert edit("replace", old="one ", new="1 ") == "replaced in b.txt"
    assert edit("view") == "1 two two\n"
    assert "cannot burn" in edit("burn")
