"""`stumble collect`, asked over HTTP and gRPC with messages made by OpenTelemetry's own classes."""

import gzip
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from stumble.collect.otlp_request import MAX_BODY
from traces.store.trace_store import TraceStore

SECRET = "sk-proj-" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}
type Answer = tuple[int, bytes]


class Collector:
    """A running `stumble collect`, with its store."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-m", "stumble", "collect", "--otlp", "0", *options]
        environment = os.environ | {"STUMBLE_STORE": str(folder / ".stumble"), "NO_PROXY": "*"}
        self.root = folder / ".stumble"
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.ports: list[int] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "127.0.0.1:" not in line:
                break
            self.ports.append(int(line.rpartition(":")[2]))

    def post(self, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        opened = http.client.HTTPConnection("127.0.0.1", self.ports[-1], timeout=60)
        with closing(opened) as connection:
            connection.request("POST", path, body, headers)
            with connection.getresponse() as answer:
                return answer.status, answer.read()

    def end(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def runs(self) -> list[tuple[object, ...]]:
        query = "select model, n_steps, fidelity, source from trajectories order by 1"
        with TraceStore(self.root).connect() as connection:
            return connection.execute(query).fetchall()


@contextmanager
def collecting(folder: Path, *options: str) -> Iterator[Collector]:
    collector = Collector(folder, *options)
    try:
        yield collector
    finally:
        collector.process.kill()
        collector.process.communicate()


def request(model: str, trace: str = TRACE, text: str = SECRET) -> ExportTraceServiceRequest:
    """A request with one span of a model."""
    message = ExportTraceServiceRequest()
    span = message.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id = bytes.fromhex(trace), bytes(range(8))
    span.name, span.start_time_unix_nano, span.end_time_unix_nano = "chat", 10**18, 10**18 + 1
    output = [{"role": "assistant", "parts": [{"type": "text", "content": text}]}]
    for key, value in {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": model,
        "gen_ai.output.messages": json.dumps(output),
    }.items():
        attribute = span.attributes.add()
        attribute.key, attribute.value.string_value = key, value
    return message


def json_of(trace: str, **more: object) -> bytes:
    attributes = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.completion.0.content", "value": {"stringValue": "hello"}},
    ]
    span = {"traceId": trace, "spanId": "00" * 8, "name": "c", "attributes": attributes, **more}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


@pytest.mark.gate
def test_each_form_is_taken_and_a_run_at_the_end_without_its_secret(tmp_path: Path) -> None:
    with collecting(tmp_path, "--grpc", "0") as collector:
        plain, packed = request("m1"), request("m2", "1" * 32)
        status, body = collector.post("/v1/traces", plain.SerializeToString(), PROTOBUF)
        assert (status, ExportTraceServiceResponse.FromString(body)) == (
            200,
            ExportTraceServiceResponse(),
        )
        data = gzip.compress(packed.SerializeToString())
        assert collector.post("/v1/traces", data, PROTOBUF | {"content-encoding": "gzip"})[0] == 200
        assert collector.post("/v1/traces", json_of("2" * 32), JSON) == (200, b"{}")
        assert collector.post("/v1/metrics", b"{}", JSON) == (200, b"{}")
        with grpc.insecure_channel(f"127.0.0.1:{collector.ports[0]}") as channel:
            export = channel.unary_unary(
                "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
                request_serializer=ExportTraceServiceRequest.SerializeToString,
                response_deserializer=ExportTraceServiceResponse.FromString,
            )
            big = request("m3", "3" * 32, "word " * 50_000)
            assert export(big, timeout=60) == ExportTraceServiceResponse()
            assert export(big, timeout=60, compression=grpc.Compression.Gzip).ByteSize() == 0
        assert SECRET.encode() not in b"".join(
            path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
        )
        status, out, err = collector.end()
        assert (status, err) == (0, "")
        assert out == "5 records; 4 runs\n"
        assert [row[0] for row in collector.runs()] == ["m1", "m2", "m3", None]
        assert {row[1:] for row in collector.runs()} == {(1, "span", "otel")}
        assert not list((collector.root / "collect").iterdir())
        assert SECRET.encode() not in b"".join(
            path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
        )


@pytest.mark.gate
def test_what_a_killed_collector_left_is_imported_by_the_next(tmp_path: Path) -> None:
    with collecting(tmp_path) as killed:
        killed.post("/v1/traces", request("m1").SerializeToString(), PROTOBUF)
        killed.end(signal.SIGKILL)
    with collecting(tmp_path) as collector:
        assert [row[0] for row in collector.runs()] == ["m1"]
        status, out, _ = collector.end(signal.SIGTERM)
        assert (status, out) == (0, "0 records; 1 run\n")


BOMB = gzip.compress(bytes(200 << 20))


@pytest.mark.parametrize(
    ("body", "headers", "status", "why"),
    [
        (BOMB, PROTOBUF | {"content-encoding": "gzip"}, 413, b"more than 16 MB"),
        (bytes(MAX_BODY + 1), PROTOBUF, 413, b"more than 16 MB"),
        (b"\x0a\x00" * 600_000, PROTOBUF, 400, b"more than 500,000 messages"),
        (b"[" * 1_000_000, JSON, 400, b"no JSON"),
        (b"[{}" + b",{}" * 1_600_000 + b"]", JSON, 400, b"more than 1,500,000 lists and objects"),
        (b"[]", JSON, 400, b"no JSON object"),
        (b"x", JSON | {"content-encoding": "br"}, 400, b"not supported"),
        (gzip.compress(b"{}")[:-9], JSON | {"content-encoding": "gzip"}, 400, b"cut off"),
        (b"{}", {"content-type": "text/plain"}, 415, b"application/x-protobuf"),
        (json_of("x"), JSON, 200, b"no trace id"),
        (json_of("../" + "0" * 29), JSON, 200, b"no trace id"),
    ],
    ids=["bomb", "size", "messages", "depth", "values", "list", "br", "cut", "text", "id", "path"],
)
def test_a_hostile_request_is_refused_by_name(
    shared_collector: Collector, body: bytes, headers: dict[str, str], status: int, why: bytes
) -> None:
    found, said = shared_collector.post("/v1/traces", body, headers)
    assert found == status, said[:200]
    assert why in said
    peak = Path(f"/proc/{shared_collector.process.pid}/status").read_text()
    assert int(peak.partition("VmHWM:")[2].split()[0]) < 300_000


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:4318", 200),
        ("127.0.0.1", 200),
        ("evil.example", 400),
        ("127.0.0.1.evil.example:4318", 400),
        ("", 400),
    ],
)
def test_a_name_that_was_made_to_lead_here_is_refused(
    shared_collector: Collector, host: str, status: int
) -> None:
    found, _ = shared_collector.post("/v1/traces", json_of("x"), JSON | {"host": host})
    assert found == status


@pytest.fixture(scope="module")
def shared_collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with collecting(tmp_path_factory.mktemp("collect")) as collector:
        yield collector


def nested(levels: int) -> bytes:
    value: object = {"stringValue": "x"}
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    return json_of(TRACE, events=[{"name": "e", "attributes": [{"key": "k", "value": value}]}])


@pytest.mark.parametrize(("levels", "status"), [(60, 200), (120, 400), (300, 400)])
def test_values_that_are_nested_too_deeply_are_refused(
    shared_collector: Collector, levels: int, status: int
) -> None:
    found, said = shared_collector.post("/v1/traces", nested(levels), JSON)
    assert found == status
    assert status == 200 or b"a record cannot be kept: Recursion limit" in said


@pytest.mark.gate
def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with collecting(tmp_path) as collector:
        [port] = collector.ports
        again = subprocess.run(
            [sys.executable, "-m", "stumble", "collect", "--otlp", str(port)],
            env=os.environ | {"STUMBLE_STORE": str(tmp_path / "s")},
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert again.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in again.stderr


@pytest.mark.gate
def test_a_trace_is_a_run_while_the_collector_runs_and_grows(tmp_path: Path) -> None:
    with collecting(tmp_path) as collector:
        collector.post("/v1/traces", request("m1").SerializeToString(), PROTOBUF)
        limit = time.monotonic() + 60
        while not collector.runs() and time.monotonic() < limit:
            time.sleep(0.5)
        more = request("m2")
        [span] = more.resource_spans[0].scope_spans[0].spans
        span.span_id, span.start_time_unix_nano = b"12345678", 2 * 10**18
        collector.post("/v1/traces", more.SerializeToString(), PROTOBUF)
        assert collector.end()[0] == 0
        assert [row[:2] for row in collector.runs()] == [("m1", 2)]
