"""The first part of a pack: what is in it, and what a run needs beside it."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Literal, Self

from msgspec import Struct, field, to_builtins

from stumble.packs.zip_layout import check_member_name

PACK_FORMAT = 1
PACK_SUFFIX = ".stumble"
MANIFEST_NAME = "manifest.json"
MAX_MANIFEST_BYTES = 1 << 26
COMMENT_PREFIX = b"stumble pack "

type PackKind = Literal["tape", "campaign", "runs"]
type PlanOptions = Mapping[str, object]
"""Options of `stumble fork` by the names of their parameters, as they were given."""


class PackPart(Struct, frozen=True, kw_only=True):
    """One file of a pack."""

    name: str
    bytes: int
    sha256: str


class PackNeeds(Struct, frozen=True, kw_only=True):
    """What the recorded agent used of its machine that is not in the pack."""

    program: str | None = None
    """The program that was started, as the command names it."""
    interpreter: str | None = None
    """Its version, as it prints it; None if it is no known interpreter."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions by name of the packages that the agent's own files import."""
    variables: tuple[str, ...] = ()
    """Names of the environment variables that it reads."""
    left_out: tuple[str, ...] = ()
    """Paths below the agent's folder that its snapshot does not hold."""


class PackManifest(Struct, frozen=True, kw_only=True):
    """What a pack holds; its digest is the root hash of the pack."""

    kind: PackKind
    main: str
    """The part to open: a tape, a campaign's table, or the first of several tapes."""
    parts: tuple[PackPart, ...]
    made_by: str
    format: int = PACK_FORMAT
    needs: PackNeeds = field(default_factory=PackNeeds)
    plan: PlanOptions = field(default_factory=dict)
    scenario: str | None = None
    """The part with the scenario, or the name of one that is shipped with stumble."""

    def encode(self) -> bytes:
        """Encode deterministically: equal manifests give equal bytes."""
        text = json.dumps(to_builtins(self), sort_keys=True, indent=1, ensure_ascii=True)
        return text.encode() + b"\n"

    @property
    def root_hash(self) -> str:
        """The hash of all parts by way of theirs, in hexadecimal digits."""
        return sha256(self.encode()).hexdigest()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Decode the bytes of `encode`. Raises ValueError if they are damaged or of a newer
        format.
        """
        try:
            fields = json.loads(data)
            number = fields["format"]
            if number > PACK_FORMAT:
                raise ValueError(f"pack format {number}, this version reads up to {PACK_FORMAT}")
            fields["parts"] = tuple(PackPart(**each) for each in fields["parts"])
            needs = fields["needs"]
            for name in ("variables", "left_out"):
                needs[name] = tuple(map(str, needs[name]))
            fields["needs"] = PackNeeds(**needs)
            manifest = cls(**fields)
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"{MANIFEST_NAME} is damaged: {error}") from None
        if manifest.encode() != data:
            raise ValueError(f"{MANIFEST_NAME} is not as `stumble pack` writes it")
        if manifest.main not in {each.name for each in manifest.parts}:
            raise ValueError(f"{MANIFEST_NAME} names {manifest.main!r}, which is not in it")
        for part in manifest.parts:
            check_member_name(part.name)
        return manifest


def encode_comment(root_hash: str) -> bytes:
    """Return the comment of a pack's archive, of a fixed length."""
    return COMMENT_PREFIX + root_hash.encode()


COMMENT_BYTES = len(encode_comment("0" * 64))
