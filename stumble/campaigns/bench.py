"""stumble-bench: fixed work, fixed faults, declared weights and an analysis said beforehand."""

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import scenarios
from stumble.campaigns.asked import Campaign, campaign
from stumble.campaigns.outcome import Outcome, interval
from stumble.report.values import Row
from stumble.selection import named
from traces.sql import ask
from traces.store import Store

FILE = Path(scenarios.__file__).parent / "bench" / "stumble-bench-1.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a bench file says."""

    title: str
    digest: str
    """Of the whole file, 16 hex digits."""
    said: Mapping[str, object]
    """Its campaign."""
    weights: Mapping[str, float]
    """Of each fault, as `digit once`."""
    analysis: str

    @property
    def name(self) -> str:
        """How its campaigns begin."""
        return f"{self.title.replace(' ', '-')}-{self.digest[:8]}"

    def table(self, models: Sequence[str], command: str | None, agent: str) -> dict[str, object]:
        """The table of its campaign, with other models or an agent of one's own."""
        practice = self.said["practice"]
        assert isinstance(practice, dict)
        said = {**self.said, "practice": {**practice, **({"models": models} if models else {})}}
        name = self.name if command is None else f"{self.name}-{agent}"
        own = {"command": command, "agent": agent} if command else {}
        return said | {"name": name} | own

    def campaign(self, said: Mapping[str, object]) -> Campaign:
        """That campaign."""
        return campaign(said, FILE)


def bench(path: Path = FILE) -> Bench:
    """The bench of a file; ValueError where it is none."""
    data = path.read_bytes()
    said = tomllib.loads(data.decode())
    try:
        title, analysis = said["title"], said.pop("analysis")["text"]
        weights = dict[str, float]()
        for table in said["faults"]:
            op = table["fault"].partition(":")[0]
            weights[f"{op} {table['persist']}"] = float(table.pop("weight"))
    except KeyError as error:
        raise ValueError(f"{path}: {error.args[0]} is missing") from None
    if not isinstance(said.get("practice"), dict):
        raise ValueError(f"{path}: practice is missing")
    if len(weights) < len(said["faults"]):
        raise ValueError(f"{path}: two faults of one operator and persistence")
    return Bench(
        title=title,
        digest=hashlib.sha256(data).hexdigest()[:16],
        said=said,
        weights=weights,
        analysis=analysis.strip(),
    )


def standing(found: Bench, store: Store) -> tuple[Row, ...]:
    """The table: one row for each agent and model that a store holds runs of."""
    weights = json.dumps(dict(found.weights))
    with store.reading() as connection:
        return named(ask(connection, "bench", weights=weights, campaign=found.name))


def to_progress(gave: Outcome) -> dict[str, object]:
    """How far the runs of a bench came, as plain data."""
    now = gave.standing
    return {
        "finished": gave.finished,
        "done": now.before + now.done,
        "wanted": now.wanted,
        "left": now.left,
        "recordings_left": now.sources - now.laid,
    }


def describe_incomplete(gave: Outcome) -> str | None:
    """That a table is of a part of the runs, in a line; None for one of all."""
    now = gave.standing
    if gave.finished and now.laid == now.sources:
        return None
    more = now.sources - now.laid
    unlaid = f", and those of {more} recordings that are not there yet" if more else ""
    return (
        f"INCOMPLETE: {now.before + now.done} of {now.wanted} runs are done, {now.left} are left"
        f"{unlaid}; the same command goes on"
    )


def lines(found: Bench, rows: Sequence[Row]) -> Iterator[str]:
    """The table in words."""
    yield f"{found.title}, file {found.digest}, 95 % intervals by task"
    head = ("agent", "model", "tasks", "n", "handled", "R (recovered)", "silent")
    cells = [
        (
            str(row["agent"] or ""),
            str(row["model"] or ""),
            str(row["traces"]),
            str(row["judged"]),
            interval(row, "handled_rate"),
            interval(row, "recovery_rate"),
            interval(row, "silent_rate"),
        )
        for row in rows
    ]
    wide = [max(len(row[n]) for row in (head, *cells)) for n in range(len(head))]
    for line in (head, *cells):
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, wide, strict=True)).rstrip()
    for row in rows:
        if row["reason"] == "faults_missing":
            missing = f"{row['faults']} of {row['declared_faults']} faults have a judged injection"
            yield f"{row['model']}: no standardised figure, since only {missing}"
