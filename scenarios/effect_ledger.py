"""Effect ledgers: a command or an HTTP address that lists the committed effects of a world.

A ledger prints JSON: a list of objects, an object with one member that is such a list, or one
object a line. The members of `key` identify what an effect is for, as order and amount do for a
refund; two entries with equal keys are one intent, committed twice. What cannot be read is unknown,
with the reason, and never an empty list.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import replace
from hashlib import blake2b
from pathlib import Path
from typing import Protocol, runtime_checkable

from msgspec import Struct, field

from scenarios.world_command import COMMAND_SECONDS, capture_world_command
from traces.bodies.canonical_json import canonicalize_json

DEFAULT_KEY = ("key",)
LEDGER_SECONDS = COMMAND_SECONDS
"""Seconds that a ledger may take."""
MAX_LEDGER_BYTES = 16 * 1024 * 1024
MAX_LEDGER_KEYS = 10_000
"""Most different keys; each of them is on the tape."""
MAX_NAME_CHARS = 200
"""Characters of a key that are kept as its name."""


class EffectReading(Struct, frozen=True, kw_only=True):
    """The effects that a ledger lists after a run; `why` says why they are unknown."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """Digest of a key -> number of effects with it."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Digest of a key -> its members in words."""
    of: str = ""
    """Digest of the ledger and its key; readings of two ledgers are not comparable."""
    why: str | None = None


@runtime_checkable
class LedgerWorld(Protocol):
    """A world that may have a ledger."""

    async def read_effects(self) -> EffectReading | None:
        """Return the committed effects; None if the world has no ledger."""
        ...


class EffectLedger(Struct, frozen=True):
    """A ledger behind a command, or behind an HTTP address that starts with http:// or https://."""

    source: Sequence[str]
    """Words of the command, or the address alone."""
    key: Sequence[str] = DEFAULT_KEY
    template: Sequence[str] | None = None
    """The source before placeholders were filled in; None if none were."""

    @property
    def digest(self) -> str:
        """Digest of the source, placeholders not filled in, and the key."""
        return _hash_values([*(self.template or self.source), "", *self.key])

    def with_source(self, source: Sequence[str]) -> "EffectLedger":
        """Return this ledger with placeholders filled in; its digest stays."""
        return replace(self, source=tuple(source), template=self.template or self.source)

    async def read(
        self,
        launch: Callable[[Sequence[str]], Sequence[str]] = lambda words: words,
        cwd: Path | None = None,
    ) -> EffectReading:
        """Return what the ledger lists now; a failure is a reading with its reason.

        `launch` returns the words that run a command where the agent runs.
        """
        try:
            output = await self._fetch_output(launch, cwd)
            counts, names = count_effects(output, self.key)
        except ValueError as error:
            return EffectReading(of=self.digest, why=f"the effect ledger {error}")
        return EffectReading(counts=counts, names=names, of=self.digest)

    async def _fetch_output(
        self, launch: Callable[[Sequence[str]], Sequence[str]], cwd: Path | None
    ) -> bytes:
        if is_ledger_address(self.source[0]):
            return await _fetch_address(self.source[0])
        code, output, errors = await capture_world_command(
            launch(self.source), cwd, limit=LEDGER_SECONDS
        )
        if code != 0:
            lines = (errors.strip() or output.strip()).decode("utf-8", "replace").splitlines()
            raise ValueError(f"exited {code}: {lines[-1] if lines else 'it printed nothing'}")
        return output


def is_ledger_address(text: str) -> bool:
    """Return whether a ledger is behind an HTTP address, and no command."""
    return text.startswith(("http://", "https://"))


def count_effects(
    output: bytes, key: Sequence[str] = DEFAULT_KEY
) -> tuple[dict[str, int], dict[str, str]]:
    """Return the counts and the names of the keys of a ledger's output, whatever its order.

    Raises ValueError, worded to follow "the effect ledger", if it lists no keyed effects.
    """
    if len(output) > MAX_LEDGER_BYTES:
        raise ValueError(f"is longer than {MAX_LEDGER_BYTES:,} bytes")
    counts: Counter[str] = Counter()
    names: dict[str, str] = {}
    for number, entry in enumerate(_list_entries(output), 1):
        values = [_find_member(entry, path, number) for path in key]
        digest = _hash_values(values)
        counts[digest] += 1
        if digest not in names:
            names[digest] = _name_key(key, values)
        if len(counts) > MAX_LEDGER_KEYS:
            raise ValueError(f"has more than {MAX_LEDGER_KEYS:,} different keys")
    return dict(counts), names


def _list_entries(output: bytes) -> Sequence[object]:
    if not output.strip():
        raise ValueError("printed nothing; no effect is the empty list []")
    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        return list(_parse_lines(output))
    lists = (
        [each for each in value.values() if isinstance(each, list)]
        if isinstance(value, dict)
        else [value]
    )
    if len(lists) == 1 and isinstance(lists[0], list):
        return lists[0]
    if isinstance(value, dict) and not lists:  # a single line of JSON lines
        return [value]
    raise ValueError("printed JSON that is no list of effects")


def _parse_lines(output: bytes) -> Iterator[object]:
    for number, line in enumerate(output.splitlines(), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                raise ValueError(f"printed no JSON in line {number}") from None


def _find_member(entry: object, path: str, number: int) -> object:
    value = entry
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        raise ValueError(f"has no {path!r} in entry {number}, which is part of the key")
    return value


def _name_key(key: Sequence[str], values: Sequence[object]) -> str:
    texts = [v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
    words = texts if len(key) == 1 else [f"{k}={t}" for k, t in zip(key, texts, strict=True)]
    return " ".join(words)[:MAX_NAME_CHARS]


def _hash_values(values: Sequence[object]) -> str:
    equal = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]  # 5.0 is 5
    data = canonicalize_json(json.dumps(equal))
    return blake2b(data, digest_size=16).hexdigest()


async def _fetch_address(address: str) -> bytes:
    import asyncio  # only here, as these two take longer to load than a short script runs

    import httpx

    output = bytearray()
    try:
        async with (
            asyncio.timeout(LEDGER_SECONDS),
            httpx.AsyncClient(trust_env=False, timeout=LEDGER_SECONDS) as client,
            client.stream("GET", address) as answer,
        ):
            async for part in answer.aiter_bytes():
                output += part
                if len(output) > MAX_LEDGER_BYTES:
                    break
    except TimeoutError:
        raise ValueError(f"gave no answer within {LEDGER_SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ValueError(f"cannot be reached: {error or type(error).__name__}") from None
    if not answer.is_success:
        raise ValueError(f"answered {answer.status_code}")
    return bytes(output)
