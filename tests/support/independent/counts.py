"""The counts of a source, and how its files are opened."""

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Counts:
    """What files hold; `lacks` names what their format does not have."""

    runs: int = 0
    steps: int = 0
    calls: int = 0
    errors: int = 0
    tokens: int | None = None
    cost: float | None = None
    lacks: tuple[str, ...] = ()

    def to_list(self) -> list[float | None]:
        """Return the counts in their order; None for what the format does not have."""
        names = ("runs", "steps", "calls", "errors", "tokens", "cost")
        return [None if name in self.lacks else getattr(self, name) for name in names]

    def add_tokens(self, *counts: int | None) -> None:
        known = [count for count in counts if count is not None]
        if known:
            self.tokens = (self.tokens or 0) + sum(known)

    def add_cost(self, cost: float | None) -> None:
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost


def read_bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def read_document(path: Path) -> Any:
    return json.loads(read_bytes(path).decode("utf-8-sig"))


def read_lines(path: Path) -> Iterator[Any]:
    for line in read_bytes(path).decode().splitlines():
        if line.strip():
            yield json.loads(line)


def read_all(paths: Iterable[Path]) -> Iterator[Any]:
    for path in paths:
        yield read_document(path)
