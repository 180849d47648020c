"""stumble-bench: a campaign with fixed tasks, faults, weights and analysis."""

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

import scenarios
from stumble.campaigns.results import CampaignResult, format_rate_interval
from stumble.campaigns.spec import Campaign, parse_campaign
from stumble.store.filter import ReportRow, fetch_named_rows
from traces.store.sql import run_question
from traces.store.trace_store import TraceStore

BENCH_FILE = Path(scenarios.__file__).parent / "bench" / "stumble-bench-1.toml"


class BenchSpec(Struct, frozen=True, kw_only=True):
    """The contents of a bench file."""

    title: str
    digest: str
    """SHA-256 of the file, first 16 hex digits."""
    said: Mapping[str, object]
    """The table of its campaign."""
    weights: Mapping[str, float]
    """By operator and persistence, as `digit once`."""
    analysis: str

    @property
    def name(self) -> str:
        """The prefix of the names of its campaigns."""
        return f"{self.title.replace(' ', '-')}-{self.digest[:8]}"

    def to_campaign_table(
        self, models: Sequence[str], command: str | None, agent: str
    ) -> dict[str, object]:
        """Return the table of its campaign, with these models or the user's agent if given."""
        practice = self.said["practice"]
        assert isinstance(practice, dict)
        table = {**self.said, "practice": {**practice, **({"models": models} if models else {})}}
        name = self.name if command is None else f"{self.name}-{agent}"
        own_agent = {"command": command, "agent": agent} if command else {}
        return table | {"name": name} | own_agent

    def to_campaign(self, said: Mapping[str, object]) -> Campaign:
        """Parse a table from `to_campaign_table`."""
        return parse_campaign(said, BENCH_FILE)


def read_bench(path: Path = BENCH_FILE) -> BenchSpec:
    """Read a bench file. Raises ValueError if it is not one."""
    data = path.read_bytes()
    document = tomllib.loads(data.decode())
    try:
        title, analysis = document["title"], document.pop("analysis")["text"]
        weights = dict[str, float]()
        for table in document["faults"]:
            op = table["fault"].partition(":")[0]
            weights[f"{op} {table['persist']}"] = float(table.pop("weight"))
    except KeyError as error:
        raise ValueError(f"{path}: {error.args[0]} is missing") from None
    if not isinstance(document.get("practice"), dict):
        raise ValueError(f"{path}: practice is missing")
    if len(weights) < len(document["faults"]):
        raise ValueError(f"{path}: two faults of one operator and persistence")
    return BenchSpec(
        title=title,
        digest=hashlib.sha256(data).hexdigest()[:16],
        said=document,
        weights=weights,
        analysis=analysis.strip(),
    )


def query_bench_rows(found: BenchSpec, store: TraceStore) -> tuple[ReportRow, ...]:
    """Return the bench table: one row for each agent and model with runs in the store."""
    weights = json.dumps(dict(found.weights))
    with store.open_locked() as connection:
        return fetch_named_rows(
            run_question(connection, "bench", weights=weights, campaign=found.name)
        )


def bench_progress_to_dict(gave: CampaignResult) -> dict[str, object]:
    """Return the progress of a bench as plain data."""
    now = gave.standing
    return {
        "finished": gave.is_finished,
        "done": now.before + now.done,
        "wanted": now.wanted,
        "left": now.runs_left,
        "recordings_left": now.sources - now.laid,
    }


def describe_incomplete(gave: CampaignResult) -> str | None:
    """Return a line if the table covers only a part of the runs, else None."""
    now = gave.standing
    if gave.is_finished and now.laid == now.sources:
        return None
    missing_recordings = now.sources - now.laid
    not_recorded = (
        f", and those of {missing_recordings} recordings that are not there yet"
        if missing_recordings
        else ""
    )
    return (
        f"INCOMPLETE: {now.before + now.done} of {now.wanted} "
        f"runs are done, {now.runs_left} are left"
        f"{not_recorded}; the same command goes on"
    )


def format_bench_table(found: BenchSpec, rows: Sequence[ReportRow]) -> Iterator[str]:
    """Format the bench table as lines."""
    yield f"{found.title}, file {found.digest}, 95 % intervals by task"
    head = ("agent", "model", "tasks", "n", "handled", "R (recovered)", "silent")
    cells = [
        (
            str(row["agent"] or ""),
            str(row["model"] or ""),
            str(row["traces"]),
            str(row["judged"]),
            format_rate_interval(row, "handled_rate"),
            format_rate_interval(row, "recovery_rate"),
            format_rate_interval(row, "silent_rate"),
        )
        for row in rows
    ]
    widths = [max(len(row[n]) for row in (head, *cells)) for n in range(len(head))]
    for line in (head, *cells):
        yield "  ".join(
            cell.ljust(width) for cell, width in zip(line, widths, strict=True)
        ).rstrip()
    for row in rows:
        if row["reason"] == "faults_missing":
            missing = f"{row['faults']} of {row['declared_faults']} faults have a judged injection"
            yield f"{row['model']}: no standardised figure, since only {missing}"
