"""OTLP over gRPC. grpcio is the extra `grpc`: 15 MB that only exporters without HTTP need."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from stumble.collect.collector import SIGNALS, OtlpSignal, SpanCollector
from stumble.collect.otlp_request import (
    MAX_BODY,
    PROTOBUF,
    make_otlp_answer,
    read_otlp_body,
)

if TYPE_CHECKING:
    import grpc  # type: ignore[import-untyped]

CLOSE_SECONDS = 5.0
_SERVICES = {
    "traces": "opentelemetry.proto.collector.trace.v1.TraceService",
    "logs": "opentelemetry.proto.collector.logs.v1.LogsService",
}


@contextmanager
def serve_grpc(collector: SpanCollector, address: str) -> Iterator[int]:
    """Serve on an address until the block ends; yield the port.

    Raises ImportError if grpcio is not installed, OSError if the address is in use.
    """
    import grpc

    server = grpc.server(
        ThreadPoolExecutor(2),
        options=[("grpc.max_receive_message_length", MAX_BODY), ("grpc.so_reuseport", 0)],
        maximum_concurrent_rpcs=16,
    )
    for name, service in _SERVICES.items():
        method = grpc.unary_unary_rpc_method_handler(partial(_export, collector, SIGNALS[name]))
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"Export": method}),)
        )
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(str(error)) from None
    server.start()
    try:
        yield port
    finally:
        server.stop(CLOSE_SECONDS).wait()


def _export(
    collector: SpanCollector, kind: OtlpSignal, body: bytes, context: "grpc.ServicerContext"
) -> bytes:
    """Answer one request; its compression is undone by gRPC, its size is bound there too."""
    import grpc

    try:
        rejected = collector.take(read_otlp_body(body, PROTOBUF, None, kind.message), kind)
    except (ValueError, RecursionError) as error:
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    return make_otlp_answer(PROTOBUF, rejected, kind.rejected)
