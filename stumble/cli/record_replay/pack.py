"""`stumble pack`: write a recording, with all that its replay needs, into one file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli import options
from stumble.errors import UsageError

if TYPE_CHECKING:
    from stumble.packs.pack_contents import PackContents
    from stumble.packs.pack_manifest import PackManifest


@click.command()
@click.argument("what", metavar="TAPE|RUN|CAMPAIGN")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The new file, NAME.stumble.",
)
@click.option(
    "--scenario",
    "scenario_name",
    metavar="NAME|FILE",
    help="Scenario of the recording, whose match rules a replay of the pack uses.",
)
@options.world_command_options
@options.fault_texts_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def pack(
    what: str,
    output: Path,
    scenario_name: str | None,
    as_json: bool,
    **plan: object,
) -> None:
    """Write one file with a tape, the files of its workspace, its scenario, the commands of its
    world and the plan of its fork. Every command that takes a tape takes it: in another folder,
    by another user, on another machine. Any zip tool lists it.

    TAPE is a file; RUN an id of the store or a unique prefix: a fork is packed with its clean
    twins and its recording. CAMPAIGN is a campaign file (.toml), with its tapes, or the name of a
    campaign of the store, with all its runs.

    The options are defaults of `stumble fork` with the pack. Nothing is packed if a secret is
    found. `stumble doctor FILE.stumble` lists what the agent needs beside the pack.

    \b
    stumble pack refund.tape -o refund.stumble
    stumble pack refund.tape -o refund.stumble --fault http_status:code=503 \\
        --reset "python reset_shop.py" --verify "python check_shop.py"
    stumble pack nightly.toml -o nightly.stumble
    """
    from stumble.packs.pack_contents import PackContents
    from stumble.packs.trust import hash_tape, is_recorded_here, is_trusted_hash, remember_trust
    from stumble.user_data.known_secrets import find_known_secrets
    from stumble.user_data.paths import store_root

    if output.exists():
        raise UsageError(f"{output} exists already; it is not overwritten")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output}: folder {output.parent} does not exist")
    contents = PackContents(store=store_root(), known=tuple(find_known_secrets()))
    with options.usage_errors():
        manifest = _write_contents(contents, what, output, scenario_name, _drop_unset(plan))
    known = (
        is_recorded_here(each) or is_trusted_hash(hash_tape(each.path)) for each in contents.tapes
    )
    if all(known):
        remember_trust(manifest.root_hash, str(output))
    _print_pack(output, manifest, as_json)


def _drop_unset(plan: Mapping[str, object]) -> dict[str, object]:
    """Return the options that were given, as they can be defaults."""
    given = {key: value for key, value in plan.items() if value not in (None, ())}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}


def _write_contents(
    contents: "PackContents",
    what: str,
    output: Path,
    scenario_name: str | None,
    plan: dict[str, object],
) -> "PackManifest":
    from stumble.packs import packed_campaigns, packed_runs
    from stumble.packs.read_pack import is_pack

    scenario = contents.add_scenario(scenario_name)
    path = Path(what)
    if what.endswith(".toml"):
        return packed_campaigns.pack_campaign_file(contents, path, output)
    if path.is_file():
        if is_pack(path):
            raise UsageError(f"{path} is a pack already")
        main = contents.add_tape(path)
        return contents.write(output, main, kind="tape", plan=plan, scenario=scenario)
    return packed_runs.pack_stored_runs(contents, what, output, plan, scenario)


def _print_pack(output: Path, manifest: "PackManifest", as_json: bool) -> None:
    size = sum(part.bytes for part in manifest.parts)
    tapes = sum(part.name.endswith(".tape") for part in manifest.parts)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "path": str(output),
                    "kind": manifest.kind,
                    "root_hash": manifest.root_hash,
                    "parts": len(manifest.parts),
                    "tapes": tapes,
                    "bytes": size,
                }
            )
        )
        return
    noun = "tape" if tapes == 1 else "tapes"
    click.echo(
        f"{output}: {tapes} {noun}, {len(manifest.parts)} parts, {size:,} bytes, "
        f"root {manifest.root_hash[:16]}"
    )
    needs = manifest.needs
    beside = len(needs.packages) + len(needs.variables) + len(needs.left_out)
    if beside:
        click.echo(f"the agent needs more than the pack holds: stumble doctor {output}", err=True)
