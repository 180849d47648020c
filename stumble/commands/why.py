"""`stumble why`: the evidence behind one verdict."""

from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from stumble.exits import Wrong

if TYPE_CHECKING:
    from traces.store import Store


@click.command(
    short_help="Show why an injection was judged as it was.",
    epilog="Find ids with: stumble sql injections_listing, or stumble sql silent.",
)
@click.argument("injection")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def why(injection: str, as_json: bool) -> None:
    """Show the chain of evidence of one injection: what was struck, where it was consumed,
    what shows that the agent noticed, where the wrong value went, what clean twins did, and the
    verdict. The tapes are judged anew, by the judge of this version.

    INJECTION is an id, or the first letters of one.

    \b
    stumble why 20261121T101500-3f2a
    """
    from stumble import indexing
    from stumble.evidence import case, printed
    from stumble.home import store_root
    from traces.store import Store

    store = Store(store_root())
    for refused in indexing.refresh(store):
        click.echo(f"warning: not indexed: {refused}", err=True)
    id, trajectory = _found(store, injection)
    try:
        faulted, twins, peers = indexing.tried(store, trajectory)
    except (OSError, ValueError) as error:
        raise Wrong(f"{id}: its tape cannot be read: {error}") from None
    struck = next(each for each in faulted.tape.injections if each.id == id)
    one = case(struck, faulted, twins, peers)
    click.echo(printed(one) if as_json else "\n".join(one.lines()))


def _found(store: "Store", wanted: str) -> tuple[str, str]:
    """The injection of that id, or the only one that begins so, and its run."""
    with store.reading() as connection:
        rows = connection.execute(
            "select injection_id, trajectory_id from injections where repeat_of is null order by 1"
        ).fetchall()
    ids: dict[str, str] = dict(rows)
    if wanted in ids:
        return wanted, ids[wanted]
    begun = [id for id in ids if id.startswith(wanted)]
    if len(begun) == 1:
        return begun[0], ids[begun[0]]
    if begun:
        some = ", ".join(begun[:5])
        more = f" and {len(begun) - 5} more" if len(begun) > 5 else ""
        raise Wrong(f"{wanted!r} begins {len(begun)} injections: {some}{more}")
    if not ids:
        raise Wrong("the store holds no injections; stumble fork makes some")
    # Of all ids some are alike; of a few that are not, one that is there serves as an example.
    alike = get_close_matches(wanted, ids, n=1, cutoff=0.4)
    example = f"did you mean {alike[0]}?" if alike else f"one is {next(reversed(ids))}"
    raise Wrong(f"no injection is called {wanted!r}; {example}")
