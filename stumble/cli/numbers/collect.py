"""`stumble collect`: take spans from OpenTelemetry exporters."""

import socket
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import click

from stumble.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from stumble.collect.collector import CollectedCounts, SpanCollector

OTLP_PORT = 4318


@click.command()
@click.option(
    "--otlp",
    "port",
    type=click.IntRange(0, 65535),
    default=OTLP_PORT,
    show_default=True,
    help="Port of OTLP over HTTP; 0: any free one.",
)
@click.option(
    "--grpc",
    "grpc_port",
    type=click.IntRange(0, 65535),
    help="Port of OTLP over gRPC as well, usually 4317 (needs the extra: stumble[grpc]).",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Whoever reaches it can add runs.",
)
def collect(port: int, grpc_port: int | None, host: str) -> None:
    """Take spans from OpenTelemetry exporters; each trace with a model or a tool is a run.

    Protobuf and JSON, gzipped or not, of any SDK or collector; log records with GenAI events
    belong to their spans, metrics are ignored. Secrets are redacted before anything is written.
    A trace is imported once it has been idle for 5 seconds, and again if it grows; Ctrl-C imports
    the rest. Such runs can be asked about, shown and exported (`fidelity` is `span`); they hold no
    bytes, so they are not replayed.

    \b
    stumble collect
    OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 python agent.py
    stumble sql "select trajectory_id, model, n_steps from trajectories where fidelity = 'span'"
    """
    from stumble.collect.collector import SpanCollector
    from stumble.collect.http_server import serve_otlp
    from stumble.user_data.paths import store_root
    from traces.store.trace_store import TraceStore

    with ExitStack() as stack:
        listener = stack.enter_context(closing(_listen(host, port)))
        collector = SpanCollector(TraceStore(store_root()), _warn)
        collector.import_left()
        if grpc_port is not None:
            number = _start_grpc(stack, collector, host, grpc_port)
            click.echo(f"OTLP over gRPC: {_to_address(host, number)}")
        click.echo(f"OTLP over HTTP: http://{_to_address(host, listener.getsockname()[1])}")
        click.echo("Ctrl-C ends it.")
        serve_otlp(collector, listener)
    counts = collector.finish()
    for line in _format_counts(counts):
        click.echo(line)
    if counts.rejected or counts.refused:
        raise SystemExit(ExitCode.FINDING)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        address = _to_address(host, port)
        raise UsageError(
            f"cannot listen on {address}: {error.strerror}; give another --otlp PORT"
        ) from None


def _start_grpc(stack: ExitStack, collector: "SpanCollector", host: str, port: int) -> int:
    from stumble.collect.grpc_server import serve_grpc

    try:
        return stack.enter_context(serve_grpc(collector, _to_address(host, port)))
    except ImportError:
        raise UsageError(
            "--grpc needs grpcio: pip install 'stumble[grpc]'; OTLP over HTTP needs nothing"
        ) from None
    except OSError:
        raise UsageError(f"cannot listen on {_to_address(host, port)} for gRPC") from None


def _to_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _warn(text: str) -> None:
    click.echo(text, err=True)


def _format_counts(counts: "CollectedCounts") -> list[str]:
    n = counts.runs
    lines = [f"{counts.spans:,} records; {n:,} run{'' if n == 1 else 's'}"]
    if counts.without_content:
        lines.append(f"{counts.without_content:,} traces without a model or a tool")
    if counts.rejected:
        lines.append(f"{counts.rejected:,} records not kept")
    return lines + [f"refused trace {each}" for each in counts.refused]
