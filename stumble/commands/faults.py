"""`stumble faults`: what can go wrong."""

import json
from typing import TYPE_CHECKING

import click

from stumble.exits import Wrong

if TYPE_CHECKING:
    from faults.example import Shown
    from faults.operator import Operator

_FAMILIES = {
    "T": "late, silent or broken off",
    "E": "an error, said or not",
    "S": "part is missing, or has another shape",
    "V": "a plausible wrong value",
    "X": "what was said and what was done are two things",
    "sham": "nothing at all: a control",
}


@click.command(short_help="List what can go wrong, or explain one.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def faults(name: str | None, as_json: bool) -> None:
    """List the faults by family, or explain one by its name or code, on an example.

    \b
    stumble faults
    stumble faults V4
    stumble faults truncate
    """
    import faults as room
    from faults.plugins import every

    try:
        chosen = (room.find(name),) if name else every()
    except ValueError as error:
        raise Wrong(str(error)) from None
    if as_json:
        said = [_plain(each, example=name is not None) for each in chosen]
        click.echo(json.dumps(said[0] if name else said))
    elif name:
        click.echo(_explained(chosen[0]))
    else:
        click.echo("\n".join(_listed(chosen)))


def _plain(operator: "Operator", *, example: bool) -> dict[str, object]:
    said: dict[str, object] = {
        "name": operator.name,
        "code": operator.code,
        "family": operator.family,
        "places": operator.places,
        "shows": {place: each._asdict() for place, each in operator.shows.items()},
        "forwards": operator.forwards,
        "needs": operator.needs,
        "params": {key: value.default for key, value in operator.takes.items()},
        "allowed": {key: _allowed(operator, key) for key in operator.takes},
        "help": operator.help,
    }
    if example:
        shown = _example(operator)
        said["example"] = shown._asdict() if shown else None
    return said


def _listed(operators: "tuple[Operator, ...]") -> list[str]:
    """One line for each, under its family."""
    lines, family = list[str](), ""
    width = max(len(each.name) for each in operators)
    for each in operators:
        if each.family != family:
            family = each.family
            lines += [*([""] if lines else []), f"{family}: {_FAMILIES[family]}"]
        text = each.help.partition("\n")[0]
        lines.append(f"  {each.code:5}{each.name:{width}}  {text}")
        lines.append(f"  {'':5}{'':{width}}  at {', '.join(each.places)}")
    return [*lines, "", "`stumble faults V4` explains one on an example."]


def _explained(operator: "Operator") -> str:
    lines = [f"{operator.code} {operator.name}", ""]
    lines += [f"  {line}".rstrip() for line in operator.help.splitlines()]
    if operator.takes:
        lines += ["", "parameters"]
        for key, parameter in operator.takes.items():
            allowed = _allowed(operator, key)
            default = parameter.default if parameter.default != "" else "none"
            lines.append(f"  {key}={default}" + (f"  {allowed}" if allowed else ""))
    lines += ["", "places"]
    for place, shows in operator.shows.items():
        lines.append(f"  {place}: {shows.how}")
    if operator.needs:
        needs = {"write": "a call that writes", "world": "a world that can be set back"}
        lines.append(f"  it needs {' and '.join(needs[need] for need in operator.needs)}")
    shown = _example(operator)
    if shown is not None:
        lines += ["", "before", *_indented(shown.before), "after", *_indented(shown.after)]
    return "\n".join(lines)


def _example(operator: "Operator") -> "Shown | None":
    from faults.body import NoSite
    from faults.example import show

    try:
        return show(operator)
    except NoSite:
        return None


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _allowed(operator: "Operator", key: str) -> str | None:
    """What a parameter may be, in words."""
    from faults.parameters import allowed

    return allowed(operator.takes[key])
