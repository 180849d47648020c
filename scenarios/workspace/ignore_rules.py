"""Rules that exclude files from a snapshot, with the reason.

Rules are lines in gitignore syntax, of which the last match decides: the built-in ones first, then
those of the folder's `.stumbleignore`, where `!node_modules/` includes an excluded folder again. An
excluded path is visible to an agent in a copy: its original is mounted or linked there.
"""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORE_FILE = ".stumbleignore"

CACHE_PATTERNS = (
    "node_modules/",
    ".venv/",
    "venv/",
    "__pycache__/",
    ".cache/",
    ".tox/",
    ".nox/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".pytest_cache/",
    ".hypothesis/",
    ".gradle/",
    ".terraform/",
)
"""Large folders that can be rebuilt from the stored files."""

SECRET_PATTERNS = (
    ".env*",
    "!.env.example",
    "!.env.sample",
    "!.env.template",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "!id_*.pub",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".vault-token",
    "credentials.json",
    "secrets.json",
    "secrets.yaml",
    "secrets.yml",
    "secrets.toml",
    "*.tfstate",
    "*.tfstate.backup",
    "*.kdbx",
    "*.jks",
    "*.keystore",
    ".kube/",
    ".ssh/",
    ".aws/",
    ".gnupg/",
)
"""Names of files that hold keys and passwords."""

type ExclusionReason = Literal["cache", "secret", "rule", "found"]
"""`found`: a secret in the content. Such a file is copied from its place, so it can be edited."""


class IgnoreRules(Struct, frozen=True):
    """The compiled rules of one folder."""

    spec: "GitIgnoreSpec"
    any_line: re.Pattern[str]
    """Matches each name that some line matches: most match none."""
    origins: tuple[ExclusionReason, ...]
    """The reason behind each line of the specification."""

    @staticmethod
    def from_folder(root: Path) -> "IgnoreRules":
        """Compile the built-in and the folder's own rules. Raises ValueError on an invalid line."""
        ignore_file = root / IGNORE_FILE
        lines = ignore_file.read_text().splitlines() if ignore_file.is_file() else []
        try:
            return _compile_rules(tuple(lines))
        except ValueError as error:
            raise ValueError(f"{ignore_file}: {error}") from None

    @staticmethod
    def built_in() -> "IgnoreRules":
        """Compile the built-in rules alone."""
        return _compile_rules(())

    def find_exclusion(self, name: str, *, folder: bool) -> ExclusionReason | None:
        """Return why a relative path with slashes is excluded; None if it is included."""
        path = f"{name}/" if folder else name
        if not self.any_line.match(path):
            return None
        match = self.spec.check_file(path)
        if not match.include or match.index is None:
            return None
        return self.origins[match.index]


@cache
def _compile_rules(lines: tuple[str, ...]) -> IgnoreRules:
    """Compile the built-in rules and these lines; a run asks before and after its agent."""
    from pathspec import GitIgnoreSpec  # 30 modules, which a replay in place does not need

    # The compiled backends take only names that are UTF-8, which a file's need not be.
    patterns = [*CACHE_PATTERNS, *SECRET_PATTERNS, *lines]
    spec = GitIgnoreSpec.from_lines(patterns, backend="simple")
    counts: tuple[tuple[ExclusionReason, int], ...] = (
        ("cache", len(CACHE_PATTERNS)),
        ("secret", len(SECRET_PATTERNS)),
        ("rule", len(lines)),
    )
    sources = [each.regex.pattern for each in spec.patterns if each.regex is not None]
    anchored = [each if each.startswith("^") else f"(?s:.*)(?:{each})" for each in sources]
    any_line = re.compile("|".join(anchored).replace("?P<ps_d>", ""))
    return IgnoreRules(spec, any_line, tuple(why for why, count in counts for _ in range(count)))
