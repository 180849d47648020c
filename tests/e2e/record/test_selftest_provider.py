"""`stumble selftest --provider` against a scripted model at each provider's wire form.

No real provider was asked here.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.warm_stumble import CommandResult, run_stumble
from traces.dialects import find_dialect
from traces.dialects.types import ModelAnswer, TokenUsage, ToolCall
from traces.model import Request

pytestmark = pytest.mark.timeout(300)
KEY = "sk-ant-api03-0123456789abcdefghijklmnopqrstuv"
VARIABLES = {
    "openai": ("OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ""),
}
CALLS = (
    ToolCall(id="call_1", name="get_order", arguments='{"order_id": "ord-7018"}'),
    ToolCall(id="call_2", name="add_note", arguments='{"text": "1057.86 GBP"}'),
)


def answer(request: Request) -> bytes:
    """The answer of a model that reads the order, notes it, and ends, with a field that is new."""
    dialect = find_dialect(request)
    assert dialect is not None
    done = len(dialect.make_dialect_reader()(request.body).results)
    calls = CALLS[done : done + 1]
    usage = TokenUsage(prompt_tokens=1000, completion_tokens=10)
    said = ModelAnswer(message="" if calls else "It is 1057.86 GBP.", calls=calls, usage=usage)
    _, chunks = dialect.write_model_answer(said, stream=False, id="x_1", created=0)
    value = json.loads(b"".join(chunk.data for chunk in chunks))
    value["usage"] = {
        "prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010,
        "input_tokens": 1000, "output_tokens": 10,
    }  # fmt: skip
    return json.dumps(value | {"new_field": {"secret": KEY}}).encode()


@contextmanager
def serve_model(asked: list[str]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            asked.append(self.path)
            data = answer(Request(method="POST", url=f"http://h{self.path}", body=body))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def run_selftest(folder: Path, env: dict[str, str], *options: str) -> CommandResult:
    kept = {k: v for k, v in os.environ.items() if not k.endswith(("_API_KEY", "_BASE_URL"))}
    env = kept | {"HOME": str(folder), "STUMBLE_STORE": str(folder / "store")} | env
    return run_stumble(("selftest", "--json", *options), cwd=folder, env=env, timeout=250)


@pytest.mark.thorough
@pytest.mark.parametrize("provider", VARIABLES)
def test_a_provider_is_recorded_replayed_and_faulted_within_the_limit(
    provider: str, tmp_path: Path
) -> None:
    key, base, path = VARIABLES[provider]
    asked = list[str]()
    with serve_model(asked) as url:
        env = {key: KEY, base: url + path}
        result = run_selftest(tmp_path, env, "--provider", provider)
    report = result.json
    assert result.code == 0, result.out + result.err
    names = [run["name"].partition(" ")[0] for run in report["runs"]]
    assert names == ["record", "strict", "fork", "fork", "live"]
    assert [run["holds"] for run in report["runs"]] == [True] * 5, report
    assert any("$.new_field is not known here" in line for line in report["differences"])
    assert any("no headers of rate limits" in line for line in report["differences"])
    assert 0 < report["spent"] < 1
    written = (tmp_path / f"selftest-{provider}.json").read_text()
    assert json.loads(written) == report
    assert KEY not in written + result.out + result.err


@pytest.mark.thorough
def test_no_run_is_made_that_could_exceed_the_limit(tmp_path: Path) -> None:
    asked = list[str]()
    with serve_model(asked) as url:
        env = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1"}
        result = run_selftest(tmp_path, env, "--provider", "openai", "--dollars", "0.0004")
    assert result.code == 1
    made = {run["name"]: run["holds"] for run in result.json["runs"]}
    assert (made["record"], made["strict replay"], made["live fault"]) == (True, True, None)
    assert len(asked) == 3, "the recording alone"


def test_without_the_key_nothing_is_asked(tmp_path: Path) -> None:
    refused = run_selftest(tmp_path, {}, "--provider", "openai")
    assert (refused.code, "OPENAI_API_KEY" in refused.err) == (2, True)
    assert run_selftest(tmp_path, {}, "--provider", "opnai").code == 2
