"""Parse a fault that a person wrote: parse it, apply the operator's parameter types, check it."""

from collections.abc import Mapping
from copy import replace

from faults.plugins import find_operator
from faults.specs.spec_check import bind_operator
from faults.specs.spec_syntax import parse_fault_table, split_spec_text
from traces.model import Fault


def parse_fault(table: Mapping[str, object]) -> Fault:
    """Return the fault of a table (see `spec_syntax`); raises a one-line ValueError if invalid.

    A value such as `how=504` stays a string if the operator's parameter is one.
    """
    fault = parse_fault_table(table)
    params = find_operator(fault.name).accepted_params
    texts = {
        key: text
        for key, text in split_spec_text(str(table["fault"]))[1].items()
        if key in params and isinstance(params[key].default, str)
    }
    fault = replace(fault, params={**fault.params, **texts})
    bind_operator(fault)
    return fault
