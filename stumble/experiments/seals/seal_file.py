"""A seal: its contents, the digest stored on each of its tapes, and differences of two seals."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from stumble.errors import UsageError
from stumble.experiments.seals.canonical_json import hash_canonical_json, to_canonical_json

SEAL_FORMAT = 1
SHOWN_DIGEST_LENGTH = 12
"""Hex digits of a digest in output."""
_LONGEST_TEXT = 160
"""Most characters of a value in the description of a difference."""


class ExperimentSeal(Struct, frozen=True, kw_only=True):
    """The values that an experiment fixed before its first run."""

    contents: Mapping[str, object]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical contents, as 64 hex digits."""
        return hash_canonical_json({"format": SEAL_FORMAT, **self.contents})

    @property
    def short_digest(self) -> str:
        """The beginning of the digest."""
        return self.digest[:SHOWN_DIGEST_LENGTH]

    @property
    def name(self) -> str:
        """The campaign that is sealed."""
        return str(self.contents["campaign"])

    def get_part(self, name: str) -> Mapping[str, object]:
        """Return one part of the contents: plan, agent, world, judge or analysis."""
        part = self.contents[name]
        assert isinstance(part, Mapping)
        return part

    def to_text(self) -> str:
        """Format the file: indented JSON, with the digest first."""
        document = {"seal": self.digest, "format": SEAL_FORMAT, **self.contents}
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    def write(self, path: Path) -> None:
        """Write the file atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part_path = path.with_name(f".{path.name}.part")
        part_path.write_text(self.to_text(), encoding="utf-8")
        part_path.replace(path)


def read_seal(path: Path) -> ExperimentSeal:
    """Read a seal. Raises UsageError if it is none, or was changed after it was made."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is no seal: {error}") from None
    if not isinstance(document, dict) or not _is_seal(document):
        raise UsageError(f"{path} is no seal of a campaign")
    if document.pop("format") != SEAL_FORMAT:
        raise UsageError(f"{path} was made by another version of stumble; seal the campaign anew")
    claimed = document.pop("seal")
    seal = ExperimentSeal(contents=document)
    if seal.digest != claimed:
        raise UsageError(
            f"{path} was changed by hand: it says "
            f"{str(claimed)[:SHOWN_DIGEST_LENGTH]}, and what it holds gives "
            f"{seal.short_digest}; put the sealed file back, or seal anew under another --name"
        )
    return seal


def _is_seal(table: Mapping[str, object]) -> bool:
    parts = ("plan", "agent", "world", "judge", "analysis")
    return {"seal", "format", "campaign"} <= table.keys() and all(
        isinstance(table.get(part), dict) for part in parts
    )


def find_value_differences(
    sealed: object, now: object, name: str = "", words: tuple[str, str] = ("sealed", "now")
) -> Iterator[str]:
    """Yield each difference of two values, as `plan.seeds: sealed [1, 2], now [1, 2, 3]`."""
    if to_canonical_json(sealed) == to_canonical_json(now):
        return
    match sealed, now:
        case Mapping(), Mapping():
            for key in dict.fromkeys((*sealed, *now)):
                inner = f"{name}.{key}" if name else key
                if key in sealed and key in now:
                    yield from find_value_differences(sealed[key], now[key], inner, words)
                else:
                    yield _format_difference(
                        inner,
                        words,
                        _format_json_value(sealed.get(key)),
                        _format_json_value(now.get(key)),
                    )
        case [*one], [*two] if len(one) == len(two) and any(isinstance(x, dict) for x in one):
            for number, (had, has) in enumerate(zip(one, two, strict=True)):
                yield from find_value_differences(had, has, f"{name}[{number}]", words)
        case [*one], [*two] if any(isinstance(x, dict) for x in (*one, *two)):
            yield f"{name}: {words[0]} {len(one)}, {words[1]} {len(two)}"
        case _:
            yield _format_difference(
                name, words, _format_json_value(sealed), _format_json_value(now)
            )


def _format_difference(name: str, words: tuple[str, str], had: str, has: str) -> str:
    """Format both texts; long ones are clipped around the first difference."""
    same = next((n for n, (a, b) in enumerate(zip(had, has, strict=False)) if a != b), 0)
    at = max(0, same - _LONGEST_TEXT // 2) if max(len(had), len(has)) > _LONGEST_TEXT else 0
    return f"{name}: {words[0]} {_clip_text(had, at)}, {words[1]} {_clip_text(has, at)}"


def _format_json_value(value: object) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


def _clip_text(text: str, at: int) -> str:
    """Return at most `_LONGEST_TEXT` characters of a text from this position."""
    part = text[at : at + _LONGEST_TEXT]
    return f"{'...' if at else ''}{part}{'...' if at + _LONGEST_TEXT < len(text) else ''}"
