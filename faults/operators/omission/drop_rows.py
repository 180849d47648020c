"""S3 drop_rows: some rows of a list are missing."""

from random import Random
from typing import Annotated, Literal

from faults.document import (
    apply_document_edits,
    make_removal_edits,
    make_value_edit,
    parse_document,
)
from faults.judging.invariants import find_count_nodes
from faults.judging.value_tokens import extract_tokens
from faults.operator import JsonPath, NumberRange, operator
from faults.response_body import NoInjectionSite, decode_response_text, replace_response_text
from faults.targeting.observations import NO_OBSERVATIONS, CleanObservations
from traces.model import Exchange


@operator("S3")
def drop_rows(
    exchange: Exchange,
    rng: Random,
    *,
    fraction: Annotated[float, NumberRange(0.01, 1)] = 0.5,
    which: Literal["tail", "head", "random", "wanted"] = "tail",
    keep_count: bool = True,
    path: Annotated[str, JsonPath()] = "",
    seen: CleanObservations = NO_OBSERVATIONS,
) -> Exchange:
    """Drop a `fraction` of a list's rows, at least one: JSON, JSON lines or a table.

    Incident: a page that was never requested, a shard that is down. `wanted` drops the rows that
    the clean run used later: those that its later calls or its answer name. A count next to the
    list keeps its value, or is corrected too (`keep_count=false`); that count is the only
    fabricated part.
    """
    document = parse_document(decode_response_text(exchange))
    arrays = [node for node in document.nodes(path) if node.kind == "array" and node.items]
    if not arrays:
        raise NoInjectionSite("there is no list with rows in the result")
    array = max(arrays, key=lambda node: (len(node.items), node.stop - node.start))
    number = len(array.items)
    lost = max(1, round(number * fraction))
    match which:
        case "tail":
            dropped = set(range(number - lost, number))
        case "head":
            dropped = set(range(lost))
        case "random":
            dropped = set(rng.sample(range(number), lost))
        case _:
            used = extract_tokens(seen.later_text)
            dropped = {
                n for n, row in enumerate(array.items) if extract_tokens(document.raw(row)) & used
            }
            if not dropped:
                raise NoInjectionSite("the clean run went on with none of the rows")
    changes = list(make_removal_edits(array, dropped))
    if not keep_count:
        new_count = str(number - len(dropped))
        changes += [
            make_value_edit(count, new_count)
            for count, owner in find_count_nodes(document)
            if owner == array
        ]
    return replace_response_text(exchange, apply_document_edits(document, changes))
