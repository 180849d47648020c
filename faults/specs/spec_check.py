"""Check a parsed fault against the operator it names."""

from faults.operator import COPY, Operator
from faults.operator_parameters import check_parameter
from faults.plugins import find_operator, list_operators
from faults.specs.unsupported import explain_unsupported_place
from faults.targeting import model_turns, selector
from traces.did_you_mean import suggest_nearest_name
from traces.model import Fault, Place


def bind_operator(fault: Fault) -> Operator:
    """Return the operator of a fault after all parts of the fault have been checked.

    Raises ValueError, in one line with the nearest valid name, for an unknown operator, parameter
    or selector, a parameter of the wrong type, or a place that the operator does not support.
    """
    operator = find_operator(fault.name)
    for name, value in fault.params.items():
        if name not in operator.accepted_params:
            hint = (
                suggest_nearest_name(name, operator.accepted_params)
                if operator.accepted_params
                else "; it takes none"
            )
            raise ValueError(f"{fault.name} has no parameter {name!r}{hint}")
        check_parameter(operator.name, operator.accepted_params[name], value)
    if fault.at is not None and fault.at not in operator.places:
        places, others = " or ".join(operator.places), _suggest_operators(operator, fault.at)
        explanation = explain_unsupported_place(operator.name, operator.family, fault.at)
        reason = f": {explanation}" if explanation else ""
        raise ValueError(
            f"{fault.name} cannot be used at {fault.at}, only at {places}{reason}{others}"
        )
    if COPY in fault.params and fault.at not in ("mcp", None):
        raise ValueError(f"copy is of an MCP server's result, which nobody has at {fault.at}")
    if "path" in fault.where:
        raise ValueError(
            f"where: path chooses no call; the part to change is a parameter of the fault: "
            f"{fault.name}:path={fault.where['path']}"
            if "path" in operator.params
            else f"where: {fault.name} bends no part of a result, so path says nothing"
        )
    selector.check_targeting(fault)
    if fault.at == "model":
        model_turns.check_model_fault(fault)
        _check_model_params(operator, fault)
    return operator


def _suggest_operators(operator: Operator, place: Place) -> str:
    """Name the operators of the same family that support the place, else all that do."""
    available = [
        each for each in list_operators() if place in each.places and each.family != "sham"
    ]
    family_names = [each.name for each in available if each.family == operator.family]
    return (
        f"; {', '.join(family_names or [each.name for each in available])} can" if available else ""
    )


def _check_model_params(operator: Operator, fault: Fault) -> None:
    """Raise ValueError if a parameter does not apply to a model's response."""
    if operator.name == "tool_error" and fault.params.get("how") != "refusal":
        raise ValueError(
            "tool_error at model is a refusal: say tool_error:how=refusal, or http_status"
        )
    if operator.name == "empty" and fault.params:
        raise ValueError("empty at model leaves nothing of the answer, and takes no parameters")
