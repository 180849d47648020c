"""A fault as somebody said it, checked against the operator it names."""

from faults import aim
from faults.operator import COPY, Operator
from faults.parameters import check
from faults.plugins import find
from traces.model import Fault
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
    if fault.at is not None and fault.at not in found.reached:
        places = " or ".join(found.reached)
        raise ValueError(f"{fault.name} cannot strike at {fault.at}, only at {places}")
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
    return found
