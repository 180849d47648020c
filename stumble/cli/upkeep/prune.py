"""`stumble prune`: remove old runs from the store."""

import json
import re

import click

from stumble.errors import UsageError

UNITS = {"h": 3_600, "d": 86_400, "w": 604_800, "MB": 10**6, "GB": 10**9, "TB": 10**12}
MAX_SHOWN = 20


@click.command()
@click.option("--older-than", "age", metavar="AGE", help="Remove what is older: 12h, 30d, 8w.")
@click.option(
    "--keep", "size", metavar="SIZE", help="Remove the oldest until the tapes fit: 500MB, 20GB."
)
@click.option("--yes", is_flag=True, help="Remove it; without, it is only listed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def prune(age: str | None, size: str | None, yes: bool, as_json: bool) -> None:
    """List the runs of the store that are too old or too many, and with --yes remove them.

    Runs that belong together go together or stay: a recording with its forks and replays, a fault
    with its clean twins, all runs of a campaign. Their age is that of the youngest. Sealed and
    running campaigns stay, and so do tapes with a name outside of the store (record -o FILE).
    Contents of workspaces go once no tape needs them and they are a day old.

    Removed runs cannot be brought back: `stumble push` or `stumble pack` them before. Do not
    prune while something is being recorded.

    \b
    stumble prune --older-than 90d
    stumble prune --older-than 90d --keep 20GB --yes
    """
    from stumble.store.open_store import open_indexed_store
    from stumble.store.prune import plan_pruning, prune_store

    if age is None and size is None:
        raise UsageError("nothing to prune by: give --older-than AGE, --keep SIZE or both")
    older_than = None if age is None else _parse_amount("--older-than", age, ("h", "d", "w"))
    keep = None if size is None else _parse_amount("--keep", size, ("MB", "GB", "TB"))
    store = open_indexed_store()
    plan = plan_pruning(store, older_than=older_than, keep_bytes=keep)
    freed = prune_store(store, plan) if yes else None
    if as_json:
        document = {
            "removed": yes,
            "runs": plan.runs,
            "tape_bytes": plan.bytes,
            "workspace_bytes": freed,
            "stays": {group.name: group.stays for group in plan.staying} | dict(plan.kept_tapes),
        }
        click.echo(json.dumps(document))
        return
    for group in plan.going[:MAX_SHOWN]:
        click.echo(f"{group.name}: {len(group.runs)} runs, {group.bytes:,} bytes")
    if len(plan.going) > MAX_SHOWN:
        click.echo(f"  and {len(plan.going) - MAX_SHOWN} more")
    for group in plan.staying:
        click.echo(f"stays: {group.name}, {len(group.runs)} runs: {group.stays}")
    for run, why in plan.kept_tapes.items():
        click.echo(f"stays: {run}: {why}")
    done = "removed" if yes else "would be removed; --yes removes them"
    click.echo(f"{len(plan.runs)} runs, {plan.bytes:,} bytes of tapes {done}")


def _parse_amount(option: str, text: str, units: tuple[str, ...]) -> int:
    found = re.fullmatch(rf"(\d+(?:\.\d+)?)\s?({'|'.join(units)})", text)
    if found is None:
        raise UsageError(f"{option} {text}: a number with {', '.join(units[:-1])} or {units[-1]}")
    return round(float(found[1]) * UNITS[found[2]])
