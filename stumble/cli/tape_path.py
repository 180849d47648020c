"""A parameter that takes a tape, or a pack with one."""

import os
import re
import shlex
from pathlib import Path

import click

from stumble.cli.trust import PACKED_COMMANDS

PLAN_OPTIONS = (
    "texts", "where", "nth", "when", "persist", "max_injections", "place", "seed", "reset",
    "verify", "state", "ledger", "ledger_key",
)  # fmt: skip
"""Parameters of `stumble fork` that a pack may give."""


WORLD_OPTIONS = ("reset", "verify", "state", "ledger")
"""Those of them that are commands."""


_RUN_ID = re.compile(r"[\w-]+")
"""What no name of a tape is, since those end in `.tape`."""


class TapePath(click.Path):
    """An existing tape; of a pack, the tape in it, and the defaults of the options it was given."""

    name = "tape"

    def __init__(self, *, writable: bool = False) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)
        self._changes = writable

    def convert(  # type: ignore[override]
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        """Return the path of a tape. Raises UsageError if a pack is damaged or has no tape."""
        from stumble.packs.read_pack import is_pack

        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not is_pack(path):
            return path
        if self._changes:
            self.fail(
                f"{path} is a pack, which is never changed; `stumble unpack {path} -o FOLDER` "
                "gives its tape",
                param,
                ctx,
            )
        return _open_packed_tape(path, ctx if param is not None and param.is_eager else None)


class RunPath(TapePath):
    """A tape or pack, or the id of a run of the store: its tape, or the id if it has no tape."""

    name = "run"

    def convert(  # type: ignore[override]
        self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | str:
        """Return the path of a tape or an id, which may be unknown. Raises UsageError."""
        from stumble.user_data.paths import store_root
        from traces.store.store_dir import StoreDirectory

        text = os.fsdecode(value)
        if Path(text).exists() or not _RUN_ID.fullmatch(text) or not store_root().is_dir():
            return super().convert(value, param, ctx)
        path = StoreDirectory(store_root()).tapes / f"{text}.tape"
        return super().convert(path, param, ctx) if path.exists() else text


def _open_packed_tape(path: Path, ctx: click.Context | None) -> Path:
    from stumble.packs.pack_cache import open_packed_files

    opened = open_packed_files(path)
    if ctx is not None:
        # A replay takes faults too, and is a replay without any.
        injects = any(each.name == "texts" and each.required for each in ctx.command.params)
        given = opened.manifest.plan if injects else {}
        plan = {key: given[key] for key in PLAN_OPTIONS if key in given}
        plan |= {key: _use_program_here(str(plan[key])) for key in WORLD_OPTIONS if key in plan}
        if opened.manifest.scenario is not None:
            part = opened.folder / opened.manifest.scenario
            plan["scenario_name"] = str(part) if part.is_file() else opened.manifest.scenario
        ctx.meta[PACKED_COMMANDS] = {key: plan[key] for key in WORLD_OPTIONS if key in plan}
        ctx.default_map = {**(ctx.default_map or {}), **plan}
    return opened.main_tape


def _use_program_here(text: str) -> str:
    """Return a command with this machine's program of the same name, if its own is not here."""
    from stumble.packs.pack_needs import find_program_here

    try:
        words = shlex.split(text)
    except ValueError:
        return text
    found = find_program_here(tuple(words)) if words else None
    return shlex.join((found, *words[1:])) if found and found != words[0] else text


def find_tape(path: Path) -> Path:
    """Return the path of a tape; of a pack, the tape in it. Raises UsageError as `TapePath`."""
    from stumble.packs.read_pack import is_pack

    return _open_packed_tape(path, None) if is_pack(path) else path
