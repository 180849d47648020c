"""A fault as somebody said it, checked against the operator it names."""

from faults import aim, turns
from faults.nowhere import why
from faults.operator import COPY, Operator
from faults.parameters import check
from faults.plugins import every, find
from traces.model import Fault, Place
from traces.nearest import nearest


def bind(fault: Fault) -> Operator:
    """The operator of a fault, once all that the fault says has been checked.

    ValueError, in one line with the nearest valid name, for an unknown operator, parameter or
    selector, a parameter of the wrong type, or a place where the operator makes no sense.
    """
    found = find(fault.name)
    for name, value in fault.params.items():
        if name not in found.takes:
            has = nearest(name, found.takes) if found.takes else "; it takes none"
            raise ValueError(f"{fault.name} has no parameter {name!r}{has}")
        check(found.name, found.takes[name], value)
    if fault.at is not None and fault.at not in found.places:
        places, others = " or ".join(found.places), _instead(found, fault.at)
        because = why(found.name, found.family, fault.at)
        reason = f": {because}" if because else ""
        raise ValueError(
            f"{fault.name} cannot strike at {fault.at}, only at {places}{reason}{others}"
        )
    if COPY in fault.params and fault.at not in ("mcp", None):
        raise ValueError(f"copy is of an MCP server's result, which nobody has at {fault.at}")
    if "path" in fault.where:
        raise ValueError(
            f"where: path chooses no call; the part that is bent is said with the fault: "
            f"{fault.name}:path={fault.where['path']}"
            if "path" in found.params
            else f"where: {fault.name} bends no part of a result, so path says nothing"
        )
    aim.check(fault)
    if fault.at == "model":
        turns.check(fault)
        _model(found, fault)
    return found


def _instead(operator: Operator, place: Place) -> str:
    """The operators of the same family that do strike there, else all."""
    there = [each for each in every() if place in each.places and each.family != "sham"]
    alike = [each.name for each in there if each.family == operator.family]
    return f"; {', '.join(alike or [each.name for each in there])} can" if there else ""


def _model(operator: Operator, fault: Fault) -> None:
    """ValueError where a parameter says nothing of a model's answer."""
    if operator.name == "tool_error" and fault.params.get("how") != "refusal":
        raise ValueError(
            "tool_error at model is a refusal: say tool_error:how=refusal, or http_status"
        )
    if operator.name == "empty" and fault.params:
        raise ValueError("empty at model leaves nothing of the answer, and takes no parameters")
