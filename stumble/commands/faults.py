"""`stumble faults`: what can go wrong."""

import json

import click

from stumble.exits import Wrong


@click.command(short_help="List what can go wrong, or explain one.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def faults(name: str | None, as_json: bool) -> None:
    """List the faults, or explain one by its name.

    \b
    stumble faults
    stumble faults truncate
    """
    from faults import OPERATORS
    from traces.nearest import nearest

    if name is not None and name not in OPERATORS:
        raise Wrong(f"no fault is called {name!r}{nearest(name, OPERATORS)}")
    chosen = [OPERATORS[name]] if name else list(OPERATORS.values())
    if as_json:
        said = [
            {
                "name": each.name,
                "code": each.code,
                "places": each.places,
                "params": {key: value.default for key, value in each.params.items()},
                "help": each.help,
            }
            for each in chosen
        ]
        click.echo(json.dumps(said[0] if name else said))
        return
    for each in chosen:
        params = ", ".join(f"{key}={value.default}" for key, value in each.params.items())
        click.echo(f"{each.code:5} {each.name}({params})  at {' or '.join(each.places)}")
        text = each.help if name else each.help.partition("\n")[0]
        click.echo("\n".join(f"      {line}".rstrip() for line in text.splitlines()))
