"""A campaign file in a pack: its table, with its tapes and scenarios as parts."""

import json
from collections.abc import Iterator
from pathlib import Path

from scenarios.toml_reader import read_toml_document
from stumble.errors import UsageError
from stumble.packs.pack_cache import OpenedPack
from stumble.packs.pack_contents import CAMPAIGN_TABLE, TAPES, PackContents
from stumble.packs.pack_manifest import PACK_SUFFIX, PackManifest
from stumble.packs.tape_patterns import find_tapes, is_tape_name
from stumble.packs.zip_layout import is_member_name


def pack_campaign_file(contents: PackContents, path: Path, output: Path) -> PackManifest:
    """Pack a campaign file with its tapes, or its user's scenarios.

    Raises UsageError if the file, a tape or a scenario does not exist.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    table = {"name": path.stem, **read_toml_document(path)}
    texts = table.get("traces", [])
    if not isinstance(texts, list):
        raise UsageError(f"{path}: traces: not a list")
    traces = [each for text in texts for each in _add_traces(contents, path, str(text))]
    if traces:
        table["traces"] = traces
    contents.add_table(CAMPAIGN_TABLE, table)
    return contents.write(output, CAMPAIGN_TABLE, kind="campaign")


def _add_traces(contents: PackContents, path: Path, text: str) -> Iterator[str]:
    """Add the scenario or the tapes of that name or pattern; yield the traces of the pack."""
    if not is_tape_name(text):
        yield contents.add_scenario(text) or text
        return
    tapes = find_tapes(path.parent, text)
    if not tapes:
        raise UsageError(f"{path}: traces: {path.parent / text}: there is no such tape")
    for tape in tapes:
        if tape.suffix == PACK_SUFFIX:
            raise UsageError(
                f"{path}: traces: {tape.name} is a pack already; unpack it, and name its tape"
            )
        yield _add_tape(contents, tape)


def _add_tape(contents: PackContents, tape: Path) -> str:
    part = contents.add_tape(tape)
    # By its file name, as runs are grouped by it.
    named = f"{TAPES}{tape.name}"
    if is_member_name(named) and named != part and named not in contents.sources:
        contents.sources[named] = contents.sources.pop(part)
        return named
    return part


def load_packed_campaign(opened: OpenedPack) -> tuple[dict[str, object], Path]:
    """Return the table of a packed campaign, and the file that its relative paths refer to.

    Raises UsageError if the pack holds no campaign.
    """
    if opened.manifest.kind != "campaign":
        raise UsageError(
            f"{opened.path} holds no campaign; name it as one of the --traces, or pack a .toml file"
        )
    table = json.loads(opened.main.read_bytes())
    if not isinstance(table, dict):
        raise UsageError(f"{opened.path}: its campaign is no table")
    parts = {each.name for each in opened.manifest.parts}
    table["traces"] = [
        str(opened.folder / each) if each in parts else each for each in table.get("traces", [])
    ]
    if not table["traces"]:
        del table["traces"]
    return table, opened.main
