"""What a replay lets out is what was said, and nothing else: real servers count who comes."""

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.practice_shop import (
    Said,
    Shop,
)
from traces.dialects import openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.tape.reader import read_tape

AGENT = '''
"""A model, a tool, telemetry, and the model again; more tools and models as its arguments say."""
import json, sys, urllib.error, urllib.request


def ask(url, said):
    try:
        request = urllib.request.Request(url, json.dumps(said).encode())
        return urllib.request.urlopen(request, timeout=60).read()
    except urllib.error.HTTPError as refused:
        return str(refused.code).encode()


def model(*messages):
    return ask("http://model.test/v1/chat/completions", {"model": "m", "messages": messages})


go = {"role": "user", "content": "go"}
first = json.loads(model(go))["choices"][0]["message"]
(call,) = first["tool_calls"]
told = ask("http://tool.test/get", json.loads(call["function"]["arguments"])).decode()
ask("http://telemetry.test/v1/traces", {})
model(go, first, {"role": "tool", "tool_call_id": call["id"], "content": told})
for word in sys.argv[1:]:
    if word.isdigit():
        try:
            past = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            print(past.open(f"http://127.0.0.1:{word}/get", b"{}", timeout=60).status)
        except OSError as refused:
            print(refused)
        continue
    print(word, ask("http://tool.test/get", {"more": 1}) if word == "tool" else model(go, go))
'''


class Servers:
    """A model, a tool and a collector, each on a port of its own, that count who comes."""

    def __init__(self, stack: ExitStack) -> None:
        self.came = Counter[str]()
        self.hosts: dict[str, int] = {}
        for name in ("model", "tool", "telemetry"):
            self.hosts[f"{name}.test"] = stack.enter_context(self._serving(name))

    @contextmanager
    def _serving(self, name: str) -> Iterator[int]:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(handler) -> None:  # noqa: N805
                said = handler.rfile.read(int(handler.headers["content-length"]))
                self.came[name] += 1
                body = _model(said) if name == "model" else b'{"total": 345}'
                handler.send_response(200)
                handler.send_header("content-type", "application/json")
                handler.send_header("content-length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

            def log_message(handler, *_: object) -> None:  # noqa: N805
                """Says nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                yield server.server_address[1]
            finally:
                server.shutdown()
                thread.join()

    def options(self) -> tuple[str, ...]:
        pairs = [f"{host}=127.0.0.1:{port}" for host, port in self.hosts.items()]
        return tuple(word for pair in pairs for word in ("--host", pair))

    def since(self, before: Counter[str]) -> tuple[int, int, int]:
        now = self.came - before
        return now["model"], now["tool"], now["telemetry"]


def _model(data: bytes) -> bytes:
    begins = len(json.loads(data)["messages"]) == 1
    calls = (ToolCall(id="c1", name="get", arguments='{"id": 7}'),) if begins else ()
    answer = ModelAnswer(message="" if begins else "345", calls=calls, model="m")
    return openai_chat.write_model_answer(answer, stream=False, id="x", created=0)[1][0].data


class Desk(Shop):
    """A recorded run of the agent, and the servers that were there."""

    servers_: Servers

    def play(self, *options: str, agent: tuple[str, ...] = ()) -> tuple[Said, tuple[int, int, int]]:
        """What was said, and how often model, tool and telemetry were contacted."""
        before = Counter(self.servers_.came)
        command = ("--", sys.executable, "agent.py", *agent)
        result = self.stumble("replay", "a.tape", *options, *self.servers_.options(), *command)
        return result, self.servers_.since(before)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("live")
    (folder / "agent.py").write_text(AGENT)
    with ExitStack() as stack:
        opened = Desk(folder=folder, book=folder, log=folder, hosts=(), task="none")
        opened.servers_ = Servers(stack)
        command = ("--", sys.executable, "agent.py")
        result = opened.stumble("record", "-o", "a.tape", *opened.servers_.options(), *command)
        assert result.code == 0, result.err
        assert opened.servers_.came == {"model": 2, "tool": 1, "telemetry": 1}
        yield opened


@pytest.mark.parametrize(
    ("options", "contacted"),
    [
        ((), (0, 0, 0)),
        (("--live", "model"), (2, 0, 0)),
        (("--live", "tools"), (0, 1, 0)),
        (("--live", "all"), (2, 1, 0)),
        (("--on-miss", "live"), (0, 0, 0)),
    ],
    ids=["strict", "model", "tools", "all", "on-miss"],
)
def test_only_what_was_named_is_contacted(
    desk: Desk, options: tuple[str, ...], contacted: tuple[int, int, int]
) -> None:
    said, came = desk.play(*options, "--json")
    assert said.code == 0, said.err
    assert came == contacted
    assert said.json["upstream"] == sum(contacted)
    assert said.json["tools_contacted"] is (contacted[1] > 0)
    by = Counter(x.answered_by for x in read_tape(Path(said.json["tape"])).exchanges)
    assert by["live"] == sum(contacted)


@pytest.mark.parametrize(
    ("options", "contacted"),
    [
        ((), (0, 0, 0)),
        (("--live", "model"), (3, 0, 0)),
        (("--live", "tools"), (0, 2, 0)),
        (("--live", "all"), (3, 2, 0)),
        (("--on-miss", "live"), (1, 1, 0)),
    ],
    ids=["strict", "model", "tools", "all", "on-miss"],
)
def test_what_is_not_on_the_tape_goes_only_where_it_may(
    desk: Desk, options: tuple[str, ...], contacted: tuple[int, int, int]
) -> None:
    """The agent asks a tool and a model for more than was recorded."""
    said, came = desk.play(*options, "--json", agent=("tool", "model"))
    assert came == contacted
    assert said.code == (0 if "--on-miss" in options else 3)
    assert len(said.json["diverged"]) == (0 if "--on-miss" in options else 2)


def test_several_replays_are_each_struck_alone_and_counted_together(desk: Desk) -> None:
    fault = ("--fault", "http_status:code=503", "--where", "tool=get", "--at", "http")
    said, came = desk.play("--times", "3", *fault, "--json")
    assert came == (0, 0, 0)
    assert said.code == 3, "a struck agent leaves the recording, each time"
    assert [run["injected"] for run in said.json["runs"]] == [1, 1, 1]
    assert [len(run["diverged"]) for run in said.json["runs"]] == [1, 1, 1]
    assert len({run["tape"] for run in said.json["runs"]}) == 3


def test_several_live_replays_contact_as_often_as_they_are_many(desk: Desk) -> None:
    said, came = desk.play("--times", "3", "--live", "tools")
    assert (said.code, came) == (0, (0, 3, 0))
    assert "3 of 3 times: 3 followed the recording" in said.err


@pytest.mark.programs
def test_what_goes_past_the_proxy_comes_nowhere_in_any_of_several(desk: Desk) -> None:
    port = str(desk.servers_.hosts["tool.test"])
    said, came = desk.play("--times", "2", "--isolation", "require", "--json", agent=(port,))
    assert (said.code, came) == (1, (0, 0, 0))
    for run in said.json["runs"]:
        assert run["diverged"] == []
        assert port in json.dumps(run)
    said, came = desk.play("--isolation", "off", agent=(port,))
    assert (said.code, came) == (0, (0, 1, 0)), "so the test would have seen it"


def test_a_fault_that_strikes_in_no_replay_is_said_once(desk: Desk) -> None:
    fault = ("--fault", "http_status:code=503", "--where", "tool=gett")
    said, came = desk.play("--times", "2", *fault)
    assert (said.code, came) == (2, (0, 0, 0))
    assert said.err.count("\n") == 1
