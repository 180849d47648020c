"""The options of `stumble record --daemon`, and its start."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.errors import HarnessError, UsageError

if TYPE_CHECKING:
    from stumble.runs.environment.upstream_trust import UpstreamTrust

LISTEN_DEFAULT = "127.0.0.1:8080"
METRICS_DEFAULT = "127.0.0.1:9464"


def daemon_options[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Add `--daemon`, `--listen`, `--metrics` and `--daemon-rules`."""
    options = (
        click.option(
            "--daemon",
            is_flag=True,
            help="Start no agent: serve as a proxy for any number of agents until SIGTERM, and "
            "record each conversation on a tape of its own (docs/daemon.md).",
        ),
        click.option(
            "--listen",
            metavar="HOST:PORT",
            help=f"With --daemon: where agents reach the proxy; default: {LISTEN_DEFAULT}.",
        ),
        click.option(
            "--metrics",
            metavar="HOST:PORT",
            help="With --daemon: /metrics for Prometheus, /healthz and /readyz; default: "
            f"{METRICS_DEFAULT}, `off` for none.",
        ),
        click.option(
            "--daemon-rules",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="With --daemon: how conversations are told apart, sampled and deleted; SIGHUP "
            "reads it again.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def check_daemon_options(given: Mapping[str, object]) -> None:
    """Raise UsageError for an option that has no meaning without --daemon."""
    for name in ("listen", "metrics", "daemon_rules"):
        if given[name] is not None:
            raise UsageError(f"--{name.replace('_', '-')} needs --daemon")


def serve_daemon(
    listen: str | None,
    metrics: str | None,
    rules: Path | None,
    hosts: Mapping[str, tuple[str, int]],
    trust: "UpstreamTrust",
    command: tuple[str, ...],
) -> None:
    """Serve until told to end. Raises UsageError or, without sockets, HarnessError."""
    import os

    from recorder import event_loop
    from recorder.agent.env import write_ca_bundle
    from recorder.ca import ensure_ca_certificate
    from recorder.scratch_folder import make_scratch_folder
    from scenarios.toml_reader import ScenarioError
    from stumble.daemon.service import DaemonOptions, RecordingDaemon, open_sockets
    from stumble.user_data.paths import prepare_ca_folder, store_root
    from traces.store.store_dir import StoreDirectory

    if command:
        raise UsageError("--daemon starts no agent: omit the command, and give agents its address")
    ca, store = prepare_ca_folder(), StoreDirectory(store_root())
    with make_scratch_folder() as scratch:
        bundle = write_ca_bundle(ensure_ca_certificate(ca), scratch, os.environ)
        options = DaemonOptions(
            listen=_parse_address("--listen", listen or LISTEN_DEFAULT),
            metrics=None
            if metrics == "off"
            else _parse_address("--metrics", metrics or METRICS_DEFAULT),
            rules=rules,
            root=store.root,
            ca=ca,
            route=trust.make_route(hosts, bundle, scratch),
        )

        def say(line: str) -> None:
            with suppress(OSError):  # a log on a full disk, or nobody reads it any more
                click.echo(f"stumble: {line}", err=True)

        try:
            sockets = open_sockets(options)
        except OSError as error:
            raise HarnessError(f"{listen or LISTEN_DEFAULT}: {error.strerror}") from None

        async def run() -> None:
            await RecordingDaemon(options, say).run(sockets)

        try:
            event_loop.run_event_loop(run())
        except ScenarioError as error:
            raise UsageError(str(error)) from None


def _parse_address(option: str, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"{option} {text!r}: write HOST:PORT, as 127.0.0.1:8080")
    return host.strip("[]") or "127.0.0.1", int(port)
