"""grpcio's client before grpcio's server: recorded over HTTP/2, replayed over HTTP/2 without it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc  # type: ignore[import-untyped]

from tests.support.servers.raw_servers import server_ca, write_server_pem
from tests.support.warm_stumble import CommandResult

HOST = "shop.example"
AGENT = f"""
import grpc
channel = grpc.secure_channel("{HOST}:443", grpc.ssl_channel_credentials())
print(channel.unary_unary("/shop.Orders/Get")(b"7", timeout=60))
print(list(channel.unary_stream("/shop.Orders/List")(b"x" * 100000, timeout=60)))
try:
    channel.unary_unary("/shop.Orders/Fail")(b"7", timeout=60)
except grpc.RpcError as error:
    print(error.code().name, error.details())
"""
SAID = f"b'got 7'\n[{b'x' * 100000!r}, b'end']\nNOT_FOUND no order\n"


class Orders(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Three methods on bytes."""

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        match details.method:
            case "/shop.Orders/Get":
                return grpc.unary_unary_rpc_method_handler(lambda asked, _: b"got " + asked)
            case "/shop.Orders/List":
                return grpc.unary_stream_rpc_method_handler(lambda asked, _: iter([asked, b"end"]))
        return grpc.unary_unary_rpc_method_handler(
            lambda _, context: context.abort(grpc.StatusCode.NOT_FOUND, "no order")
        )


@contextmanager
def serving_orders() -> Iterator[int]:
    """Serve the methods with a certificate of the test's CA; yields the port."""
    pem = write_server_pem(HOST).read_bytes()
    key, _, chain = pem.partition(b"-----BEGIN CERT")
    given = grpc.ssl_server_credentials([(key, b"-----BEGIN CERT" + chain)])
    server = grpc.server(ThreadPoolExecutor(2), handlers=[Orders()])
    port = server.add_secure_port("127.0.0.1:0", given)
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


def stumble(folder: Path, *arguments: str) -> CommandResult:
    trust = dict.fromkeys(("SSL_CERT_FILE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"), str(server_ca()))
    done = subprocess.run(
        [sys.executable, "-m", "stumble", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120,
        env=os.environ | {"STUMBLE_STORE": str(folder / ".stumble")} | trust,
    )  # fmt: skip
    return CommandResult(code=done.returncode, out=done.stdout, err=done.stderr)


def test_calls_streams_and_failures_of_grpc_replay_strictly_and_have_names(tmp_path: Path) -> None:
    agent = ("--", sys.executable, "-c", AGENT)
    with serving_orders() as port:
        host = f"{HOST}=127.0.0.1:{port}"
        completed = stumble(
            tmp_path, "record", "--times", "1", "-o", "a.tape", "--host", host, *agent
        )
    assert (completed.code, completed.out) == (0, SAID), completed.err
    completed = stumble(tmp_path, "replay", "a.tape")
    assert (completed.code, completed.out) == (0, SAID), completed.err
    assert "3 answered from the tape, 0 upstream, 0 diverged" in completed.err
    names = ["shop.Orders/Get", "shop.Orders/List", "shop.Orders/Fail"]
    rows = stumble(tmp_path, "show", "a.tape", "--exchanges", "--json").json
    assert [row["rpc"] for row in rows] == names
    query = "select distinct rpc from exchanges where rpc is not null"
    result = stumble(tmp_path, "sql", query, "--format", "csv")
    assert sorted(result.out.split()[1:]) == sorted(names), result.err
