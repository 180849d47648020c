"""`stumble faults`: list the fault operators, or explain one."""

import json
from typing import TYPE_CHECKING

import click

from stumble.errors import UsageError

if TYPE_CHECKING:
    from faults.operator import Operator
    from faults.operator_examples import OperatorExample

_FAMILIES = {
    "T": "transport: delays, silence, cut answers",
    "E": "errors, explicit or inside a success",
    "S": "structure: missing parts, changed shapes",
    "V": "plausible wrong values",
    "X": "effects that differ from the answer",
    "sham": "no change: a control",
}


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def faults(name: str | None, as_json: bool) -> None:
    """List the faults by family, or explain one, given by name or code, with an example.

    \b
    stumble faults
    stumble faults V4
    stumble faults truncate
    """
    import faults as faults_package
    from faults.plugins import list_operators

    try:
        chosen = (faults_package.find_operator(name),) if name else list_operators()
    except ValueError as error:
        raise UsageError(str(error)) from None
    if as_json:
        rows = [_operator_to_dict(each, example=name is not None) for each in chosen]
        click.echo(json.dumps(rows[0] if name else rows))
    elif name:
        click.echo(_explain_operator(chosen[0]))
    else:
        click.echo("\n".join(_format_operator_list(chosen)))


def _operator_to_dict(operator: "Operator", *, example: bool) -> dict[str, object]:
    data: dict[str, object] = {
        "name": operator.name,
        "code": operator.code,
        "family": operator.family,
        "places": operator.places,
        "shows": {place: each._asdict() for place, each in operator.shows.items()},
        "forwards": operator.forwards,
        "needs": operator.needs,
        "params": {key: value.default for key, value in operator.accepted_params.items()},
        "allowed": {
            key: _describe_allowed_values(operator, key) for key in operator.accepted_params
        },
        "help": operator.help,
    }
    if example:
        shown = _show_operator_example(operator)
        data["example"] = shown._asdict() if shown else None
    return data


def _format_operator_list(operators: "tuple[Operator, ...]") -> list[str]:
    """Return the lines of the list, grouped by family."""
    lines, family = list[str](), ""
    width = max(len(each.name) for each in operators)
    for each in operators:
        if each.family != family:
            family = each.family
            lines += [*([""] if lines else []), f"{family}: {_FAMILIES[family]}"]
        text = each.help.partition("\n")[0]
        lines.append(f"  {each.code:5}{each.name:{width}}  {text}")
        lines.append(f"  {'':5}{'':{width}}  at {', '.join(each.places)}")
    return [*lines, "", "`stumble faults V4` explains one with an example."]


def _explain_operator(operator: "Operator") -> str:
    lines = [f"{operator.code} {operator.name}", ""]
    lines += [f"  {line}".rstrip() for line in operator.help.splitlines()]
    if operator.accepted_params:
        lines += ["", "parameters"]
        for key, parameter in operator.accepted_params.items():
            allowed = _describe_allowed_values(operator, key)
            default = parameter.default if parameter.default != "" else "none"
            lines.append(f"  {key}={default}" + (f"  {allowed}" if allowed else ""))
    lines += ["", "places"]
    for place, shows in operator.shows.items():
        lines.append(f"  {place}: {shows.how}")
    if operator.needs:
        needs = {"write": "a call that writes", "world": "a world that can be reset"}
        lines.append(f"  requires {' and '.join(needs[need] for need in operator.needs)}")
    shown = _show_operator_example(operator)
    if shown is not None:
        lines += ["", "before", *_indent_lines(shown.before), "after", *_indent_lines(shown.after)]
    return "\n".join(lines)


def _show_operator_example(operator: "Operator") -> "OperatorExample | None":
    from faults.operator_examples import run_operator_example
    from faults.response_body import NoInjectionSite

    try:
        return run_operator_example(operator)
    except NoInjectionSite:
        return None


def _indent_lines(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _describe_allowed_values(operator: "Operator", key: str) -> str | None:
    """Describe the values that a parameter accepts; None if any value is valid."""
    from faults.operator_parameters import describe_parameter_values

    return describe_parameter_values(operator.accepted_params[key])
