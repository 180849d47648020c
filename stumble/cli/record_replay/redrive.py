"""`stumble redrive`: send the recorded tool calls to a real service and report drift."""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from stumble.cli import options
from stumble.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from stumble.drift.redrive import RedrivenCall

_SHOWN_VALUES = 5


@click.command(
    epilog="Exit codes: 0 no drift, 1 status or schema drifted (or a value, with --values), "
    "5 no call was sent.",
)
@options.tape_argument
@click.option(
    "--against",
    "targets",
    multiple=True,
    required=True,
    metavar="URL | ORIGIN=URL",
    help="URL of the service. For several recorded services: "
    "https://api.shop.com=https://staging...",
)
@click.option("--writes", is_flag=True, help="Also send calls that may change data.")
@click.option(
    "--header",
    "header_texts",
    multiple=True,
    metavar="NAME=VALUE",
    help="Header to send with every call, since recorded secrets are redacted: "
    "--header 'Authorization=Bearer ...'",
)
@click.option("--values", is_flag=True, help="Count a changed value as drift.")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    default=5.0,
    show_default=True,
    help="Maximum number of calls per second.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of one call, and of waiting for a busy service, in seconds.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Path of the new tape; default: a tape in the store.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def redrive(
    tape: Path,
    targets: tuple[str, ...],
    writes: bool,
    header_texts: tuple[str, ...],
    values: bool,
    rate: float,
    timeout: float,
    output: Path | None,
    as_json: bool,
) -> None:
    """Send the tool calls of a recording to a real service and report how its answers drifted.

    Without --writes only reads (GET, HEAD, OPTIONS) are sent. After status 429 or 503 the call
    is sent again, after the time in Retry-After. The new answers are recorded on a new tape.

    \b
    stumble redrive refund.tape --against https://staging.shop.com
    stumble redrive refund.tape --against http://127.0.0.1:8080 --header "X-Key=$KEY" --json
    """
    import httpx

    from replay.redrive import RequestSender
    from stumble.drift import redrive as calls
    from stumble.store import index
    from stumble.store.tape_files import keep_tape, load_tape, seal_finished_tape
    from stumble.user_data.paths import new_trajectory_id, store_root
    from traces.model import RunEnding, Trajectory
    from traces.store.trace_store import TraceStore
    from traces.tape.writer import TapeWriter

    recording = load_tape(tape)
    recorded_calls = calls.collect_http_tool_calls(recording)
    sendable, skipped = calls.select_sendable_calls(recorded_calls, writes=writes)
    bases = _map_origins(targets, calls.list_call_origins(sendable))
    if output is not None:
        options.check_new_tape_path(output)
    headers = tuple(options.parse_option_pairs(header_texts).items())
    store, id = TraceStore(store_root()), new_trajectory_id()
    path = output or store.tapes / f"{id}.tape"
    began = time.monotonic()
    run = Trajectory(
        id=id, recorded_at=time.time(), source="redrive", parent=recording.trajectory.id
    )
    secrets = [value.partition(" ")[2] or value for _, value in headers]
    with (
        TapeWriter(path, run, secrets=secrets) as writer,
        httpx.Client(timeout=timeout, follow_redirects=False) as client,
    ):
        sender = RequestSender(client, lambda: time.monotonic() - began, rate, timeout)
        show = (lambda each: None) if as_json else _print_redriven
        results = list(calls.redrive_calls(sendable, bases, sender, writer, headers, show))
        writer.write_ending(RunEnding(ended="final", at=time.monotonic() - began))
    seal_finished_tape(path)
    keep_tape(store, path, id)
    index.refresh_index(store)
    data = _redrive_to_dict(results, skipped, path)
    click.echo(json.dumps(data) if as_json else _format_redrive_report(data))
    drifted = any(
        each.is_broken or (values and each.drift and each.drift.values) for each in results
    )
    raise SystemExit(
        ExitCode.NOT_ENOUGH if not results else ExitCode.FINDING if drifted else ExitCode.OK
    )


