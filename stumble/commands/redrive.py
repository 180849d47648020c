"""`stumble redrive`: the recorded tool calls, sent to a real service."""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble import options
from stumble.exits import Exits, Wrong

if TYPE_CHECKING:
    from stumble.redrive import Redriven

_SHOWN = 5


@click.command(
    short_help="Send the recorded tool calls to a real service and report drift.",
    epilog="Exit codes: 0 no drift, 1 status or schema drifted (or a value, with --values).",
)
@options.tape_path
@click.option(
    "--against",
    "targets",
    multiple=True,
    required=True,
    metavar="URL | ORIGIN=URL",
    help="The service. With several recorded services: https://api.shop.com=https://staging...",
)
@click.option("--writes", is_flag=True, help="Send calls that may change something, too.")
@click.option(
    "--header",
    "header_texts",
    multiple=True,
    metavar="NAME=VALUE",
    help="Sent with every call: recorded secrets are gone. --header 'Authorization=Bearer ...'",
)
@click.option("--values", is_flag=True, help="A changed value counts as drift.")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    default=5.0,
    show_default=True,
    help="Calls a second, at most.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How long one call may take, and how long a busy service is waited for.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The new tape; by default one in the store.",
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
    """Send the tool calls of a recording to a real service, and say how its answers drifted.

    Only reads (GET, HEAD, OPTIONS) are sent unless --writes is given. A service that says 429
    or 503 is waited for as its Retry-After says. The new answers make a tape of their own.

    \b
    stumble redrive refund.tape --against https://staging.shop.com
    stumble redrive refund.tape --against http://127.0.0.1:8080 --header "X-Key=$KEY" --json
    """
    import httpx

    from replay.redrive import Sender
    from stumble import indexing
    from stumble import redrive as calls
    from stumble.home import new_id, store_root
    from stumble.tapes import close, load
    from traces.model import Ending, Trajectory
    from traces.store import Store
    from traces.tape import Writer

    recording = load(tape)
    every = calls.calls(recording)
    found, skipped = calls.chosen(every, writes=writes)
    bases = _bases(targets, calls.origins(found))
    if output is not None:
        options.check_new(output)
    headers = tuple(options.pairs(header_texts).items())
    store, id = Store(store_root()), new_id()
    path = output or store.tapes / f"{id}.tape"
    began = time.monotonic()
    run = Trajectory(
        id=id, recorded_at=time.time(), source="redrive", parent=recording.trajectory.id
    )
    secrets = [value.partition(" ")[2] or value for _, value in headers]
    with (
        Writer(path, run, secrets=secrets) as writer,
        httpx.Client(timeout=timeout, follow_redirects=False) as client,
    ):
        sender = Sender(client, lambda: time.monotonic() - began, rate, timeout)
        show = (lambda each: None) if as_json else _show
        results = list(calls.redrive(found, bases, sender, writer, headers, show))
        writer.ending(Ending(ended="final", at=time.monotonic() - began))
    close(path)
    indexing.adopt(store, path, id)
    indexing.refresh(store)
    said = _said(results, skipped, path)
    click.echo(json.dumps(said) if as_json else _report(said))
    drifted = any(each.broke or (values and each.drift and each.drift.values) for each in results)
    raise SystemExit(Exits.NOT_ENOUGH if not results else Exits.FINDING if drifted else Exits.OK)


def _bases(targets: Sequence[str], origins: Sequence[str]) -> Mapping[str, str]:
    """Recorded origin to the URL that stands for it; Wrong where that is not clear."""
    named = {
        origin.rstrip("/"): url
        for origin, url in (text.split("=", 1) for text in targets if _is_pair(text))
    }
    alone = [text for text in targets if not _is_pair(text)]
    for url in [*alone, *named.values()]:
        if not url.startswith(("http://", "https://")):
            raise Wrong(f"--against {url}: not an http:// or https:// URL")
    rest = [origin for origin in origins if origin not in named]
    if len(alone) > 1 or (alone and len(rest) > 1) or (rest and not alone):
        each = " ".join(f"--against {origin}=URL" for origin in origins)
        raise Wrong(f"the recording called {len(origins)} services; say where each is: {each}")
    return named | {origin: alone[0] for origin in rest}


def _is_pair(text: str) -> bool:
    return "=http" in text and text.startswith(("http://", "https://"))


def _show(each: "Redriven") -> None:
    click.echo("\n".join(_lines(each)))


def _lines(each: "Redriven") -> list[str]:
    request, drift = each.recorded.request, each.drift
    was = each.recorded.response.status if each.recorded.response else each.recorded.error
    now = each.now.response.status if each.now.response else each.now.error
    verdict = "drifted" if each.broke else "same but for values" if _values(each) else "same"
    tries = f", attempt {each.attempts}" if each.attempts > 1 else ""
    lines = [f"{request.method} {request.url}: {was} -> {now}, {verdict}{tries}"]
    if drift is None:
        return lines
    lines += [f"  added    {path}" for path in drift.added[:_SHOWN]]
    lines += [f"  removed  {path}" for path in drift.removed[:_SHOWN]]
    lines += [f"  retyped  {what}" for what in drift.retyped[:_SHOWN]]
    lines += [f"  value    {path}: {a} -> {b}" for path, a, b in drift.values[:_SHOWN]]
    more = sum(
        max(0, len(part) - _SHOWN)
        for part in (drift.added, drift.removed, drift.retyped, drift.values)
    )
    return [*lines, f"  and {more} more"] if more else lines


def _values(each: "Redriven") -> int:
    return len(each.drift.values) if each.drift else 0


def _said(results: Sequence["Redriven"], skipped: Counter[str], path: Path) -> dict[str, object]:
    """The whole as plain data."""
    from dataclasses import asdict

    from stumble.redrive import latency

    return {
        "tape": str(path),
        "sent": len(results),
        "skipped": dict(skipped),
        "drifted": sum(each.broke for each in results),
        "values_changed": sum(_values(each) for each in results),
        "latency_recorded": latency([each.recorded for each in results]),
        "latency_now": latency([each.now for each in results]),
        "calls": [
            {
                "seq": each.recorded.seq,
                "method": each.recorded.request.method,
                "url": each.recorded.request.url,
                "sent_to": each.now.request.url,
                "attempts": each.attempts,
                "error": each.now.error,
                "drift": asdict(each.drift) if each.drift else None,
            }
            for each in results
        ],
    }


def _report(said: Mapping[str, object]) -> str:
    skipped, was, now = said["skipped"], said["latency_recorded"], said["latency_now"]
    assert isinstance(skipped, dict)
    lines = [
        f"{said['sent']} sent, {said['drifted']} drifted in status or schema, "
        f"{said['values_changed']} values changed"
    ]
    lines += [f"{many} not sent: {why}" for why, many in skipped.items()]
    if isinstance(was, dict) and isinstance(now, dict):
        lines.append(
            f"latency p50 {was['p50_ms']} -> {now['p50_ms']} ms, "
            f"p95 {was['p95_ms']} -> {now['p95_ms']} ms over {now['calls']} calls"
        )
    return "\n".join([*lines, f"answers kept in {said['tape']}"])
