"""`stumble why`: print the evidence for one verdict."""

from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.errors import UsageError

if TYPE_CHECKING:
    from traces.store.trace_store import TraceStore


@click.command(
    epilog="List ids with: stumble sql injections_listing, or stumble sql silent.",
)
@click.argument("injection", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def why(injection: str | None, as_json: bool) -> None:
    """Show the evidence for the verdict on one injection: the change, where it was consumed,
    signs that the agent noticed, where the wrong value went, the clean twins, the files that the
    run changed in its copy of the workspace, and the verdict.
    The tapes are judged again, with the judge of this version.

    INJECTION is an id or a unique prefix of one, or a pack of a run that has one: its tapes are
    added to the store. Default: the latest injection of the store.

    \b
    stumble why
    stumble why 20261121T101500-3f2a
    stumble why refund.stumble
    """
    from stumble.packs.read_pack import is_pack
    from stumble.runs.environment.workspaces import open_store_blobs
    from stumble.store.judged_rows import load_judged_injection
    from stumble.store.open_store import open_indexed_store
    from stumble.verdicts.explain import VerdictExplanation, explanation_to_json
    from stumble.verdicts.file_changes import read_run_files

    if injection is not None and is_pack(path := Path(injection)):
        injection = _unpack_injection(path)
    store = open_indexed_store()
    id, trajectory = _find_injection(store, injection)
    try:
        judged = load_judged_injection(store, trajectory, id)
    except (OSError, ValueError) as error:
        raise UsageError(f"{id}: its tape cannot be read: {error}") from None
    blobs, runs = open_store_blobs(store), (judged.faulted, *judged.twins[:1])
    files = tuple(read_run_files(blobs, each.tape.trajectory) for each in runs)
    explanation = VerdictExplanation(judged=judged, files=files)
    click.echo(explanation_to_json(explanation) if as_json else "\n".join(explanation.to_lines()))


def _unpack_injection(pack: Path) -> str:
    """Add a pack's tapes to the store; return the id of the first injection of its main tape."""
    from stumble.packs.pack_cache import open_packed_files
    from stumble.packs.unpack_store import unpack_into_store
    from stumble.user_data.paths import store_root
    from traces.store.store_dir import StoreDirectory
    from traces.tape.reader import read_tape

    opened = open_packed_files(pack)
    injections = read_tape(opened.main_tape).injections
    if not injections:
        raise UsageError(f"{pack}: its run has no injection")
    unpack_into_store(opened, StoreDirectory(store_root()))
    return injections[0].id


def _find_injection(store: "TraceStore", wanted: str | None) -> tuple[str, str]:
    """Return the ids of an injection, given by id or unique prefix (None: the latest), and its run.

    Raises UsageError if no injection or several match.
    """
    with store.open_locked() as connection:
        rows = connection.execute(
            "select injection_id, trajectory_id from injections where repeat_of is null order by 1"
        ).fetchall()
    ids: dict[str, str] = dict(rows)
    if not ids:
        raise UsageError("the store has no injections; stumble fork makes some")
    if wanted is None:
        return list(ids.items())[-1]
    if wanted in ids:
        return wanted, ids[wanted]
    matches = [id for id in ids if id.startswith(wanted)]
    if len(matches) == 1:
        return matches[0], ids[matches[0]]
    if matches:
        some = ", ".join(matches[:5])
        more = f" and {len(matches) - 5} more" if len(matches) > 5 else ""
        raise UsageError(f"{wanted!r} is a prefix of {len(matches)} injections: {some}{more}")
    # If no id is similar, the latest one serves as an example.
    similar = get_close_matches(wanted, ids, n=1, cutoff=0.4)
    example = f"did you mean {similar[0]}?" if similar else f"one is {next(reversed(ids))}"
    raise UsageError(f"no injection {wanted!r}; {example}")
