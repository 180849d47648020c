"""Tapes of a campaign by name or pattern."""

from glob import has_magic
from pathlib import Path

from stumble.packs.pack_manifest import PACK_SUFFIX


def is_tape_name(text: str) -> bool:
    """Return whether a trace of a campaign is a tape or pack, or a pattern of them."""
    return text.endswith((".tape", PACK_SUFFIX))


def find_tapes(folder: Path, text: str) -> list[Path]:
    """Return the tape of that name in a folder, or those that fit a pattern, by name; [] if none.

    A pattern is one of `pathlib`: `recordings/**/*.tape`.
    """
    path = (folder / text).absolute()
    if path.is_file():
        return [path]
    if not has_magic(text):
        return []
    base = Path(path.anchor) if Path(text).is_absolute() else folder
    pattern = str(Path(text).relative_to(path.anchor)) if Path(text).is_absolute() else text
    return sorted(found.absolute() for found in base.glob(pattern) if found.is_file())
