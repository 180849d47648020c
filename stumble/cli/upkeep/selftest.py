"""`stumble selftest`: verify the guarantees of replay on this machine."""

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from stumble.cli import options
from stumble.errors import ExitCode

if TYPE_CHECKING:
    from stumble.selftest.checks import SelftestCheck


@click.command(
    epilog="Exit codes: 0 all properties hold, 1 a property does not hold.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--keep",
    is_flag=True,
    help="Keep the tapes, the index, the logs and the agent's log.",
)
@click.option(
    "--provider",
    metavar="NAME",
    help="Ask a real model of this provider instead, with your key and at your cost: openai, "
    "anthropic, gemini or PROVIDER:MODEL.",
)
@click.option(
    "--dollars",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    show_default=True,
    help="With --provider: make no run that could exceed this by the price list.",
)
def selftest(as_json: bool, keep: bool, provider: str | None, dollars: float) -> None:
    """Verify on this machine that replay reports no false recovery, sends nothing upstream,
    reproduces bytes and chunk times, leaks no secret, and that a fault that fired is in the
    agent's next model request.

    Records, forks and replays a small agent on loopback, in a temporary folder with its own
    certificate authority and store. The agent logs all its traffic, and the tapes are compared
    with that log. Prints one line for each property, with its figure.

    With --provider a real model is recorded, replayed strictly, forked twice and run with a fault
    of its own; what differs from the expectations is printed, and written without any value to
    `selftest-NAME.json` in this folder, for a bug report.
    """
    if provider is not None:
        _test_provider(provider, dollars, as_json=as_json, keep=keep)
    from recorder import event_loop
    from recorder.proxy.corporate_proxy import read_proxy_settings
    from recorder.scratch_folder import make_scratch_folder
    from stumble.selftest.checks import run_selftest_checks
    from stumble.selftest.runner import gather_selftest_evidence

    with options.usage_errors():
        read_proxy_settings(os.environ)
    began = time.monotonic()
    with make_scratch_folder("stumble-selftest-", keep=keep) as folder:
        evidence = event_loop.run_event_loop(
            gather_selftest_evidence(folder, lambda what: click.echo(f"  {what}", err=True))
        )
        checks = tuple(run_selftest_checks(evidence))
    failed = [each.name for each in checks if each.holds is False]
    data = {
        "properties": [to_builtins(each) for each in checks],
        "failed": failed,
        "seconds": round(time.monotonic() - began, 1),
        "kept": str(folder) if keep else None,
    }
    click.echo(
        json.dumps(data) if as_json else "\n".join(_format_property(each) for each in checks)
    )
    if keep:
        click.echo(f"the evidence is kept in {folder}", err=True)
    if failed:
        click.echo(f"{', '.join(failed)}: a replay on this machine cannot be trusted", err=True)
        if not keep:
            click.echo("`stumble selftest --keep` keeps the tapes and the agent's log", err=True)
    raise SystemExit(ExitCode.FINDING if failed else ExitCode.OK)


def _test_provider(name: str, dollars: float, *, as_json: bool, keep: bool) -> None:
    """Test a real provider, write the report, and exit."""
    from recorder import event_loop
    from recorder.scratch_folder import make_scratch_folder
    from stumble.selftest.provider_choice import choose_provider
    from stumble.selftest.provider_report import build_provider_report
    from stumble.selftest.provider_runs import ProviderRuns

    with options.usage_errors():
        model = choose_provider(name)
    with make_scratch_folder("stumble-selftest-", keep=keep) as folder:
        (folder / "scratch").mkdir()
        runs = ProviderRuns(
            folder=folder,
            model=model,
            dollars=dollars,
            say=lambda what: click.echo(f"  {what}", err=True),
        )
        event_loop.run_event_loop(runs.make_all())
        report = build_provider_report(runs)
    path = Path(f"selftest-{model.provider}.json")
    path.write_text(json.dumps(report.data, indent=2) + "\n")
    lines = (*map(_format_property, report.checks), *report.differences, report.cost)
    click.echo(json.dumps(report.data) if as_json else "\n".join(lines))
    click.echo(f"the report, without any value, is {path}", err=True)
    if keep:
        click.echo(f"the evidence is kept in {folder}", err=True)
    raise SystemExit(ExitCode.OK if report.holds else ExitCode.FINDING)


def _format_property(found: "SelftestCheck") -> str:
    verdict = {True: "ok", False: "FAILED", None: "unknown"}[found.holds]
    return f"{verdict:7} {found.name:21} {found.figure}"
