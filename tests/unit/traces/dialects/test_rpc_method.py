"""Methods of RPC in requests of grpcio 1.7x, of A2A's SDK 1.3.0 and of MCP, and in none."""

import gzip
import json

import pytest

from traces.dialects.rpc_method import read_rpc_method
from traces.model import Headers, Request

SEND = {
    "jsonrpc": "2.0",
    "id": "ae148691-82bf-46cd-bfd8-9f1cf9f5ccef",
    "method": "SendMessage",
    "params": {"message": {"messageId": "b7288c0c", "role": "ROLE_USER", "parts": [{"text": "a"}]}},
}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_order"}}
JSON: Headers = (("content-type", "application/json"),)
GRPC: Headers = (("content-type", "application/grpc"),)
WEB: Headers = (("Content-Type", "application/grpc-web+proto"),)


def post(url: str, headers: Headers, body: object) -> Request:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request(method="POST", url=url, headers=headers, body=data)


@pytest.mark.parametrize(
    ("request_", "method"),
    [
        (post("https://a.test/shop.Orders/Get", GRPC, b"\0\0\0\0\0"), "shop.Orders/Get"),
        (post("https://a.test/api/shop.Orders/Get?x=1", WEB, b""), "shop.Orders/Get"),
        (post("https://a.test/Get", GRPC, b""), None),
        (post("https://a.test/shop.Orders/Get", JSON, {}), None),
        (post("http://a.test/", JSON, SEND), "SendMessage"),
        (
            post(
                "http://a.test/",
                (*JSON, ("content-encoding", "gzip")),
                gzip.compress(json.dumps(SEND).encode()),
            ),
            "SendMessage",
        ),
        (post("http://a.test/mcp", JSON, CALL), "tools/call get_order"),
        (post("http://a.test/", JSON, [SEND]), None),
        (post("http://a.test/", JSON, SEND | {"method": 1}), None),
        (post("http://a.test/", JSON, SEND | {"jsonrpc": "1.0"}), None),
        (post("http://a.test/", JSON, b'{"jsonrpc": "2.0", "method": '), None),
    ],
)
def test_a_method_is_read_from_the_path_or_the_body(request_: Request, method: str | None) -> None:
    assert read_rpc_method(request_) == method
