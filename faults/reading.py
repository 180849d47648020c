"""The one door for faults that a person wrote: read, given the types of its operator, checked."""

from collections.abc import Mapping
from dataclasses import replace

from faults.binding import bind
from faults.grammar import read, split
from faults.plugins import find
from traces.model import Fault


def fault(table: Mapping[str, object]) -> Fault:
    """The fault that a table says (see `grammar`); ValueError, in one line, where there is none.

    `how=504` is a number on paper and a text to an operator that wants one.
    """
    found = read(table)
    wanted = find(found.name).takes
    texts = {
        key: text
        for key, text in split(str(table["fault"]))[1].items()
        if key in wanted and isinstance(wanted[key].default, str)
    }
    found = replace(found, params={**found.params, **texts})
    bind(found)
    return found
