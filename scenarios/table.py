"""A table of a file that a person wrote, asked for values of one type each."""

import math
import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path

from traces import requests
from traces.nearest import nearest


class ScenarioError(ValueError):
    """What a scenario file says that cannot be: file, key and reason."""

    def __init__(self, path: Path, key: str, reason: str) -> None:
        super().__init__(f"{path}: {key}: {reason}" if key else f"{path}: {reason}")


def document(path: Path) -> Mapping[str, object]:
    """What a TOML file says; ScenarioError where it is none."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(path, "", f"no TOML: {error}") from None
    except OSError as error:
        raise ScenarioError(path, "", error.strerror or str(error)) from None


class Table:
    """A table; each question gives a value, or ScenarioError with file, key and reason."""

    def __init__(self, path: Path, name: str, said: Mapping[str, object]) -> None:
        self._path, self.name, self.said = path, name, said

    def wrong(self, key: str, reason: str) -> ScenarioError:
        return ScenarioError(self._path, f"{self.name}.{key}" if self.name else key, reason)

    def only(self, keys: str) -> None:
        known = keys.split()
        for key in self.said:
            if key not in known:
                raise self.wrong(key, f"no such key{nearest(key, known)}")

    def text(self, key: str) -> str | None:
        value = self.said.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.wrong(key, f"{value!r} is not a text")
        return value if isinstance(value, str) else None

    def needed(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise self.wrong(key, "is missing")
        return value

    def pattern(self, key: str) -> str | None:
        """A regular expression."""
        text = self.text(key)
        try:
            re.compile(text or "")
        except re.error as error:
            raise self.wrong(key, f"{text!r} is no regular expression: {error}") from None
        return text

    def optional_text(self, key: str) -> str | None:
        """The same, where null is as good as nothing, as in JSON."""
        return None if self.said.get(key) is None else self.text(key)

    def texts(self, key: str, *, none: bool = False) -> tuple[str, ...]:
        """A list of texts; where `none` is so, null is an empty one."""
        value = self.said.get(key, [])
        value = [] if value is None and none else value
        if not isinstance(value, list):
            raise self.wrong(key, 'it is a list of texts, as in ["..."]')
        for number, text in enumerate(value):
            if not isinstance(text, str):
                raise self.wrong(f"{key}[{number}]", f"{text!r} is no text")
        return tuple(value)

    def words(self, key: str) -> tuple[str, ...]:
        """A command, as one text or as a list."""
        if not isinstance(self.said.get(key), str):
            return self.texts(key)
        try:
            return tuple(shlex.split(self.needed(key)))
        except ValueError as error:
            raise self.wrong(key, f"{self.said[key]!r}: {error}") from None

    def true(self, key: str, default: bool = False) -> bool:
        value = self.said.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, f"{value!r} is neither true nor false")
        return value

    def whole(self, key: str, default: int, least: int) -> int:
        value = self.said.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.wrong(key, f"{value!r} is not a whole number from {least}")
        return value

    def seconds(self, key: str, default: float) -> float:
        value = self.said.get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.wrong(key, f"{value!r} is not a number of seconds above 0")
        if not 0 < value < math.inf:
            raise self.wrong(key, f"{value!r} is not a number of seconds above 0")
        return float(value)

    def requests(self, key: str) -> str:
        """Which requests a tool makes."""
        text = self.needed(key)
        try:
            requests.check(text)
        except ValueError as error:
            raise self.wrong(key, str(error)) from None
        return text

    def table(self, key: str) -> "Table":
        value = self.said.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, f"it is a table, as in [{key}]")
        return Table(self._path, f"{self.name}.{key}" if self.name else key, value)

    def optional(self, key: str) -> "Table":
        """A table, empty where there is none or null."""
        if self.said.get(key) is None:
            return Table(self._path, f"{self.name}.{key}" if self.name else key, {})
        return self.table(key)

    def rows(self, key: str) -> "tuple[Table, ...]":
        """A list of tables, empty where there is none or null."""
        if self.said.get(key) is None:
            return ()
        name = f"{self.name}.{key}" if self.name else key
        return tuple(
            Table(self._path, f"{name}[{n}]", each) for n, each in enumerate(self.tables(key))
        )

    def tables(self, key: str) -> tuple[Mapping[str, object], ...]:
        value = self.said.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.wrong(key, f"it is a list of tables, as in [[{key}]]")
        return tuple(value)
