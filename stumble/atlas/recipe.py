"""Recipe of a source: which files of which commit are read, and under which licence."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

_LICENCE_NAME = re.compile(r"(licen[sc]e|copying)(\.\w+)?", re.IGNORECASE)


class SourceRefused(ValueError):
    """A source is missing, or is not what its recipe describes."""


class RunTotal(NamedTuple):
    """Runs of an agent with a model, and how many of them passed."""

    runs: int
    passed: int


type RunTotals = Mapping[tuple[str | None, str | None], RunTotal]
"""Totals by agent and model, by its name in an atlas."""


class Recipe(Struct, frozen=True, kw_only=True):
    """What a source is, so that anybody can read the same bytes again.

    `files_sha256` covers the paths and contents of all files that match `paths`; see
    `source_files.compute_files_digest`. A source without a licence file has `licence` None: then
    only derived rows may be passed on, which is all that an atlas ever holds.
    """

    name: str
    repository: str  # owner/name
    commit: str
    paths: str  # regular expression that must match the complete path of a file
    files_sha256: str
    licence: str | None = None
    licence_path: str | None = None
    licence_sha256: str | None = None
    describes: str  # one line for people
    derived: str  # how passed, steps and is_error were decided
    totals: RunTotals  # as the source itself counts; without agents that it does not count
    left_out: str = "nothing"  # of the same results in the repository, and why

    def selects(self, path: str) -> bool:
        """Whether a file is read."""
        return re.fullmatch(self.paths, path) is not None

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data, with a list of totals."""
        totals = [
            {"agent": agent, "model": model, "runs": total.runs, "passed": total.passed}
            for (agent, model), total in self.totals.items()
        ]
        return asdict(self) | {"totals": totals}

    @property
    def clone_command(self) -> str:
        """The commands that bring the source here."""
        folder = self.repository.rpartition("/")[2]
        return (
            f"git clone https://github.com/{self.repository} && "
            f"git -C {folder} checkout {self.commit}"
        )


def find_differences(recipe: Recipe, found: RunTotals) -> Iterator[str]:
    """Yield each total of a source that its rows do not have."""
    for (agent, model), total in recipe.totals.items():
        rows = found.get((agent, model), RunTotal(0, 0))
        if rows != total:
            yield (
                f"{agent} with {model}: the source has {total.runs} runs, {total.passed} passed; "
                f"its files give {rows.runs}, {rows.passed}"
            )


def is_licence_path(path: str) -> bool:
    """Whether a path is that of a licence file in the top folder."""
    return _LICENCE_NAME.fullmatch(path) is not None
