"""The time zone of an agent: told by a recording, and the same again in a replay elsewhere.

What an agent's tools print (`ls -l`, `git log`) depends on it, so a recording made in one zone
would diverge in another.
"""

import re
from collections.abc import Mapping
from pathlib import Path

ZONE_VARIABLE = "TZ"
DATABASE = "zoneinfo/"
LOCAL_TIME = Path("/etc/localtime")
ZONE_FORM = re.compile(r"(?!.*\.\.)[A-Za-z<][\w+\-/<>,.:]{0,99}", re.ASCII)
"""A name of the database (Asia/Tokyo) or a rule (CET-1CEST,M3.5.0,M10.5.0/3); never a file."""


def read_time_zone(env: Mapping[str, str], local_time: Path = LOCAL_TIME) -> str | None:
    """Return the zone of a program with this environment, as TZ names it; None if unknown.

    `local_time` is the system's own zone: a link into the database, or a file of it.
    """
    named = env.get(ZONE_VARIABLE)
    try:
        zone = _read_system_zone(local_time) if named is None else named.removeprefix(":") or "UTC"
    except (OSError, ValueError):
        return None
    zone = zone.rpartition(DATABASE)[2]
    return zone if is_time_zone(zone) else None


def is_time_zone(text: str) -> bool:
    """Whether a text has the form of a zone; a name need not be in this machine's database."""
    return ZONE_FORM.fullmatch(text) is not None


def find_restored_zone(recorded: str | None, env: Mapping[str, str]) -> str | None:
    """Return the zone of a recording if a program with this environment would have another.

    None too if the recording has none, or what a tape of somebody else gives for one is no zone.
    """
    if recorded is None or not is_time_zone(recorded):
        return None
    return recorded if recorded != read_time_zone(env) else None


def _read_system_zone(local_time: Path) -> str:
    """Return a name, or the rule at the end of a file of the database."""
    if not local_time.exists():
        return "UTC"
    target = str(local_time.resolve())
    if DATABASE in target:
        return target
    return local_time.read_bytes().rsplit(b"\n", 2)[-2].decode("ascii")
