"""What of a folder is kept in a snapshot, and what is left out and why.

Rules are lines in the syntax of gitignore, the last that fits decides: ours first, then those
in the folder's `.stumbleignore`, where `!node_modules/` keeps what ours leave out. What is left
out is still there when the agent runs in a copy: it shows through from its original place.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pathspec import GitIgnoreSpec

RULES = ".stumbleignore"

CACHES = (
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
"""Large, and made again from what is kept."""

SECRETS = (
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
    ".ssh/",
    ".aws/",
    ".gnupg/",
)
"""Names of what holds keys and passwords."""

type Why = Literal["cache", "secret", "rule"]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one folder, compiled."""

    spec: GitIgnoreSpec
    origins: tuple[Why, ...]
    """Where each line of the specification comes from."""

    @classmethod
    def of(cls, root: Path) -> Self:
        """Ours and the folder's own; ValueError where a line of its own is no rule."""
        own = root / RULES
        lines = own.read_text().splitlines() if own.is_file() else []
        try:
            spec = GitIgnoreSpec.from_lines([*CACHES, *SECRETS, *lines])
        except ValueError as error:
            raise ValueError(f"{own}: {error}") from None
        counts: tuple[tuple[Why, int], ...] = (
            ("cache", len(CACHES)),
            ("secret", len(SECRETS)),
            ("rule", len(lines)),
        )
        return cls(spec, tuple(why for why, count in counts for _ in range(count)))

    def leaves_out(self, name: str, *, folder: bool) -> Why | None:
        """Why a path, relative and with slashes, is not kept; None where it is."""
        found = self.spec.check_file(f"{name}/" if folder else name)
        if not found.include or found.index is None:
            return None
        return self.origins[found.index]
