"""Defaults of options from `stumble.toml`, the file of a project.

A table is named like a command, a subcommand's like `[pipeline.run]`, and its keys like the long
options. `[world]` serves every command that has these options, `[trust]` lists the hashes of tapes
and packs that may run. The command line wins over the file,
the file over the built-in default. `{project}` in a text is the folder of the file.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from stumble.cli.command_table import COMMANDS, list_command_names
from stumble.errors import UsageError
from traces.did_you_mean import suggest_nearest_name

FILE_NAME = "stumble.toml"
WORLD_TABLE = "world"
TRUST_TABLE = "trust"
WORLD_KEYS = ("reset", "verify", "state", "ledger", "ledger-key")

_HASH = re.compile(r"[0-9A-Fa-f]{32,64}")

type OptionValue = str | int | float | bool | list[str]
type OptionDefaults = dict[str, OptionValue | OptionDefaults]


def find_project_file(folder: Path) -> Path | None:
    """Return the nearest `stumble.toml` in a folder or above.

    Raises UsageError if it belongs to another user, whose commands would run as this one.
    """
    for each in (folder, *folder.parents):
        path = each / FILE_NAME
        try:
            owner = path.stat().st_uid
        except OSError:
            continue
        if owner not in (os.getuid(), 0):
            raise UsageError(
                f"{path} belongs to another user (uid {owner}), and its commands would run as "
                "you; copy it to a file of your own"
            )
        return path
    return None


def read_project_defaults(
    path: Path, name: str, command: click.Command
) -> dict[str, OptionValue | OptionDefaults]:
    """Return parameter name -> value for one command. Raises UsageError for a wrong file."""
    document = _read_document(path)
    for table, content in document.items():
        shared = (WORLD_TABLE, TRUST_TABLE)
        known = (*COMMANDS, *shared)
        if table not in known and table not in (known := (*list_command_names(), *shared)):
            raise UsageError(
                f"{path}: no command {table!r}{suggest_nearest_name(table, known)}; its tables "
                "are named like commands"
            )
        if not isinstance(content, dict):
            raise UsageError(f"{path}: {table} is no table; write [{table}]")
    world = document.get(WORLD_TABLE, {})
    for key in world:
        if key not in WORLD_KEYS:
            raise UsageError(f"{path}: [{WORLD_TABLE}] has {', '.join(WORLD_KEYS)}, but no {key!r}")
    return _read_table(path, f"[{name}]", command, world, document.get(name, {}))


def read_trusted_hashes(path: Path) -> tuple[str, ...]:
    """Return the `hashes` of the table `[trust]`. Raises UsageError for a wrong file."""
    table = _read_document(path).get(TRUST_TABLE, {})
    hashes = table.get("hashes", []) if isinstance(table, dict) else None
    if not isinstance(hashes, list) or set(table) - {"hashes"}:
        raise UsageError(f'{path}: [{TRUST_TABLE}] is not hashes = ["HASH", ...]')
    for each in hashes:
        if not isinstance(each, str) or not _HASH.fullmatch(each):
            raise UsageError(f"{path}: [{TRUST_TABLE}] {each!r} has no 32 hexadecimal digits")
    return tuple(hashes)


def _read_document(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None


def _read_table(
    path: Path,
    title: str,
    command: click.Command,
    world: Mapping[str, object],
    table: Mapping[str, object],
) -> OptionDefaults:
    options = _name_options(command)
    defaults: OptionDefaults = {
        options[key]: _read_value(path, f"[{WORLD_TABLE}] {key}", value)
        for key, value in world.items()
        if key in options
    }
    inner = dict(command.commands) if isinstance(command, click.Group) else {}
    for name, subcommand in inner.items():
        content = table.get(name, {})
        if not isinstance(content, Mapping):
            raise UsageError(f"{path}: {title} {name} is no table")
        defaults[name] = _read_table(path, f"{title} {name}", subcommand, world, content)
    for key, value in table.items():
        if key in inner:
            continue
        if key not in options:
            raise UsageError(
                f"{path}: {title} has no option {key!r}{suggest_nearest_name(key, options)}"
            )
        defaults[options[key]] = _read_value(path, f"{title} {key}", value)
    return defaults


def _name_options(command: click.Command) -> dict[str, str]:
    """Return long name without dashes -> parameter name."""
    return {
        long.removeprefix("--"): parameter.name
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name
        for long in parameter.opts
        if long.startswith("--")
    }


def _read_value(path: Path, where: str, value: object) -> OptionValue:
    project = str(path.parent)
    match value:
        case str():
            return value.replace("{project}", project)
        case bool() | int() | float():
            return value
        case list() if all(isinstance(each, str) for each in value):
            return [each.replace("{project}", project) for each in value]
    raise UsageError(f"{path}: {where} is no text, number, true, false or list of texts")
