"""Recipe of a source: which files of which commit are read, and under which licence."""

import re

from traces.lazy_dataclass import dataclass

_LICENCE_NAME = re.compile(r"(licen[sc]e|copying)(\.\w+)?", re.IGNORECASE)


class SourceRefused(ValueError):
    """A source is missing, or is not what its recipe describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
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

    def selects(self, path: str) -> bool:
        """Whether a file is read."""
        return re.fullmatch(self.paths, path) is not None

    @property
    def clone_command(self) -> str:
        """The commands that bring the source here."""
        folder = self.repository.rpartition("/")[2]
        return (
            f"git clone https://github.com/{self.repository} && "
            f"git -C {folder} checkout {self.commit}"
        )


def is_licence_path(path: str) -> bool:
    """Whether a path is that of a licence file in the top folder."""
    return _LICENCE_NAME.fullmatch(path) is not None
