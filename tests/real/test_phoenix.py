"""Phoenix, a collector of Arize: it takes exported spans, and its API gives them back.

`make test-real` runs it. It installs 620 MB.
"""

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agents import environment
from tests.support.practice_shop import shop
from traces.conversation.derived_steps import derive_tape_steps
from traces.tape.reader import read_tape

pytestmark = pytest.mark.timeout(1200)
type Span = dict[str, object]


@contextmanager
def phoenix(folder: Path) -> Iterator[str]:
    """Serve Phoenix with an empty database; yields its address."""
    ports = [str(free_port()) for _ in range(2)]
    program = environment("phoenix").with_name("phoenix")
    given = os.environ | {
        "HOME": str(folder), "PHOENIX_WORKING_DIR": str(folder), "PHOENIX_PORT": ports[0],
        "PHOENIX_GRPC_PORT": ports[1], "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }  # fmt: skip
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([program, "serve"], env=given, stdout=log, stderr=log)
    try:
        address = f"http://127.0.0.1:{ports[0]}"
        wait_until_served(address, server)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=60)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_served(address: str, server: subprocess.Popen[bytes]) -> None:
    while True:
        assert server.poll() is None, "it has ended"
        try:
            list_spans(address)
        except OSError:
            time.sleep(0.5)
        else:
            return


def list_spans(address: str) -> list[Span]:
    """All spans of the project that Phoenix takes spans to if no other is named."""
    url = f"{address}/v1/projects/default/spans?limit=1000"
    with urllib.request.urlopen(url, timeout=60) as answer:
        found: list[Span] = json.load(answer)["data"]
    return found


def send(address: str, file: Path) -> int:
    """Phoenix takes protobuf alone; it refuses OTLP's JSON with 415."""
    headers = {"content-type": "application/x-protobuf"}
    asked = urllib.request.Request(f"{address}/v1/traces", file.read_bytes(), headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        status: int = answer.status
    return status


def test_phoenix_takes_an_export_and_gives_its_spans_back(tmp_path: Path) -> None:
    for name in ("shop", "phoenix"):
        (tmp_path / name).mkdir()
    with shop(tmp_path / "shop") as world:
        assert world.record().code == 0
        result = world.stumble("export", "a.tape", "--to", "otel-protobuf", "-o", "spans")
        assert result.code == 0, result.err
    uses = derive_tape_steps(read_tape(tmp_path / "shop" / "a.tape")).tool_uses
    calls = sorted((use.tool, use.result) for use in uses)
    with phoenix(tmp_path / "phoenix") as address:
        assert send(address, tmp_path / "shop" / "spans") == 200
        spans = wait_for_spans(address, len(calls) + 2)
    kinds = [span["span_kind"] for span in spans]
    assert (kinds.count("AGENT"), kinds.count("TOOL")) == (1, len(calls))
    assert kinds.count("LLM") == len(kinds) - 1 - len(calls)
    given = [span["attributes"] for span in spans if span["span_kind"] == "TOOL"]
    assert calls == sorted((each["tool.name"], each["output.value"]) for each in given)  # type: ignore[index]


def wait_for_spans(address: str, minimum: int) -> list[Span]:
    """Phoenix stores spans after it has answered; those of one request come together."""
    while len(spans := list_spans(address)) < minimum:
        time.sleep(0.5)
    return spans
