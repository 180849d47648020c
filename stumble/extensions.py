"""Extensions: what installed packages add to stumble, each under an entry point.

    [project.entry-points."stumble.commands"]
    greet = "acme_stumble:greet"

Nothing of an extension is imported before it is used by its name; a name of stumble's own is never
looked up here. `stumble.faults`, the group of operators, is in `faults/plugins.py`. This module
imports `importlib.metadata` (50 ms of CPU), so import it only where a name is unknown.
"""

from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from stumble.errors import UsageError
from traces.did_you_mean import suggest_nearest_name

type ExtensionGroup = Literal["stumble.commands", "stumble.engines", "stumble.rates"]

GROUPS: Mapping[ExtensionGroup, str] = {
    "stumble.commands": "command",
    "stumble.engines": "engine of sql --on",
    "stumble.rates": "source of rates",
}
"""What an entry adds: a click command; a function `ask(cluster, tables, text, values, limits)` that
returns names and rows; a `RateSource`."""


class FaultWeights(Protocol):
    """Weights of faults that were derived from measured errors."""

    @property
    def weights(self) -> Mapping[str, float]:
        """Weight by operator and persistence."""
        ...

    def describe(self) -> str:
        """Return what the weights rest on, in one line."""
        ...

    def to_dict(self) -> dict[str, object]:
        """Return them as plain data."""
        ...


class RateSource(Protocol):
    """Measured error rates, named `NAME:SOURCE` where a question takes a rate."""

    def resolve_rates(
        self, parameters: Mapping[str, str], store: Path, takes: Collection[str]
    ) -> dict[str, str]:
        """Return the parameters with each `NAME:SOURCE` replaced. Raises ValueError."""
        ...

    def weigh_faults(self, weights: Mapping[str, float], value: str, store: Path) -> FaultWeights:
        """Return weights by how often a source shows each class. Raises ValueError."""
        ...


class InstalledExtension(Struct, frozen=True, kw_only=True):
    """One entry point of an installed package."""

    group: ExtensionGroup
    name: str
    package: str
    value: str
    """Module and attribute."""


def list_extensions(*groups: ExtensionGroup) -> tuple[InstalledExtension, ...]:
    """Return the installed extensions of these groups, or of all, by group and name."""
    found = [
        InstalledExtension(
            group=group, name=entry.name, package=_name_package(entry), value=entry.value
        )
        for group in groups or GROUPS
        for entry in entry_points(group=group)
    ]
    return tuple(sorted(found, key=lambda each: (each.group, each.name, each.package)))


def find_extension(group: ExtensionGroup, name: str) -> Any | None:
    """Import and return an extension; None if none has this name.

    Raises UsageError if it cannot be imported, or if several packages have it.
    """
    entries = tuple(entry_points(group=group, name=name))
    if not entries:
        return None
    if len({entry.value for entry in entries}) > 1:
        packages = ", ".join(sorted(map(_name_package, entries)))
        raise UsageError(f"several packages have the {GROUPS[group]} {name!r}: {packages}")
    [entry, *_] = entries
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"the {GROUPS[group]} {name!r} of {_name_package(entry)} ({entry.value}): {error}"
        ) from error


def load_extension(group: ExtensionGroup, name: str) -> Any:
    """Import and return an extension. Raises UsageError if there is none, or none that works."""
    found = find_extension(group, name)
    if found is None:
        names = [each.name for each in list_extensions(group)]
        raise UsageError(f"no {GROUPS[group]} {name!r}{suggest_nearest_name(name, names)}")
    return found


def _name_package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
