"""Typed access to the values of a hand-written table, with errors that name file and key."""

import math
import re
import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path

from traces import route_patterns
from traces.did_you_mean import suggest_nearest_name


class ScenarioError(ValueError):
    """An invalid scenario file; the message is "file: key: reason"."""

    def __init__(self, path: Path, key: str, reason: str) -> None:
        super().__init__(f"{path}: {key}: {reason}" if key else f"{path}: {reason}")


def read_toml_document(path: Path) -> Mapping[str, object]:
    """Parse a TOML file. Raises ScenarioError if it cannot be read or parsed."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(path, "", f"no TOML: {error}") from None
    except OSError as error:
        raise ScenarioError(path, "", error.strerror or str(error)) from None


class TypedTable:
    """A table; each getter returns a value of one type or raises ScenarioError with file and
    key.
    """

    def __init__(self, path: Path, name: str, said: Mapping[str, object]) -> None:
        self._path, self.name, self.entries = path, name, said

    def make_error(self, key: str, reason: str) -> ScenarioError:
        return ScenarioError(self._path, f"{self.name}.{key}" if self.name else key, reason)

    def allow_only(self, keys: str) -> None:
        known = keys.split()
        for key in self.entries:
            if key not in known:
                raise self.make_error(key, f"no such key{suggest_nearest_name(key, known)}")

    def get_text(self, key: str) -> str | None:
        value = self.entries.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self.make_error(key, f"{value!r} is not a text")
        return value if isinstance(value, str) else None

    def require_text(self, key: str) -> str:
        value = self.get_text(key)
        if value is None:
            raise self.make_error(key, "is missing")
        return value

    def get_pattern(self, key: str) -> str | None:
        """Return a regular expression, or None if the key is absent."""
        text = self.get_text(key)
        try:
            re.compile(text or "")
        except re.error as error:
            raise self.make_error(key, f"{text!r} is no regular expression: {error}") from None
        return text

    def get_optional_text(self, key: str) -> str | None:
        """Return a text; null, as in JSON, counts as absent."""
        return None if self.entries.get(key) is None else self.get_text(key)

    def get_texts(self, key: str, *, none: bool = False) -> tuple[str, ...]:
        """Return a list of texts. If `none` is true, null counts as an empty list."""
        value = self.entries.get(key, [])
        value = [] if value is None and none else value
        if not isinstance(value, list):
            raise self.make_error(key, 'it is a list of texts, as in ["..."]')
        for number, text in enumerate(value):
            if not isinstance(text, str):
                raise self.make_error(f"{key}[{number}]", f"{text!r} is no text")
        return tuple(value)

    def get_command(self, key: str) -> tuple[str, ...]:
        """Return a command's words, given as one text or as a list."""
        if not isinstance(self.entries.get(key), str):
            return self.get_texts(key)
        try:
            return tuple(shlex.split(self.require_text(key)))
        except ValueError as error:
            raise self.make_error(key, f"{self.entries[key]!r}: {error}") from None

    def get_bool(self, key: str, default: bool = False) -> bool:
        value = self.entries.get(key, default)
        if not isinstance(value, bool):
            raise self.make_error(key, f"{value!r} is neither true nor false")
        return value

    def get_int(self, key: str, default: int, minimum: int) -> int:
        value = self.entries.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise self.make_error(key, f"{value!r} is not a whole number from {minimum}")
        return value

    def get_seconds(self, key: str, default: float) -> float:
        value = self.entries.get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.make_error(key, f"{value!r} is not a number of seconds above 0")
        if not 0 < value < math.inf:
            raise self.make_error(key, f"{value!r} is not a number of seconds above 0")
        return float(value)

    def get_route_pattern(self, key: str) -> str:
        """Return the route pattern of a tool's requests."""
        text = self.require_text(key)
        try:
            route_patterns.check_route_pattern(text)
        except ValueError as error:
            raise self.make_error(key, str(error)) from None
        return text

    def get_table(self, key: str) -> "TypedTable":
        value = self.entries.get(key, {})
        if not isinstance(value, dict):
            raise self.make_error(key, f"it is a table, as in [{key}]")
        return TypedTable(self._path, f"{self.name}.{key}" if self.name else key, value)

    def get_optional_table(self, key: str) -> "TypedTable":
        """Return a table, empty if the key is absent or null."""
        if self.entries.get(key) is None:
            return TypedTable(self._path, f"{self.name}.{key}" if self.name else key, {})
        return self.get_table(key)

    def get_tables(self, key: str) -> "tuple[TypedTable, ...]":
        """Return a list of tables, empty if the key is absent or null."""
        if self.entries.get(key) is None:
            return ()
        name = f"{self.name}.{key}" if self.name else key
        return tuple(
            TypedTable(self._path, f"{name}[{n}]", each)
            for n, each in enumerate(self.get_mappings(key))
        )

    def get_mappings(self, key: str) -> tuple[Mapping[str, object], ...]:
        value = self.entries.get(key, [])
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.make_error(key, f"it is a list of tables, as in [[{key}]]")
        return tuple(value)
