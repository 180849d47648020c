"""What may differ in a replay, as its user says: in a scenario's file, in options, on the tape."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from stumble.exits import Wrong

if TYPE_CHECKING:
    from scenarios.file import Scenario


def scenario(name: str | None) -> "Scenario | None":
    """The scenario of a name or file, whose rules are rules; Wrong, with file and key, if not."""
    if name is None:
        return None
    from scenarios.file import find, read

    try:
        found = read(find(name))
    except (LookupError, ValueError) as error:
        raise Wrong(str(error.args[0])) from None
    at = f"{found.path}: match.rules"
    _check((f"{at}[{number}]", text) for number, text in enumerate(found.rules))
    return found


def rules(file: "Scenario | None", texts: tuple[str, ...]) -> tuple[str, ...]:
    """The rules of a scenario and those of `--match`; Wrong where one of those is none."""
    _check(("--match", text) for text in texts)
    return (*(file.rules if file is not None else ()), *texts)


def check(recorded: tuple[str, ...], tape: Path) -> None:
    """Wrong where a recording has rules that this version does not know."""
    _check((f"{tape}: a rule of its recording", text) for text in recorded)


def _check(rules: Iterable[tuple[str, str]]) -> None:
    from replay.rules import bind

    for where, text in rules:
        try:
            bind(text)
        except ValueError as error:
            raise Wrong(f"{where}: {error}") from None
