"""`stumble extensions`: what installed packages add."""

import json

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def extensions(as_json: bool) -> None:
    """List commands, query engines and sources of rates that installed packages add.

    Nothing of them is imported. docs/extensions.md describes how to write one; third-party faults
    are in `stumble faults`.
    """
    from msgspec import to_builtins

    from stumble.extensions import GROUPS, list_extensions

    found = list_extensions()
    if as_json:
        click.echo(json.dumps([to_builtins(each) for each in found]))
        return
    for each in found:
        click.echo(f"{each.name:12} {GROUPS[each.group]:20} {each.package} ({each.value})")
