"""`stumble selftest`: what replay promises, proved on this machine."""

import json
import os
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble import options
from stumble.exits import Exits

if TYPE_CHECKING:
    from stumble.properties import Property


@click.command(
    short_help="Prove on this machine what replay promises.",
    epilog="Exit codes: 0 all properties hold, 1 one does not.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--keep", is_flag=True, help="Keep tapes, index, logs and the agent's notes.")
def selftest(as_json: bool, keep: bool) -> None:
    """Prove on this machine that replay cannot report a false recovery, lets nothing upstream,
    reproduces bytes and chunk times, leaks no secret, and that a fault that fired is in the
    agent's next model request.

    A small agent is recorded, forked and replayed on loopback, in a temporary folder with a
    certificate authority and a store of its own. It writes down all that it says and hears, and
    what a tape says is held against that. One line for each property, with its figure.
    """
    from recorder import loop
    from recorder.outer import way_out
    from stumble.properties import properties
    from stumble.selftest import gather

    with options.usage_errors():
        way_out(os.environ)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stumble-selftest-", delete=not keep) as name:
        evidence = loop.run(gather(Path(name), lambda what: click.echo(f"  {what}", err=True)))
        found = tuple(properties(evidence))
    failed = [each.name for each in found if each.holds is False]
    said = {
        "properties": [asdict(each) for each in found],
        "failed": failed,
        "seconds": round(time.monotonic() - began, 1),
        "kept": name if keep else None,
    }
    click.echo(json.dumps(said) if as_json else "\n".join(_line(each) for each in found))
    if keep:
        click.echo(f"the evidence is kept in {name}", err=True)
    if failed:
        click.echo(f"{', '.join(failed)}: a replay on this machine cannot be trusted", err=True)
        if not keep:
            click.echo("`stumble selftest --keep` keeps the tapes and the agent's notes", err=True)
    raise SystemExit(Exits.FINDING if failed else Exits.OK)


def _line(found: "Property") -> str:
    verdict = {True: "ok", False: "FAILED", None: "unknown"}[found.holds]
    return f"{verdict:7} {found.name:21} {found.figure}"
