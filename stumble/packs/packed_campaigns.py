"""A campaign file in a pack: its table, with its tapes and scenarios as parts."""

import json
from pathlib import Path

from scenarios.toml_reader import read_toml_document
from stumble.cli.exit_codes import UsageError
from stumble.packs.pack_cache import OpenedPack
from stumble.packs.pack_contents import CAMPAIGN_TABLE, TAPES, PackContents
from stumble.packs.pack_manifest import PACK_SUFFIX, PackManifest
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
    traces = [_add_trace(contents, path, str(text)) for text in texts]
    if traces:
        table["traces"] = traces
    contents.add_table(CAMPAIGN_TABLE, table)
    return contents.write(output, CAMPAIGN_TABLE, kind="campaign")


def _add_trace(contents: PackContents, path: Path, text: str) -> str:
    if text.endswith(PACK_SUFFIX):
        raise UsageError(f"{path}: traces: {text} is a pack already; unpack it, and name its tape")
    if not text.endswith(".tape"):
        return contents.add_scenario(text) or text
    tape = path.parent / text
    if not tape.is_file():
        raise UsageError(f"{path}: traces: {tape}: there is no such tape")
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
