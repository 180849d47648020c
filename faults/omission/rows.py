"""S3: some rows of a list are missing."""

from random import Random
from typing import Annotated, Literal

from faults.atoms import atoms
from faults.body import NoSite, text, with_text
from faults.document import changed, instead, read, without
from faults.invariants import counts
from faults.operator import Between, JsonPath, operator
from faults.seen import NOTHING, Seen
from traces.model import Exchange


@operator("S3")
def drop_rows(
    exchange: Exchange,
    rng: Random,
    *,
    fraction: Annotated[float, Between(0.01, 1)] = 0.5,
    which: Literal["tail", "head", "random", "wanted"] = "tail",
    keep_count: bool = True,
    path: Annotated[str, JsonPath()] = "",
    seen: Seen = NOTHING,
) -> Exchange:
    """Lose a `fraction` of the rows of a list, at least one: JSON, lines of JSON or a table.

    Incident: a page that was never asked for, a shard that is down. `wanted` loses the rows that
    the clean run went on with, as far as its later calls and answer name them. A count beside
    the list stays as it was, or is made right too (`keep_count=false`), which is all it makes up.
    """
    document = read(text(exchange))
    arrays = [node for node in document.nodes(path) if node.kind == "array" and node.items]
    if not arrays:
        raise NoSite("there is no list with rows in the result")
    array = max(arrays, key=lambda node: (len(node.items), node.stop - node.start))
    number = len(array.items)
    lost = max(1, round(number * fraction))
    match which:
        case "tail":
            gone = set(range(number - lost, number))
        case "head":
            gone = set(range(lost))
        case "random":
            gone = set(rng.sample(range(number), lost))
        case _:
            used = atoms(seen.later)
            gone = {n for n, row in enumerate(array.items) if atoms(document.raw(row)) & used}
            if not gone:
                raise NoSite("the clean run went on with none of the rows")
    changes = list(without(array, gone))
    if not keep_count:
        left = str(number - len(gone))
        changes += [instead(count, left) for count, of in counts(document) if of == array]
    return with_text(exchange, changed(document, changes))