def _map_origins(targets: Sequence[str], origins: Sequence[str]) -> Mapping[str, str]:
    """Map each recorded origin to its target URL. Raises UsageError if one is ambiguous."""
    named = {
        origin.rstrip("/"): url
        for origin, url in (text.split("=", 1) for text in targets if _is_origin_pair(text))
    }
    alone = [text for text in targets if not _is_origin_pair(text)]
    for url in [*alone, *named.values()]:
        if not _is_http_url(url):
            raise UsageError(f"--against {url}: not an http:// or https:// URL")
    rest = [origin for origin in origins if origin not in named]
    if len(alone) > 1 or (alone and len(rest) > 1) or (rest and not alone):
        each = " ".join(f"--against {origin}=URL" for origin in origins)
        raise UsageError(f"the recording called {len(origins)} services; give each a URL: {each}")
    return named | {origin: alone[0] for origin in rest}


def _is_http_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and (parts.port or 80) > 0
    except ValueError:  # a port that is no number, an address that is no IPv6 address
        return False
    return has_host and parts.scheme in ("http", "https") and text.isprintable()


def _is_origin_pair(text: str) -> bool:
    return "=http" in text and text.startswith(("http://", "https://"))


def _print_redriven(each: "RedrivenCall") -> None:
    click.echo("\n".join(_format_redriven(each)))


def _format_redriven(each: "RedrivenCall") -> list[str]:
    request, drift = each.recorded.request, each.drift
    was = each.recorded.response.status if each.recorded.response else each.recorded.error
    now = each.now.response.status if each.now.response else each.now.error
    verdict = (
        "drifted"
        if each.is_broken
        else "same but for values"
        if _count_value_changes(each)
        else "same"
    )
    tries = f", attempt {each.attempts}" if each.attempts > 1 else ""
    lines = [f"{request.method} {request.url}: {was} -> {now}, {verdict}{tries}"]
    if drift is None:
        return lines
    lines += [f"  added    {path}" for path in drift.added[:_SHOWN_VALUES]]
    lines += [f"  removed  {path}" for path in drift.removed[:_SHOWN_VALUES]]
    lines += [f"  retyped  {what}" for what in drift.retyped[:_SHOWN_VALUES]]
    lines += [f"  value    {path}: {a} -> {b}" for path, a, b in drift.values[:_SHOWN_VALUES]]
    more = sum(
        max(0, len(part) - _SHOWN_VALUES)
        for part in (drift.added, drift.removed, drift.retyped, drift.values)
    )
    return [*lines, f"  and {more} more"] if more else lines


def _count_value_changes(each: "RedrivenCall") -> int:
    return len(each.drift.values) if each.drift else 0


def _redrive_to_dict(
    results: Sequence["RedrivenCall"], skipped: Counter[str], path: Path
) -> dict[str, object]:
    """Return the report as JSON-compatible data."""
    from msgspec import to_builtins

    from stumble.drift.redrive import measure_latency

    return {
        "tape": str(path),
        "sent": len(results),
        "skipped": dict(skipped),
        "drifted": sum(each.is_broken for each in results),
        "values_changed": sum(_count_value_changes(each) for each in results),
        "latency_recorded": measure_latency([each.recorded for each in results]),
        "latency_now": measure_latency([each.now for each in results]),
        "calls": [
            {
                "seq": each.recorded.seq,
                "method": each.recorded.request.method,
                "url": each.recorded.request.url,
                "sent_to": each.now.request.url,
                "attempts": each.attempts,
                "error": each.now.error,
                "drift": to_builtins(each.drift) if each.drift else None,
            }
            for each in results
        ],
    }


def _format_redrive_report(table: Mapping[str, object]) -> str:
    skipped, was, now = table["skipped"], table["latency_recorded"], table["latency_now"]
    assert isinstance(skipped, dict)
    lines = [
        f"{table['sent']} sent, {table['drifted']} drifted in status or schema, "
        f"{table['values_changed']} values changed"
    ]
    lines += [f"{many} not sent: {why}" for why, many in skipped.items()]
    if isinstance(was, dict) and isinstance(now, dict):
        lines.append(
            f"latency p50 {was['p50_ms']} -> {now['p50_ms']} ms, "
            f"p95 {was['p95_ms']} -> {now['p95_ms']} ms over {now['calls']} calls"
        )
    return "\n".join([*lines, f"answers kept in {table['tape']}"])
