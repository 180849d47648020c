"""The method that a request calls: of MCP, of gRPC, or of JSON-RPC, such as A2A's `SendMessage`."""

from urllib.parse import urlsplit

from traces.bodies.canonical_json import parse_exact_json
from traces.bodies.content_encoding import decode_content_or_raw
from traces.dialects import mcp
from traces.model import Request, find_header


def read_rpc_method(request: Request) -> str | None:
    """Return the method that a request calls by an RPC; None of any other request."""
    mcp_or_grpc = read_mcp_method(request) or read_grpc_method(request)
    return mcp_or_grpc or read_json_method(request)


def read_mcp_method(request: Request) -> str | None:
    """Return the MCP method of a request, such as `tools/list` or `tools/call get_order`."""
    message = mcp.read_client_message(request)
    if message is None:
        return None
    if message.call is not None:
        return f"{message.method} {message.call.name}"
    return {"GET": "listens", "DELETE": "ends the session"}.get(message.method, message.method)


def read_grpc_method(request: Request) -> str | None:
    """Return service and method of a gRPC call, such as `shop.Orders/Get`.

    Its path is `/SERVICE/METHOD`, its type `application/grpc` with an encoding or none
    (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).
    """
    media_type = find_header(request.headers, "content-type") or ""
    if not media_type.startswith("application/grpc"):
        return None
    service, _, method = urlsplit(request.url).path.rpartition("/")
    return f"{service.rpartition('/')[2]}/{method}" if service and method else None


def read_json_method(request: Request) -> str | None:
    """Return the method of a JSON-RPC 2.0 request that is not a batch."""
    if not mcp.mentions_json_rpc(request):
        return None
    try:
        message = parse_exact_json(decode_content_or_raw(request.headers, request.body))
    except (ValueError, RecursionError):
        return None
    method = message.get("method") if isinstance(message, dict) else None
    is_call = isinstance(message, dict) and message.get("jsonrpc") == "2.0"
    return method if is_call and isinstance(method, str) else None
