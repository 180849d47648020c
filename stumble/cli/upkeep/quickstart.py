"""`stumble quickstart`: a first verdict in seconds, from a packed run; no key, no server."""

import json
import shutil
import time

import click

from stumble.errors import ExitCode


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def quickstart(as_json: bool) -> None:
    """Replay a packed run offline and show the verdict on it. Needs no key, no server and no
    network, and takes about five seconds.

    In the packed run a shop carries out a refund and its answer gets lost. The runs are kept in
    .stumble/quickstart, which is emptied first.
    """
    from stumble.quickstart.packed_run import PACK, run_quickstart_steps
    from stumble.user_data.paths import store_root

    began, store = time.monotonic(), store_root() / "quickstart"
    if store.exists():
        shutil.rmtree(store)
    steps = []
    for step in run_quickstart_steps(store):
        steps.append(step)
        if not as_json:
            click.echo(f"{click.style(step.title, bold=True)}\n$ {step.shown}\n{step.output}\n")
        if step.code != ExitCode.OK:
            break
    failed = next((step for step in steps if step.code != ExitCode.OK), None)
    if as_json:
        report = [{"command": s.shown, "code": s.code, "output": s.output} for s in steps]
        click.echo(json.dumps({"pack": str(PACK), "store": str(store), "steps": report}))
    elif failed is None:
        click.echo(f"{time.monotonic() - began:.1f} s. Your own agent, next:")
        click.echo("  stumble init                              writes stumble.toml and a scenario")
        click.echo("  stumble record -o run.tape -- COMMAND     records it, once")
        click.echo("  stumble fork run.tape --fault lost_ack --where side=write")
    if failed is not None:
        raise SystemExit(failed.code)
